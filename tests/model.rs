//! Holds sequences of commands against a reference so simple that it can be read at a glance.
//!
//! Paths are few and spelled in several ways, so that they meet; the policy changes on the
//! way, things come under hold, keys are rotated and the store is opened again. Every reply
//! must be the reference's to the byte; at each reopening and at the end the whole tree is
//! compared through views, the totals through `stats`, and the store is verified to its last
//! record.
//!
//! 300 sequences in memory, a tenth as many on disk; `STRONGROOM_MODEL_SEQUENCES=10000` for more.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod reference;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use strongroom::backend::{MemoryBackend, MemoryKeyStore};
use strongroom::wire::{Command, Reply, ViewRange};
use strongroom::{Tenant, Vault, VaultBuilder};

use common::{assert_sound, key_line};
use reference::{Model, ROOT, Replied, Rules};

const TENANTS: [&str; 3] = ["one", "two/2", "two/3"];
const STEPS_MAX: usize = 50;

#[test]
fn a_store_in_memory_does_what_the_reference_does() {
    check(sequences(), |rules, steps| {
        let ground = (
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        );
        run(rules, steps, &|| {
            let builder = Vault::builder().on(ground.0.clone(), ground.1.clone());
            builder.key_source(key_line())
        });
    });
}

#[test]
fn a_store_on_disk_does_what_the_reference_does() {
    check(sequences().div_ceil(10), |rules, steps| {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("store");
        run(rules, steps, &|| {
            Vault::builder().path(&path).key_source(key_line())
        });
    });
}

fn sequences() -> u32 {
    let asked = std::env::var("STRONGROOM_MODEL_SEQUENCES");
    asked.map_or(300, |text| text.parse().unwrap())
}

/// Tries that many sequences; one that fails is made as short as it still fails.
fn check(sequences: u32, run: impl Fn(Rules, &[Step])) {
    let config = ProptestConfig {
        cases: sequences,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let strategy = (
        select(&Rules::ALL[..]),
        prop::collection::vec(step(), 1..=STEPS_MAX),
    );
    let tried = TestRunner::new(config).run(&strategy, |(rules, steps)| {
        run(rules, &steps);
        Ok(())
    });
    if let Err(failure) = tried {
        panic!("{failure}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A tenant and a command whose paths are open yet: most are to meet something.
    Run(usize, Command, Spelled, Spelled),
    Hold(usize, Place),
    Unhold(usize, Place),
    /// Another policy from now on, for all tenants.
    Policy(Rules),
    Reopen,
    /// What changes nothing that is stored: other keys for a tenant, a sweep.
    Rotate(usize),
    Sweep,
}

/// A path as a model may write it.
#[derive(Debug, Clone)]
enum Spelled {
    Canonical(Place),
    /// With more slashes, `.` components and decomposed letters.
    Loosely(Place),
    /// A path that the guard refuses.
    Refused(&'static str),
}

impl Spelled {
    fn path(&self, model: &Model) -> String {
        match self {
            Self::Canonical(place) => place.path(model),
            Self::Loosely(place) => {
                let path = place
                    .path(model)
                    .replace("/b", "//./b")
                    .replace('é', "e\u{301}");
                format!("{path}/")
            }
            Self::Refused(path) => (*path).to_owned(),
        }
    }
}

const REFUSED: [&str; 10] = [
    "",
    "/",
    "a.md",
    "/memoriesX/a",
    "/etc/passwd",
    "/memories/../etc/passwd",
    "/memories/%2E%2e/a",
    "/memories/a\u{202e}b",
    "/memories/a\\b",
    "/memories/a:b",
];

/// A path, told by what is there when its turn comes.
#[derive(Debug, Clone)]
enum Place {
    /// One of the files and directories.
    There(Index),
    /// One of the files.
    File(Index),
    /// Below one of the files and directories.
    Below(Index, String),
    /// Wherever this leads from the root.
    New(String),
}

impl Place {
    fn path(&self, model: &Model) -> String {
        let all: Vec<&String> = model.directories.iter().chain(model.files.keys()).collect();
        let (root, below) = (&all[..1], &all[1..]);
        let files: Vec<&String> = model.files.keys().collect();
        match self {
            Self::File(index) if !files.is_empty() => (*index.get(&files)).clone(),
            Self::There(index) | Self::File(index) if !below.is_empty() => {
                (*index.get(below)).clone()
            }
            Self::There(_) | Self::File(_) => root[0].clone(),
            Self::Below(index, names) => format!("{}{names}", index.get(&all)),
            Self::New(names) => format!("{ROOT}{names}"),
        }
    }
}

fn run(rules: Rules, steps: &[Step], ground: &dyn Fn() -> VaultBuilder) {
    let tenants = |vault: &Vault| TENANTS.map(|name| vault.tenant(name).unwrap());
    let mut models = TENANTS.map(|_| Model::new(rules));
    let made = ground().create(true).policy(rules.policy());
    let mut vault = made.open().unwrap();
    let mut handles = tenants(&vault);
    let mut trail = vec![format!("{rules:?}")];
    for step in steps {
        match step {
            Step::Run(at, command, first, second) => {
                let model = &mut models[*at];
                let command = with_paths(command, first.path(model), second.path(model));
                trail.push(shown(*at, &command));
                let reply = handles[*at].run(&command).unwrap();
                expect(&reply, &model.run(&command), &trail);
            }
            Step::Hold(at, place) => {
                let path = place.path(&models[*at]);
                trail.push(format!("{at}: hold {path}"));
                let reply = handles[*at].add_hold(&path, "the model's", None).unwrap();
                expect(&reply, &models[*at].hold(&path), &trail);
            }
            Step::Unhold(at, place) => {
                let path = place.path(&models[*at]);
                trail.push(format!("{at}: unhold {path}"));
                let reply = handles[*at].remove_hold(&path).unwrap();
                expect(&reply, &models[*at].unhold(&path), &trail);
            }
            Step::Policy(rules) => {
                trail.push(format!("{rules:?}"));
                vault.set_policy(&rules.policy()).unwrap();
                for model in &mut models {
                    model.rules = *rules;
                }
            }
            Step::Reopen => {
                trail.push("reopen".to_owned());
                vault.close().unwrap();
                vault = ground().open().unwrap();
                handles = tenants(&vault);
                compare(&vault, &handles, &models, &trail);
            }
            Step::Rotate(at) => {
                // A tenant that never wrote anything is not there.
                let there = vault.stats().unwrap().tenants;
                if there.iter().any(|tenant| tenant.name == TENANTS[*at]) {
                    trail.push(format!("{at}: rotate"));
                    vault.rotate_keys(Some(TENANTS[*at]), |_, _, _| ()).unwrap();
                }
            }
            Step::Sweep => {
                trail.push("sweep".to_owned());
                vault.expire(None, false, |_, _| ()).unwrap();
            }
        }
    }
    compare(&vault, &handles, &models, &trail);
    assert_sound(&vault, "at the end");
    vault.close().unwrap();
    // What is checked is what is stored, not what this handle remembers.
    let vault = ground().open().unwrap();
    assert_sound(&vault, "opened again");
    compare(&vault, &tenants(&vault), &models, &trail);
    vault.close().unwrap();
}

/// The reply is the reference's, to the byte, or up to where that ends in `…`.
fn expect(reply: &Reply, expected: &Replied, trail: &[String]) {
    let text = reply.as_text().unwrap();
    let (expected, is_error) = match expected {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    match expected.strip_suffix('…') {
        Some(start) => assert!(
            text.starts_with(start),
            "{text} is not {expected}: {trail:#?}"
        ),
        None => assert_eq!(text, expected, "{trail:#?}"),
    }
    assert_eq!(reply.is_error, is_error, "{trail:#?}: {text}");
}

/// The whole tree through views, the totals and the holds.
fn compare(vault: &Vault, handles: &[Tenant], models: &[Model], trail: &[String]) {
    let stats = vault.stats().unwrap();
    for (handle, model) in handles.iter().zip(models) {
        for path in model.directories.iter().chain(model.files.keys()) {
            let shown = handle.view(path, None).unwrap();
            expect(&shown, &model.view(path, None), trail);
        }
        let totals = stats.tenants.iter().find(|t| t.name == handle.name());
        let totals = totals.map_or((0, 0), |totals| (totals.files, totals.bytes));
        let expected = (model.files.len() as u64, model.bytes() as u64);
        assert_eq!(totals, expected, "{}: {trail:#?}", handle.name());
        let holds = handle.holds().unwrap().into_iter().map(|hold| hold.path);
        assert_eq!(
            holds.collect::<Vec<_>>(),
            Vec::from_iter(model.holds.clone()),
            "{trail:#?}"
        );
    }
}

// The commands.

fn step() -> impl Strategy<Value = Step> {
    let tenant = || select(&[0, 0, 0, 1, 1, 2][..]);
    let run = (tenant(), command())
        .prop_map(|(tenant, (command, first, second))| Step::Run(tenant, command, first, second));
    prop_oneof![
        60 => run,
        2 => (tenant(), there()).prop_map(|(tenant, place)| Step::Hold(tenant, place)),
        2 => (tenant(), there()).prop_map(|(tenant, place)| Step::Unhold(tenant, place)),
        2 => select(&Rules::ALL[..]).prop_map(Step::Policy),
        2 => Just(Step::Reopen),
        1 => tenant().prop_map(Step::Rotate),
        1 => Just(Step::Sweep),
    ]
}

fn spelled(place: impl Strategy<Value = Place>) -> impl Strategy<Value = Spelled> {
    let how = prop_oneof![12 => Just(0), 3 => Just(1), 1 => Just(2)];
    (place, how, select(&REFUSED[..])).prop_map(|(place, how, refused)| match how {
        0 => Spelled::Canonical(place),
        1 => Spelled::Loosely(place),
        _ => Spelled::Refused(refused),
    })
}

/// A command without paths, and the places that they will be.
fn command() -> impl Strategy<Value = (Command, Spelled, Spelled)> {
    let olds = select(&["x", "a", "aa", "\n", "x\n", "y\n", "zz", ""][..]);
    let range = prop::option::weighted(0.3, (-1..4_i64, -2..5_i64));
    let path = String::new();
    let view = {
        let path = path.clone();
        range.prop_map(move |range| Command::View {
            path: path.clone(),
            view_range: range.map(|(start, end)| ViewRange { start, end }),
        })
    };
    let create = {
        let path = path.clone();
        text().prop_map(move |file_text| Command::Create {
            path: path.clone(),
            file_text,
        })
    };
    let str_replace = {
        let path = path.clone();
        (olds, text()).prop_map(move |(old, new_str)| Command::StrReplace {
            path: path.clone(),
            old_str: old.to_owned(),
            new_str,
        })
    };
    let insert = {
        let path = path.clone();
        (-1..4_i64, text()).prop_map(move |(insert_line, insert_text)| Command::Insert {
            path: path.clone(),
            insert_line,
            insert_text,
        })
    };
    let delete = Just(Command::Delete { path: path.clone() });
    let rename = Just(Command::Rename {
        old_path: path.clone(),
        new_path: path,
    });
    prop_oneof![
        2 => (view, spelled(there()), spelled(new())),
        5 => (create, spelled(new()), spelled(new())),
        3 => (str_replace, spelled(file()), spelled(new())),
        3 => (insert, spelled(file()), spelled(new())),
        1 => (delete, spelled(there()), spelled(new())),
        5 => (rename, spelled(there()), spelled(new())),
    ]
}

/// A command as a failing test prints it: `Debug` shows no texts.
fn shown(tenant: usize, command: &Command) -> String {
    let short = |text: &String| match text.char_indices().nth(20) {
        Some((cut, _)) => format!("{:?}… ({} bytes)", &text[..cut], text.len()),
        None => format!("{text:?}"),
    };
    let what = match command {
        Command::View { path, view_range } => format!("{path} {view_range:?}"),
        Command::Create { path, file_text } => format!("{path} {}", short(file_text)),
        Command::StrReplace {
            path,
            old_str,
            new_str,
        } => format!("{path} {old_str:?} {}", short(new_str)),
        Command::Insert {
            path,
            insert_line,
            insert_text,
        } => format!("{path} {insert_line} {}", short(insert_text)),
        Command::Delete { path } => path.clone(),
        Command::Rename { old_path, new_path } => format!("{old_path} {new_path}"),
    };
    format!("{}: {} {what}", TENANTS[tenant], command.name())
}

fn with_paths(command: &Command, first: String, second: String) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::View { path, .. }
        | Command::Create { path, .. }
        | Command::StrReplace { path, .. }
        | Command::Insert { path, .. }
        | Command::Delete { path } => *path = first,
        Command::Rename { old_path, new_path } => {
            *old_path = first;
            *new_path = second;
        }
    }
    command
}

/// Mostly what is there.
fn there() -> impl Strategy<Value = Place> {
    let index = || any::<Index>();
    prop_oneof![12 => index().prop_map(Place::There), 1 => new()]
}

/// Mostly a file.
fn file() -> impl Strategy<Value = Place> {
    let index = || any::<Index>();
    prop_oneof![10 => index().prop_map(Place::File), 1 => there()]
}

/// Mostly what is not there, and near to what is.
fn new() -> impl Strategy<Value = Place> {
    let below = (any::<Index>(), names(1..3)).prop_map(|(index, names)| Place::Below(index, names));
    prop_oneof![
        4 => below,
        4 => names(0..5).prop_map(Place::New),
        // Near to the deepest path, and past it.
        1 => (27..34_usize).prop_map(|depth| Place::New("/a".repeat(depth))),
        1 => any::<Index>().prop_map(Place::There),
    ]
}

/// Few names, so that paths meet.
fn names(depths: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => Just("/a"),
        6 => Just("/b"),
        2 => Just("/a.md"),
        1 => Just("/.h"),
        1 => Just("/é"),
        1 => Just("/日本.md"),
        1 => Just("/node_modules"),
    ];
    prop::collection::vec(name, depths).prop_map(|names| names.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        8 => select(&["x\n", "x", "x\ny\n", "y\nx", "aaa\n", "a\r\nb\r\n", "\n", "é\u{2028}x\n\n"][..])
            .prop_map(str::to_owned),
        // A line as long as it may be, and longer.
        1 => (15_999..16_002_usize).prop_map(|chars| "é".repeat(chars)),
        // Several chunks, and more than one view shows once it stands there twice.
        2 => (1..900_usize).prop_map(|lines| "0123456789abcdef\n".repeat(lines)),
    ]
}
