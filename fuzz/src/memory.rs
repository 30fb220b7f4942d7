//! A tenant's memory in the plainest form: what each command must answer, and what is there afterwards.

use std::collections::{BTreeMap, BTreeSet};

use strongroom::wire::{Command, ViewRange};

use crate::naive;

/// What a view shows at most, by the policy of these stores.
const VIEW_CHARS_MAX: usize = 16_000;

/// Files and directories by their canonical paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pub files: BTreeMap<String, String>,
    pub directories: BTreeSet<String>,
    /// Files that are expired and not swept yet: no command sees them.
    ghosts: BTreeSet<String>,
    /// When each of the files was created, in minutes.
    created: BTreeMap<String, u64>,
    now: u64,
    rules: Rules,
}

/// What the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether `create` may replace a file.
    pub overwrites: bool,
    /// After how many minutes a file expires.
    pub life: Option<u64>,
}

const ROOT: &str = "/memories";

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            files: BTreeMap::new(),
            directories: BTreeSet::from([ROOT.to_owned()]),
            ghosts: BTreeSet::new(),
            created: BTreeMap::new(),
            now: 0,
            rules,
        }
    }

    /// Time passes.
    pub fn pass(&mut self, minutes: u64) {
        self.now += minutes;
        let Some(life) = self.rules.life else {
            return;
        };
        let created = &self.created;
        let is_expired = |path: &String| created[path] + life <= self.now;
        self.ghosts
            .extend(self.files.keys().filter(|path| is_expired(path)).cloned());
        self.files.retain(|path, _| !is_expired(path));
        self.created.retain(|path, _| self.files.contains_key(path));
    }

    /// What is expired below a directory goes, with the directories that it empties.
    pub fn sweep(&mut self, under: &str) {
        let below = |path: &str| path != under && is_at_or_below(under, path);
        let swept: Vec<String> = self
            .ghosts
            .iter()
            .filter(|path| below(path))
            .cloned()
            .collect();
        for path in &swept {
            self.ghosts.remove(path);
        }
        for path in &swept {
            for parent in parents(path).collect::<Vec<_>>().into_iter().rev() {
                let holds = |path: &String| path != parent && is_at_or_below(parent, path);
                let is_empty = !self.files.keys().chain(&self.directories).any(holds);
                if is_empty && below(parent) {
                    self.directories.remove(parent);
                }
            }
        }
    }

    /// Whether nothing is expired that was not swept.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.ghosts.is_empty()
    }

    /// Carries a command out. The text of its success; `None` where it is refused and changes nothing.
    pub fn run(&mut self, command: &Command) -> Option<String> {
        match command {
            Command::View { path, view_range } => self.view(path, *view_range),
            Command::Create { path, file_text } => {
                self.put(path, file_text)?;
                Some(format!("File created successfully at: {path}"))
            }
            Command::StrReplace {
                path,
                old_str,
                new_str,
            } => self.str_replace(path, old_str, new_str),
            Command::Insert {
                path,
                insert_line,
                insert_text,
            } => {
                let text = naive::insert(self.files.get(path)?, *insert_line, insert_text)?;
                self.files.insert(path.clone(), text);
                Some(format!("The file {path} has been edited."))
            }
            Command::Delete { path } => self.delete(path),
            Command::Rename { old_path, new_path } => self.rename(old_path, new_path),
        }
    }

    /// The text of a view.
    #[must_use]
    pub fn view(&self, path: &str, range: Option<ViewRange>) -> Option<String> {
        let range = range.map(Into::into);
        if let Some(text) = self.files.get(path) {
            return naive::view(path, text, range, VIEW_CHARS_MAX);
        }
        if !self.directories.contains(path) {
            return None;
        }
        let mut rows = vec![format!("{}\t{path}", self.size(path))];
        for child in self.shown(path) {
            rows.push(self.row(&child));
            rows.extend(self.shown(&child).iter().map(|path| self.row(path)));
        }
        let (first, last, notes) = naive::fit(range, rows.len(), "row")?;
        let header = format!(
            "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        );
        let shown = rows.drain(first - 1..last);
        Some(
            [header]
                .into_iter()
                .chain(shown)
                .chain(notes)
                .collect::<Vec<_>>()
                .join("\n"),
        )
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
        let below = self
            .files
            .iter()
            .filter(|(file, _)| is_at_or_below(path, file));
        naive::size(below.map(|(_, text)| text.len() as u64).sum())
    }

    /// What a listing shows right below a directory, in byte order of the names.
    fn shown(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<&str> = (self.files.keys().chain(&self.directories))
            .filter_map(|path| path.strip_prefix(directory)?.strip_prefix('/'))
            .filter(|name| !name.contains('/') && !name.starts_with('.') && *name != "node_modules")
            .collect();
        names.sort_unstable();
        names
            .iter()
            .map(|name| format!("{directory}/{name}"))
            .collect()
    }

    fn str_replace(&mut self, path: &str, old: &str, new: &str) -> Option<String> {
        let text = self.files.get(path)?;
        if old.is_empty() {
            return None;
        }
        let (text, first, last) = naive::str_replace(text, old, new).ok()?;
        let total = naive::lines(&text).len();
        let from = first.saturating_sub(2).max(1);
        let to = (last + 2).min(total);
        let header = "The memory file has been edited. Here is the snippet showing the change (with line numbers):";
        let mut rows = vec![header.to_owned()];
        rows.extend(naive::numbered(&text, from, to, VIEW_CHARS_MAX));
        if total == 0 {
            rows.push("Note: the file is empty (0 lines).".to_owned());
        }
        self.files.insert(path.to_owned(), text);
        Some(rows.join("\n"))
    }

    fn put(&mut self, path: &str, text: &str) -> Option<()> {
        let is_taken = self.files.contains_key(path) && !self.rules.overwrites;
        if self.directories.contains(path) || is_taken || self.is_below_a_file(path) {
            return None;
        }
        self.make_parents(path);
        self.ghosts.remove(path);
        self.files.insert(path.to_owned(), text.to_owned());
        // A path that is written over is as old as it was.
        self.created.entry(path.to_owned()).or_insert(self.now);
        Some(())
    }

    fn delete(&mut self, path: &str) -> Option<String> {
        if path == ROOT || !self.exists(path) {
            return None;
        }
        self.files.retain(|file, _| !is_at_or_below(path, file));
        self.directories
            .retain(|directory| !is_at_or_below(path, directory));
        self.created.retain(|file, _| !is_at_or_below(path, file));
        self.ghosts.retain(|file| !is_at_or_below(path, file));
        Some(format!("Successfully deleted {path}"))
    }

    fn rename(&mut self, from: &str, to: &str) -> Option<String> {
        if from == ROOT {
            return None;
        }
        // What is expired must not come back by a move.
        self.sweep(from);
        if !self.exists(from)
            || self.exists(to)
            || is_at_or_below(from, to)
            || self.is_below_a_file(to)
        {
            return None;
        }
        let moved = |path: &String| match path.strip_prefix(from) {
            Some(below) if is_at_or_below(from, path) => format!("{to}{below}"),
            _ => path.clone(),
        };
        self.files = self
            .files
            .iter()
            .map(|(path, text)| (moved(path), text.clone()))
            .collect();
        self.directories = self.directories.iter().map(moved).collect();
        self.created = (self.created.iter())
            .map(|(path, time)| (moved(path), *time))
            .collect();
        self.ghosts.remove(to);
        self.make_parents(to);
        Some(format!("Successfully renamed {from} to {to}"))
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains(path)
    }

    fn is_below_a_file(&self, path: &str) -> bool {
        parents(path).any(|parent| self.files.contains_key(parent))
    }

    fn make_parents(&mut self, path: &str) {
        for parent in parents(path) {
            self.ghosts.remove(parent);
            self.directories.insert(parent.to_owned());
        }
    }
}

/// The directories above a path, the root first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(at, _)| &path[..at])
}

fn is_at_or_below(top: &str, path: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|below| below.is_empty() || below.starts_with('/'))
}
