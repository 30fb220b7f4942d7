//! The reference: a tenant's memory in the plainest form, and what each command does to it.
//!
//! Written from the tool's description and the exact texts alone, without a line of the
//! product's: files are a map of texts, directories a set of paths.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and no test file uses all of this"
)]

use std::collections::{BTreeMap, BTreeSet};

use strongroom::policy::{self, Policy};
use strongroom::wire::{Command, ViewRange};

pub const ROOT: &str = "/memories";
const VIEW_CHARS_MAX: usize = 16_000;
const LINE_CHARS_MAX: usize = 16_000;
const PATH_BYTES_MAX: usize = 1_024;
const DEPTH_MAX: usize = 32;

/// What the policy says of things that the model knows.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub overwrite: bool,
    pub file_bytes_max: usize,
    pub files_max: usize,
    pub total_bytes_max: usize,
    /// In byte order, as they are looked at.
    pub read_only: &'static [&'static str],
    pub denied: &'static [&'static str],
}

impl Rules {
    pub const DEFAULT: Self = Self {
        overwrite: false,
        file_bytes_max: 256 << 10,
        files_max: 10_000,
        total_bytes_max: 64 << 20,
        read_only: &[],
        denied: &[],
    };
    pub const OVERWRITE: Self = Self {
        overwrite: true,
        ..Self::DEFAULT
    };
    /// Limits that a short sequence meets.
    pub const TIGHT: Self = Self {
        overwrite: true,
        file_bytes_max: 16 << 10,
        files_max: 4,
        total_bytes_max: 32 << 10,
        ..Self::DEFAULT
    };
    /// Some of the few paths are read-only, some do not exist for an agent.
    pub const GUARDED: Self = Self {
        overwrite: true,
        read_only: &["/memories/*/a.md", "/memories/b/a/**"],
        denied: &["/memories/a/b/**", "/memories/a/é"],
        ..Self::DEFAULT
    };
    pub const ALL: [Self; 4] = [Self::DEFAULT, Self::OVERWRITE, Self::TIGHT, Self::GUARDED];

    /// Redaction is off: it has tests of its own, and here it would take most of the time.
    pub fn policy(self) -> Policy {
        let on_existing = if self.overwrite { "overwrite" } else { "error" };
        let Self {
            file_bytes_max,
            files_max,
            total_bytes_max,
            read_only,
            denied,
            ..
        } = self;
        let text = format!(
            "schema = 1\n[write]\non_existing = \"{on_existing}\"\n[limits]\n\
             max_file_bytes = \"{file_bytes_max}B\"\nmax_image_bytes = \"1KiB\"\n\
             max_files = {files_max}\nmax_total_bytes = \"{total_bytes_max}B\"\n\
             [paths]\nread_only = {read_only:?}\ndenied = {denied:?}\n\
             [redaction]\nrule_packs = []\n"
        );
        policy::load(&text, "the model's policy").unwrap()
    }

    /// What reads as missing: a denied path, and whatever is below it.
    fn is_denied(self, path: &str) -> bool {
        let mut above = above_and_itself(path);
        above.any(|path| self.denied.iter().any(|pattern| covers(pattern, path)))
    }

    fn may_write(self, path: &str) -> Result<(), String> {
        let refuse = |what| {
            Err(format!(
                "Error: {path} was not written: {what}. Write to another path"
            ))
        };
        if self.is_denied(path) {
            return refuse("it cannot be used");
        }
        if self.read_only.iter().any(|pattern| covers(pattern, path)) {
            return refuse("it is read-only");
        }
        Ok(())
    }

    /// What is denied reads as missing for edits too.
    fn may_edit(self, path: &str, missing: &str) -> Result<(), String> {
        if self.is_denied(path) {
            return Err(missing.to_owned());
        }
        self.may_write(path)
    }

    /// Whether a directory may go, or come, with all that could be below it.
    fn may_move(self, path: &str) -> Result<(), String> {
        self.may_write(path)?;
        let kinds = [
            (self.read_only, "is read-only"),
            (self.denied, "cannot be used"),
        ];
        for (patterns, what) in kinds {
            if let Some(pattern) = patterns.iter().find(|pattern| reaches_below(pattern, path)) {
                return Err(format!(
                    "Error: {path} was not written: {pattern} {what} and would be moved or deleted with it. Move or delete the other entries one by one"
                ));
            }
        }
        Ok(())
    }
}

/// Whether a pattern names exactly this path: `*` is any one name, `X/**` is X and all below.
fn covers(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix("/**") {
        Some(top) => above_and_itself(path).any(|path| covers(top, path)),
        None => {
            let (parts, names): (Vec<_>, Vec<_>) =
                (pattern.split('/').collect(), path.split('/').collect());
            parts.len() == names.len()
                && (parts.iter().zip(&names)).all(|(part, name)| *part == "*" || part == name)
        }
    }
}

/// Whether a pattern covers this path, or something that could be below it.
fn reaches_below(pattern: &str, path: &str) -> bool {
    let top = pattern.strip_suffix("/**").unwrap_or(pattern);
    let leads_there = above_and_itself(top).any(|above| covers(above, path));
    covers(pattern, path) || leads_there
}

/// `/memories`, then one name more each time, up to the path itself.
fn above_and_itself(path: &str) -> impl Iterator<Item = &str> {
    parents(path).chain([path])
}

/// What the guard makes of a path as it was written: the canonical path, or a refusal, of
/// which only the beginning is told if it ends in `…`.
pub fn guarded(raw: &str) -> Result<String, String> {
    if raw.is_empty() {
        return Err("Error: Path is empty. …".to_owned());
    }
    if raw != ROOT && !raw.starts_with("/memories/") {
        return Err(format!("Error: Path must start with /memories, got: {raw}"));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in raw.split('/').skip(2) {
        match name {
            "" | "." => {}
            // All that the test writes climb out.
            ".." => {
                return Err(format!(
                    "Error: Path {raw} would escape /memories directory"
                ));
            }
            name => names.push(name),
        }
    }
    let is_refused = |c: char| matches!(c, '\u{202e}' | '\\' | '\0' | ':');
    if raw.contains(is_refused) || raw.to_lowercase().contains("%2e") {
        return Err("Error: Path …".to_owned());
    }
    if names.len() > DEPTH_MAX {
        return Err(format!(
            "Error: Path {raw} is {} components deep, the limit is {DEPTH_MAX}.…",
            names.len()
        ));
    }
    let path = [&["/memories"], &names[..]].concat().join("/");
    Ok(path.replace("e\u{301}", "é"))
}

/// Sizes as a listing shows them, for less than a gibibyte.
fn size_text(bytes: usize) -> String {
    let tenths = |unit: usize| (bytes * 20 + unit) / (2 * unit);
    if bytes < 1 << 10 {
        format!("{bytes}B")
    } else if tenths(1 << 10) < 10_240 {
        format!("{}.{}K", tenths(1 << 10) / 10, tenths(1 << 10) % 10)
    } else {
        format!("{}.{}M", tenths(1 << 20) / 10, tenths(1 << 20) % 10)
    }
}

/// A tenant's memory, in the plainest form.
#[derive(Clone)]
pub struct Model {
    pub rules: Rules,
    pub files: BTreeMap<String, String>,
    pub directories: BTreeSet<String>,
    pub holds: BTreeSet<String>,
}

/// The text of a success or of an error.
pub type Replied = Result<String, String>;

impl Model {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            files: BTreeMap::new(),
            directories: BTreeSet::from([ROOT.to_owned()]),
            holds: BTreeSet::new(),
        }
    }

    pub fn bytes(&self) -> usize {
        self.files.values().map(String::len).sum()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains(path)
    }

    /// Carries out a command whose paths are as they were written.
    pub fn run(&mut self, command: &Command) -> Replied {
        match command {
            Command::View { path, view_range } => self.view(&guarded(path)?, *view_range),
            Command::Create { path, file_text } => self.create(&guarded(path)?, file_text),
            Command::StrReplace {
                path,
                old_str,
                new_str,
            } => self.str_replace(&guarded(path)?, old_str, new_str),
            Command::Insert {
                path,
                insert_line,
                insert_text,
            } => self.insert(&guarded(path)?, *insert_line, insert_text),
            Command::Delete { path } => self.delete(&guarded(path)?),
            Command::Rename { old_path, new_path } => {
                self.rename(&guarded(old_path)?, &guarded(new_path)?)
            }
        }
    }

    /// The operator's hold on a path.
    pub fn hold(&mut self, raw: &str) -> Replied {
        let path = &*guarded(raw)?;
        if !self.exists(path) {
            return Err(format!("Error: The path {path} does not exist"));
        }
        self.holds.insert(path.to_owned());
        Ok(format!("Hold added on {path}"))
    }

    pub fn unhold(&mut self, raw: &str) -> Replied {
        let path = &*guarded(raw)?;
        match self.holds.remove(path) {
            true => Ok(format!("Hold removed from {path}")),
            false => Err(format!("Error: There is no hold on {path}")),
        }
    }

    pub fn view(&self, path: &str, range: Option<ViewRange>) -> Replied {
        let missing = format!("The path {path} does not exist. Please provide a valid path.");
        if self.rules.is_denied(path) {
            return Err(missing);
        }
        if let Some(text) = self.files.get(path) {
            let lines = lines(text);
            let has = format!("{path} has {} line{}", lines.len(), plural(lines.len()));
            let (first, last, note) = fit(range, lines.len(), "line", &has)?;
            let header = format!("Here's the content of {path} with line numbers:");
            return Ok(numbered(header, &lines, first, last, note));
        }
        if !self.directories.contains(path) {
            return Err(missing);
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
        let counts = |file: &&String| is_at_or_below(path, file) && !self.rules.is_denied(file);
        let files = self.files.keys().filter(counts);
        size_text(files.map(|file| self.files[file].len()).sum())
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
            .filter(|path| !self.rules.is_denied(path))
            .collect()
    }

    fn create(&mut self, path: &str, text: &str) -> Replied {
        if path == ROOT {
            return Err(format!("Error: {path} is a directory"));
        }
        self.rules.may_write(path)?;
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
        let missing =
            format!("Error: The path {path} does not exist. Please provide a valid path.");
        self.rules.may_edit(path, &missing)?;
        let text = self.files.get(path).ok_or(missing)?;
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
        let missing = format!("Error: The path {path} does not exist");
        self.rules.may_edit(path, &missing)?;
        let text = self.files.get(path).ok_or(missing)?;
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
        let missing = format!("Error: The path {path} does not exist");
        self.rules.may_edit(path, &missing)?;
        if !self.exists(path) {
            return Err(missing);
        }
        if self.directories.contains(path) {
            self.rules.may_move(path)?;
            self.nothing_held_in(path)?;
        } else {
            self.not_held(path)?;
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
        let missing = format!("Error: The path {from} does not exist");
        self.rules.may_edit(from, &missing)?;
        if to != ROOT {
            self.rules.may_write(to)?;
        }
        if !self.exists(from) {
            return Err(missing);
        }
        if self.exists(to) {
            return Err(format!("Error: The destination {to} already exists"));
        }
        if is_at_or_below(from, to) {
            return Err(format!("Error: Cannot move {from} into itself"));
        }
        self.not_held(from)?;
        self.may_make_parents(to)?;
        if self.directories.contains(from) {
            self.rules.may_move(from)?;
            self.nothing_held_in(from)?;
            self.rules.may_move(to)?;
            let all = self.files.keys().chain(&self.directories);
            for path in all.filter(|path| is_at_or_below(from, path)) {
                let path = format!("{to}{}", &path[from.len()..]);
                if path.split('/').count() - 2 > DEPTH_MAX || path.len() > PATH_BYTES_MAX {
                    return Err(format!(
                        "Error: Cannot move {from} to {to}: paths below it would have more than {DEPTH_MAX} levels or {PATH_BYTES_MAX} bytes. Choose a shorter destination"
                    ));
                }
            }
        }
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
        let mut numbered = (1..).zip(text.split('\n'));
        if let Some((number, line)) =
            numbered.find(|(_, line)| line.chars().count() > LINE_CHARS_MAX)
        {
            return refuse(format!(
                "line {number} would be too long, {} of {LINE_CHARS_MAX} characters. Break it into several lines",
                line.chars().count()
            ));
        }
        if old_bytes.is_some() {
            self.not_held(path)?;
        }
        // What was there before a limit was lowered may be over it.
        if old_bytes.is_none() && self.files.len() >= files_max {
            return refuse(format!(
                "there would be too many files, {} of {files_max}. Delete or merge files that are no longer needed",
                self.files.len() + 1
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

    /// A hold on a path keeps it and all below it.
    fn not_held(&self, path: &str) -> Result<(), String> {
        match self.holds.iter().any(|held| is_at_or_below(held, path)) {
            true => Err(held(path)),
            false => Ok(()),
        }
    }

    /// A directory stays where anything in it is held.
    fn nothing_held_in(&self, directory: &str) -> Result<(), String> {
        let mut holds = self.holds.iter();
        match holds.find(|held| is_at_or_below(held, directory) || is_at_or_below(directory, held))
        {
            Some(path) => Err(held(path)),
            None => Ok(()),
        }
    }

    fn make_parents(&mut self, path: &str) {
        self.directories.extend(parents(path).map(str::to_owned));
    }

    /// Nothing goes below a file, and there are at most as many directories as files.
    fn may_make_parents(&self, path: &str) -> Result<(), String> {
        if let Some(file) = parents(path).find(|parent| self.files.contains_key(*parent)) {
            return Err(format!("Error: {file} is a file, not a directory"));
        }
        let missing: Vec<&str> = parents(path)
            .filter(|parent| !self.directories.contains(*parent))
            .collect();
        let made = missing.len();
        // The root is none of a tenant's own.
        let have = self.directories.len() - 1 + made;
        let limit = self.rules.files_max;
        if made > 0 && have > limit {
            return Err(format!(
                "Error: {path} was not written: there would be too many directories, {have} of {limit}. Delete directories that are no longer needed"
            ));
        }
        // The lowest one first.
        missing
            .iter()
            .rev()
            .try_for_each(|parent| self.rules.may_write(parent))
    }
}

fn held(path: &str) -> String {
    format!(
        "Error: {path} was not written: it is under a hold and cannot be changed, moved or deleted. Write to another path"
    )
}

/// The directories above a path, `/memories` first.
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
