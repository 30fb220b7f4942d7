//! Scripts of commands, most of which meet something that is there, and of what goes wrong meanwhile.

use arbitrary::{Arbitrary, Result, Unstructured};
use strongroom::wire::{Command, ViewRange};

use crate::disk::Trouble;
use crate::memory::Memory;
use crate::naive;

/// What happens to a store, in order.
#[derive(Debug)]
pub struct Script(pub Vec<Step>);

/// One step.
#[derive(Debug)]
pub enum Step {
    /// A tenant's command, and what goes wrong at which operation below the store.
    Run {
        tenant: usize,
        act: Act,
        trouble: Option<(u8, Trouble)>,
    },
    /// The store is closed and opened again.
    Reopen,
    /// Time passes.
    Pass { minutes: u64 },
    /// The operator sweeps what is expired.
    Sweep,
}

/// A command whose paths are told by what is there when its turn comes.
#[derive(Debug)]
pub enum Act {
    View(Place, Option<(i8, i8)>),
    Create(Place, String),
    StrReplace(Place, Old, String),
    Insert(Place, Line, String),
    Delete(Place),
    Rename(Place, Place),
}

/// What is to be replaced.
#[derive(Debug)]
pub enum Old {
    /// One of the file's lines.
    Line(u8),
    /// Whether or not it is there.
    Text(&'static str),
}

/// After which line.
#[derive(Debug)]
pub enum Line {
    /// One that is there.
    There(u8),
    /// Whether or not it is there.
    Number(i8),
}

/// A path.
#[derive(Debug)]
pub enum Place {
    /// One of the files.
    File(u8),
    /// One of the files and directories.
    There(u8),
    /// Below one of them.
    Below(u8, String),
    /// From the root.
    New(String),
}

const STEPS_MAX: usize = 24;
/// A clock that runs far ahead of what is stored is not believed.
const MINUTES_MAX: u64 = 11 * 24 * 60;
/// Around the ten days after which a tenant's files expire, and half of them.
const MINUTES: &[u64] = &[0, 1, 7_200, 14_399, 14_400, 14_401];
/// No path of a script may come near the guard's depth.
const DEPTH_MAX: usize = 20;

const NAMES: &[&str] = &[
    "/a",
    "/a",
    "/b",
    "/b",
    "/c.md",
    "/.h",
    "/node_modules",
    "/é",
];
const TEXTS: &[&str] = &[
    "",
    "x\n",
    "x",
    "x\ny\n",
    "y\nx",
    "aaa\n",
    "a\r\nb\r\n",
    "\n",
    "é\u{2028}x\n\n",
    "Note: a\n     1\tb\n",
];
const OLDS: &[&str] = &["x", "a", "aa", "\n", "x\n", "y\n", "zz", ""];

impl<'a> Arbitrary<'a> for Script {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut steps = Vec::new();
        // Scripts in which nothing goes wrong get further.
        let has_trouble = u.ratio(2, 3)?;
        while steps.len() < STEPS_MAX && !u.is_empty() {
            steps.push(match u.int_in_range(0..=31)? {
                0 => Step::Reopen,
                1..=2 => Step::Pass {
                    minutes: match u.ratio(1, 2)? {
                        true => *u.choose(MINUTES)?,
                        false => u.int_in_range(0..=MINUTES_MAX)?,
                    },
                },
                3 => Step::Sweep,
                _ => Step::Run {
                    tenant: usize::from(u.ratio(1, 3)?),
                    act: Act::arbitrary(u)?,
                    trouble: match has_trouble && u.ratio(1, 5)? {
                        true => Some((u.int_in_range(0..=11)?, Trouble::arbitrary(u)?)),
                        false => None,
                    },
                },
            });
        }
        Ok(Self(steps))
    }
}

impl<'a> Arbitrary<'a> for Act {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let file = |u: &mut Unstructured<'a>| match u.ratio(9, 10)? {
            true => Ok(Place::File(u8::arbitrary(u)?)),
            false => Place::arbitrary(u),
        };
        let there = |u: &mut Unstructured<'a>| match u.ratio(9, 10)? {
            true => Ok(Place::There(u8::arbitrary(u)?)),
            false => Place::arbitrary(u),
        };
        Ok(match u.int_in_range(0..=18)? {
            0..=1 => Self::View(
                there(u)?,
                match u.ratio(1, 3)? {
                    true => Some((u.int_in_range(-1..=4)?, u.int_in_range(-2..=5)?)),
                    false => None,
                },
            ),
            2..=7 => Self::Create(Place::arbitrary(u)?, text(u)?),
            8..=10 => Self::StrReplace(file(u)?, Old::arbitrary(u)?, text(u)?),
            11..=13 => Self::Insert(file(u)?, Line::arbitrary(u)?, text(u)?),
            14 => Self::Delete(there(u)?),
            _ => Self::Rename(there(u)?, Place::arbitrary(u)?),
        })
    }
}

impl<'a> Arbitrary<'a> for Old {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.ratio(3, 4)? {
            true => Self::Line(u8::arbitrary(u)?),
            false => Self::Text(u.choose(OLDS)?),
        })
    }
}

impl<'a> Arbitrary<'a> for Line {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.ratio(7, 8)? {
            true => Self::There(u8::arbitrary(u)?),
            false => Self::Number(u.int_in_range(-1..=9)?),
        })
    }
}

impl<'a> Arbitrary<'a> for Place {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=9)? {
            0 if u.ratio(1, 4)? => Self::There(u8::arbitrary(u)?),
            0..=3 => Self::Below(u8::arbitrary(u)?, names(u, 1)?),
            _ => Self::New(names(u, 0)?),
        })
    }
}

fn names(u: &mut Unstructured<'_>, least: usize) -> Result<String> {
    let mut path = String::new();
    for _ in 0..u.int_in_range(least..=3)? {
        path.push_str(u.choose(NAMES)?);
    }
    Ok(path)
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 16)? {
        // Several chunks, and more than one view shows.
        return Ok("0123456789abcdef\n".repeat(u.int_in_range(1..=1_000)?));
    }
    Ok(u.choose(TEXTS)?.to_string())
}

impl Act {
    /// The command as it is for what is there now; `None` if it led too deep.
    #[must_use]
    pub fn command(&self, memory: &Memory) -> Option<Command> {
        let command = match self {
            Self::View(place, range) => Command::View {
                path: place.path(memory),
                view_range: range.map(|(start, end)| ViewRange {
                    start: start.into(),
                    end: end.into(),
                }),
            },
            Self::Create(place, text) => Command::Create {
                path: place.path(memory),
                file_text: text.clone(),
            },
            Self::StrReplace(place, old, new) => {
                let path = place.path(memory);
                let old_str = match old {
                    Old::Line(at) => pick(&lines(memory, &path), *at).unwrap_or_default(),
                    Old::Text(text) => (*text).to_owned(),
                };
                Command::StrReplace {
                    path,
                    old_str,
                    new_str: new.clone(),
                }
            }
            Self::Insert(place, line, text) => {
                let path = place.path(memory);
                let count = lines(memory, &path).len() as i64;
                Command::Insert {
                    path,
                    insert_line: match line {
                        Line::There(at) => i64::from(*at) % (count + 1),
                        Line::Number(number) => i64::from(*number),
                    },
                    insert_text: text.clone(),
                }
            }
            Self::Delete(place) => Command::Delete {
                path: place.path(memory),
            },
            Self::Rename(from, to) => Command::Rename {
                old_path: from.path(memory),
                new_path: to.path(memory),
            },
        };
        let deep = |path: &String| path.matches('/').count();
        let is_deep = match &command {
            Command::Create { path, .. } => deep(path) > DEPTH_MAX,
            Command::Rename { old_path, new_path } => {
                let below = memory
                    .files
                    .keys()
                    .chain(&memory.directories)
                    .filter(|path| path.starts_with(old_path));
                below.map(deep).max().unwrap_or(0) + deep(new_path) > DEPTH_MAX
            }
            _ => false,
        };
        (!is_deep).then_some(command)
    }
}

impl Place {
    fn path(&self, memory: &Memory) -> String {
        const ROOT: &str = "/memories";
        let files: Vec<&String> = memory.files.keys().collect();
        let all: Vec<&String> = memory
            .directories
            .iter()
            .chain(memory.files.keys())
            .collect();
        match self {
            Self::File(at) => pick(&files, *at),
            Self::There(at) => pick(all.get(1..).unwrap_or_default(), *at),
            Self::Below(at, names) => pick(&all, *at).map(|path| path + names),
            Self::New(names) => Some(format!("{ROOT}{names}")),
        }
        .unwrap_or_else(|| ROOT.to_owned())
    }
}

fn lines(memory: &Memory, path: &str) -> Vec<String> {
    memory
        .files
        .get(path)
        .map_or_else(Vec::new, |text| naive::lines(text))
}

fn pick<T: ToString>(from: &[T], at: u8) -> Option<String> {
    from.get(usize::from(at) % from.len().max(1))
        .map(T::to_string)
}
