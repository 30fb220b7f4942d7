//! Holds sequences of commands against a model so simple that it can be read at a glance.
//!
//! The model is a sorted map of paths to texts and a set of directories. Every reply must be
//! the model's to the byte; at each reopening and at the end the whole tree is compared
//! through views, the totals through `stats`, and the store is verified to its last record.
//!
//! 256 sequences; set `PROPTEST_CASES` for more.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use strongroom::backend::{MemoryBackend, MemoryKeyStore};
use strongroom::edit::size_text;
use strongroom::policy::{self, Policy};
use strongroom::wire::{Command, ViewRange};
use strongroom::{Tenant, Vault};

use common::{assert_sound, key_line};

const ROOT: &str = "/memories";
const TENANTS: [&str; 2] = ["one", "two/2"];
const VIEW_CHARS_MAX: usize = 16_000;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_does_what_the_model_does(
        rules in select(&[Rules::DEFAULT, Rules::OVERWRITE, Rules::TIGHT][..]),
        steps in prop::collection::vec(step(), 1..50),
    ) {
        run(rules, &steps);
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A tenant and a command whose paths are open yet: most are to meet something.
    Run(usize, Command, Place, Place),
    Reopen,
}

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

/// What the policy says of things that the model knows.
#[derive(Debug, Clone, Copy)]
struct Rules {
    overwrite: bool,
    file_bytes_max: usize,
    files_max: usize,
    total_bytes_max: usize,
}

impl Rules {
    const DEFAULT: Self = Self {
        overwrite: false,
        file_bytes_max: 256 << 10,
        files_max: 10_000,
        total_bytes_max: 64 << 20,
    };
    const OVERWRITE: Self = Self {
        overwrite: true,
        ..Self::DEFAULT
    };
    /// Limits that a short sequence meets.
    const TIGHT: Self = Self {
        overwrite: true,
        file_bytes_max: 16 << 10,
        files_max: 4,
        total_bytes_max: 32 << 10,
    };

    /// Redaction is off: it has tests of its own, and here it would take most of the time.
    fn policy(self) -> Policy {
        let on_existing = if self.overwrite { "overwrite" } else { "error" };
        let Self {
            file_bytes_max,
            files_max,
            total_bytes_max,
            ..
        } = self;
        let text = format!(
            "schema = 1\n[write]\non_existing = \"{on_existing}\"\n[limits]\n\
             max_file_bytes = \"{file_bytes_max}B\"\nmax_image_bytes = \"1KiB\"\n\
             max_files = {files_max}\nmax_total_bytes = \"{total_bytes_max}B\"\n\
             [redaction]\nrule_packs = []\n"
        );
        policy::load(&text, "the model's policy").unwrap()
    }
}

fn run(rules: Rules, steps: &[Step]) {
    let ground = (
        Arc::new(MemoryBackend::new()),
        Arc::new(MemoryKeyStore::new()),
    );
    let open = || {
        Vault::builder()
            .on(ground.0.clone(), ground.1.clone())
            .key_source(key_line())
            .create(true)
            .policy(rules.policy())
            .open()
            .unwrap()
    };
    let tenants = |vault: &Vault| TENANTS.map(|name| vault.tenant(name).unwrap());
    let mut models = TENANTS.map(|_| Model::new(rules));
    let mut vault = open();
    let mut handles = tenants(&vault);
    let mut trail = Vec::new();
    for step in steps {
        match step {
            Step::Run(tenant, command, first, second) => {
                let model = &mut models[*tenant];
                let command = with_paths(command, first.path(model), second.path(model));
                let reply = handles[*tenant].run(&command).unwrap();
                let text = reply.as_text().unwrap();
                let (expected, is_error) = match model.run(&command) {
                    Ok(text) => (text, false),
                    Err(text) => (text, true),
                };
                trail.push(shown(*tenant, &command));
                assert_eq!(text, expected, "{trail:#?}");
                assert_eq!(reply.is_error, is_error, "{trail:#?}: {text}");
            }
            Step::Reopen => {
                vault.close().unwrap();
                vault = open();
                handles = tenants(&vault);
                trail.push("reopen".to_owned());
                compare(&vault, &handles, &models, &trail);
            }
        }
    }
    compare(&vault, &handles, &models, &trail);
    assert_sound(&vault, "at the end");
    vault.close().unwrap();
    // What is checked is what is stored, not what this handle remembers.
    let vault = open();
    assert_sound(&vault, "opened again");
    compare(&vault, &tenants(&vault), &models, &trail);
}

/// The whole tree through views, and the totals.
fn compare(vault: &Vault, handles: &[Tenant; 2], models: &[Model; 2], trail: &[String]) {
    let stats = vault.stats().unwrap();
    for (handle, model) in handles.iter().zip(models) {
        for path in model.directories.iter().chain(model.files.keys()) {
            let shown = handle.view(path, None).unwrap();
            let expected = model.view(path, None).unwrap();
            assert_eq!(shown.as_text(), Some(&*expected), "{trail:#?}");
        }
        let totals = stats.tenants.iter().find(|t| t.name == handle.name());
        let totals = totals.map_or((0, 0), |totals| (totals.files, totals.bytes));
        let expected = (model.files.len() as u64, model.bytes() as u64);
        assert_eq!(totals, expected, "{}: {trail:#?}", handle.name());
    }
}

// The commands.

fn step() -> impl Strategy<Value = Step> {
    let tenant = 0..TENANTS.len();
    let run = (tenant, command())
        .prop_map(|(tenant, (command, first, second))| Step::Run(tenant, command, first, second));
    prop_oneof![30 => run, 1 => Just(Step::Reopen)]
}

/// A command without paths, and the places that they will be.
fn command() -> impl Strategy<Value = (Command, Place, Place)> {
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
        2 => (view, there(), new()),
        5 => (create, new(), new()),
        3 => (str_replace, file(), new()),
        3 => (insert, file(), new()),
        1 => (delete, there(), new()),
        5 => (rename, there(), new()),
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
        1 => Just("/node_modules"),
    ];
    prop::collection::vec(name, depths).prop_map(|names| names.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        8 => select(&["x\n", "x", "x\ny\n", "y\nx", "aaa\n", "a\r\nb\r\n", "\n", "é\u{2028}x\n\n"][..])
            .prop_map(str::to_owned),
        // Several chunks, and more than one view shows once it stands there twice.
        2 => (1..900_usize).prop_map(|lines| "0123456789abcdef\n".repeat(lines)),
    ]
}

// The model.

/// A tenant's memory, in the plainest form.
struct Model {
    rules: Rules,
    files: BTreeMap<String, String>,
    directories: BTreeSet<String>,
}

type Replied = Result<String, String>;

impl Model {
    fn new(rules: Rules) -> Self {
        Self {
            rules,
            files: BTreeMap::new(),
            directories: BTreeSet::from([ROOT.to_owned()]),
        }
    }

    fn bytes(&self) -> usize {
        self.files.values().map(String::len).sum()
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains(path)
    }

    fn run(&mut self, command: &Command) -> Replied {
        match command {
            Command::View { path, view_range } => self.view(path, *view_range),
            Command::Create { path, file_text } => self.create(path, file_text),
            Command::StrReplace {
                path,
                old_str,
                new_str,
            } => self.str_replace(path, old_str, new_str),
            Command::Insert {
                path,
                insert_line,
                insert_text,
            } => self.insert(path, *insert_line, insert_text),
            Command::Delete { path } => self.delete(path),
            Command::Rename { old_path, new_path } => self.rename(old_path, new_path),
        }
    }

    fn view(&self, path: &str, range: Option<ViewRange>) -> Replied {
        if let Some(text) = self.files.get(path) {
            let lines = lines(text);
            let has = format!("{path} has {} line{}", lines.len(), plural(lines.len()));
            let (first, last, note) = fit(range, lines.len(), "line", &has)?;
            let header = format!("Here's the content of {path} with line numbers:");
            return Ok(numbered(header, &lines, first, last, note));
        }
        if !self.directories.contains(path) {
            return Err(format!(
                "The path {path} does not exist. Please provide a valid path."
            ));
        }
        let mut rows = vec![format!("{}\t{path}", self.size(path))];
        for child in self.shown(path) {
            rows.push(self.row(&child));
            for grandchild in self.shown(&child) {
                rows.push(self.row(&grandchild));
            }
        }
        let has = format!(
            "The listing of {path} has {} row{}",
            rows.len(),
            plural(rows.len())
        );
        let (first, last, note) = fit(range, rows.len(), "row", &has)?;
        let mut text = format!(
            "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        );
        for row in rows[first - 1..last].iter().chain(&note) {
            text.push('\n');
            text.push_str(row);
        }
        Ok(text)
    }

    fn row(&self, path: &str) -> String {
        let slash = if self.directories.contains(path) {
            "/"
        } else {
            ""
        };
        format!("{}\t{path}{slash}", self.size(path))
    }

    fn size(&self, path: &str) -> String {
        let at_or_below = |file: &&String| is_at_or_below(path, file);
        let bytes = self.files.keys().filter(at_or_below);
        size_text(bytes.map(|file| self.files[file].len() as u64).sum())
    }

    /// What a listing shows right below a directory, in byte order of the names.
    fn shown(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<&str> = (self.files.keys().chain(&self.directories))
            .filter_map(|path| path.strip_prefix(directory)?.strip_prefix('/'))
            .filter(|name| !name.contains('/'))
            .filter(|name| !name.starts_with('.') && *name != "node_modules")
            .collect();
        names.sort_unstable();
        names
            .iter()
            .map(|name| format!("{directory}/{name}"))
            .collect()
    }

    fn create(&mut self, path: &str, text: &str) -> Replied {
        self.may_make_parents(path)?;
        if self.directories.contains(path) {
            return Err(format!("Error: {path} is a directory"));
        }
        if self.files.contains_key(path) && !self.rules.overwrite {
            return Err(format!("Error: File {path} already exists"));
        }
        self.put(path, text.to_owned())?;
        Ok(format!("File created successfully at: {path}"))
    }

    fn str_replace(&mut self, path: &str, old: &str, new: &str) -> Replied {
        let text = self.files.get(path).ok_or(format!(
            "Error: The path {path} does not exist. Please provide a valid path."
        ))?;
        if old.is_empty() {
            return Err(format!(
                "Error: The field `old_str` is empty. It must be the text to replace, exactly as it stands in {path}."
            ));
        }
        let starts = text.char_indices().map(|(at, _)| at);
        let hits: Vec<usize> = starts.filter(|at| text[*at..].starts_with(old)).collect();
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let [hit] = hits[..] else {
            if hits.is_empty() {
                return Err(format!(
                    "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
                ));
            }
            let lines: BTreeSet<usize> = hits.into_iter().map(line_of).collect();
            let mut named: Vec<String> = lines.iter().take(1_000).map(usize::to_string).collect();
            if lines.len() > named.len() {
                named.push("…".to_owned());
            }
            return Err(format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. Please ensure it is unique",
                named.join(", ")
            ));
        };
        let edited = [&text[..hit], new, &text[hit + old.len()..]].concat();
        let first = line_of(hit);
        self.put(path, edited.clone())?;
        let lines = lines(&edited);
        let last = first + new.split_inclusive('\n').count().saturating_sub(1);
        Ok(numbered(
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
                .to_owned(),
            &lines,
            first.min(lines.len()).saturating_sub(2).max(1),
            (last.min(lines.len()) + 2).min(lines.len()),
            None,
        ))
    }

    fn insert(&mut self, path: &str, line: i64, new: &str) -> Replied {
        let text = self
            .files
            .get(path)
            .ok_or(format!("Error: The path {path} does not exist"))?;
        let mut lines = lines(text);
        let Some(at) = usize::try_from(line).ok().filter(|at| *at <= lines.len()) else {
            return Err(format!(
                "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {}]",
                lines.len()
            ));
        };
        let is_open = !text.is_empty() && !text.ends_with('\n');
        let end = if new.ends_with("\r\n") { "\r\n" } else { "\n" };
        let body = new.strip_suffix(end).unwrap_or(new);
        // Whole lines go in; the last one of an open text stays open, unless it is blank.
        let new = if is_open && at == lines.len() {
            let is_blank = body.is_empty() || body.ends_with('\n');
            [end, body, if is_blank { end } else { "" }].concat()
        } else {
            [body, end].concat()
        };
        lines.insert(at, &new);
        let edited = lines.concat();
        self.put(path, edited)?;
        Ok(format!("The file {path} has been edited."))
    }

    fn delete(&mut self, path: &str) -> Replied {
        if path == ROOT {
            return Err("Error: Cannot delete the /memories directory itself".to_owned());
        }
        if !self.exists(path) {
            return Err(format!("Error: The path {path} does not exist"));
        }
        self.files.retain(|file, _| !is_at_or_below(path, file));
        self.directories
            .retain(|directory| !is_at_or_below(path, directory));
        Ok(format!("Successfully deleted {path}"))
    }

    fn rename(&mut self, from: &str, to: &str) -> Replied {
        if from == ROOT {
            return Err("Error: Cannot rename the /memories directory itself".to_owned());
        }
        if !self.exists(from) {
            return Err(format!("Error: The path {from} does not exist"));
        }
        if self.exists(to) {
            return Err(format!("Error: The destination {to} already exists"));
        }
        if is_at_or_below(from, to) {
            return Err(format!("Error: Cannot move {from} into itself"));
        }
        self.may_make_parents(to)?;
        let moved = |path: String| match path.strip_prefix(from) {
            Some(below) if is_at_or_below(from, &path) => format!("{to}{below}"),
            _ => path,
        };
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.map(|(path, text)| (moved(path), text)).collect();
        let directories = std::mem::take(&mut self.directories).into_iter();
        self.directories = directories.map(moved).collect();
        self.make_parents(to);
        Ok(format!("Successfully renamed {from} to {to}"))
    }

    /// The limits, then the write.
    fn put(&mut self, path: &str, text: String) -> Result<(), String> {
        let refuse = |what: String| Err(format!("Error: {path} was not written: {what}"));
        let Rules {
            file_bytes_max,
            files_max,
            total_bytes_max,
            ..
        } = self.rules;
        let old_bytes = self.files.get(path).map(String::len);
        if text.len() > file_bytes_max {
            return refuse(format!(
                "the file would be too large, {} of {file_bytes_max} bytes. Shorten it, or split it into several files",
                text.len()
            ));
        }
        if old_bytes.is_none() && self.files.len() == files_max {
            return refuse(format!(
                "there would be too many files, {} of {files_max}. Delete or merge files that are no longer needed",
                files_max + 1
            ));
        }
        let total = self.bytes() - old_bytes.unwrap_or(0) + text.len();
        if total > total_bytes_max && text.len() > old_bytes.unwrap_or(0) {
            return refuse(format!(
                "the memory would be too large, {total} of {total_bytes_max} bytes. Delete or shorten files that are no longer needed"
            ));
        }
        self.make_parents(path);
        self.files.insert(path.to_owned(), text);
        Ok(())
    }

    fn make_parents(&mut self, path: &str) {
        self.directories.extend(parents(path).map(str::to_owned));
    }

    /// Nothing goes below a file, and there are at most as many directories as files.
    fn may_make_parents(&self, path: &str) -> Result<(), String> {
        if let Some(file) = parents(path).find(|parent| self.files.contains_key(*parent)) {
            return Err(format!("Error: {file} is a file, not a directory"));
        }
        let missing = parents(path).filter(|parent| !self.directories.contains(*parent));
        let made = missing.count();
        // The root is none of a tenant's own.
        let have = self.directories.len() - 1 + made;
        let limit = self.rules.files_max;
        if made > 0 && have > limit {
            return Err(format!(
                "Error: {path} was not written: there would be too many directories, {have} of {limit}. Delete directories that are no longer needed"
            ));
        }
        Ok(())
    }
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/').map(|(at, _)| at);
    slashes.skip(1).map(|at| &path[..at])
}

fn is_at_or_below(top: &str, path: &str) -> bool {
    let below = path.strip_prefix(top);
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The first and last of `total` that a range asks for, and what is to be said of it.
fn fit(
    range: Option<ViewRange>,
    total: usize,
    unit: &str,
    has: &str,
) -> Result<(usize, usize, Option<String>), String> {
    let Some(ViewRange { start, end }) = range else {
        return Ok((1, total, None));
    };
    let last = i64::try_from(total).unwrap();
    let fault = if start < 1 {
        "The start must be 1 or more"
    } else if start > last {
        "The start lies past the end"
    } else if end < start && end != -1 {
        "The end must not lie before the start; -1 means the last one"
    } else {
        let note = (end > last).then(|| {
            format!("Note: view_range was cut to [{start}, {last}]; the last {unit} is {last}.")
        });
        let shown = if end == -1 { last } else { end.min(last) };
        let index = |number| usize::try_from(number).unwrap();
        return Ok((index(start), index(shown), note));
    };
    Err(format!(
        "Error: Invalid `view_range` parameter: [{start}, {end}]. {fault}. {has}."
    ))
}

fn numbered(
    mut text: String,
    lines: &[&str],
    first: usize,
    last: usize,
    note: Option<String>,
) -> String {
    let mut notes: Vec<String> = note.into_iter().collect();
    if lines.is_empty() {
        notes.push("Note: the file is empty (0 lines).".to_owned());
    }
    let mut chars = 0;
    for number in first..=last {
        let line = lines[number - 1];
        chars += line.chars().count();
        if chars > VIEW_CHARS_MAX && number > first {
            notes.push(format!(
                "Note: lines {number}-{last} of {} are not shown. Continue with view_range [{number}, {last}].",
                lines.len()
            ));
            break;
        }
        let line = line.strip_suffix('\n').unwrap_or(line);
        text.push_str(&format!("\n{number:>6}\t{line}"));
    }
    for note in notes {
        text.push('\n');
        text.push_str(&note);
    }
    text
}
