//! What the integrity tests share: stores with a model of what is in them, and the judge of answers.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and no test file uses all of this"
)]

pub mod needles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use strongroom::edit::{self, Row};
use strongroom::wire::{Content, ViewRange};
use strongroom::{Code, Error, StoreError, Tenant, Vault, VaultBuilder, policy};

/// A file of this size takes over 300 chunks, so it is stored in several batches.
pub const BIG_BYTES: usize = 1_800_000;

/// Most lines that one view of a test asks for.
const LINES_PER_VIEW: i64 = 900;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// SplitMix64 (Steele et al., 2014): the same numbers for the same seed everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A text of `lines` lines that no other call makes.
pub fn text(rng: &mut Rng, lines: usize) -> String {
    let mut text = String::new();
    for number in 0..lines {
        text.push_str(&format!("line {number} says {:016x}\n", rng.next()));
    }
    text
}

pub fn big_text(rng: &mut Rng) -> String {
    let mut text = String::new();
    while text.len() < BIG_BYTES {
        text.push_str(&format!("{:016x}", rng.next()).repeat(62));
        text.push('\n');
    }
    text
}

pub fn png(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut image = PNG.to_vec();
    while image.len() < bytes {
        image.extend_from_slice(&rng.next().to_be_bytes());
    }
    image
}

/// The policy of these stores: as `default`, with room for the big file.
pub fn roomy_policy() -> policy::Policy {
    let text = r#"
        schema = 1
        extends = ["default"]
        [limits]
        max_file_bytes = "4MiB"
        [view]
        max_chars = 1_000_000
    "#;
    policy::load(text, "test.toml").unwrap()
}

pub fn builder(store: &Path, key: &Path) -> VaultBuilder {
    Vault::builder().path(store).key_file(key)
}

/// What a store must answer.
#[derive(Clone, Default)]
pub struct Model {
    pub tenants: BTreeMap<String, Tree>,
}

/// One tenant's files and directories, and what it had once.
#[derive(Clone, Default)]
pub struct Tree {
    pub files: BTreeMap<String, Vec<u8>>,
    pub directories: BTreeSet<String>,
    pub gone: BTreeSet<String>,
    /// A write's outcome is unknown, so nothing can be said of this tenant.
    pub is_unknown: bool,
}

impl Tree {
    fn put(&mut self, path: &str, content: Vec<u8>) {
        let mut parent = path;
        while let Some((above, _)) = parent.rsplit_once('/') {
            if above == "/memories" || above.is_empty() {
                break;
            }
            self.directories.insert(above.to_owned());
            self.gone.remove(above);
            parent = above;
        }
        self.gone.remove(path);
        self.files.insert(path.to_owned(), content);
    }

    fn take_below(&mut self, path: &str) -> Vec<(String, Option<Vec<u8>>)> {
        let is_below = |other: &str| other == path || other.starts_with(&format!("{path}/"));
        let files: Vec<String> = self.files.keys().filter(|p| is_below(p)).cloned().collect();
        let directories: Vec<String> = self
            .directories
            .iter()
            .filter(|p| is_below(p))
            .cloned()
            .collect();
        let mut taken = Vec::new();
        for file in files {
            let content = self.files.remove(&file);
            self.gone.insert(file.clone());
            taken.push((file, content));
        }
        for directory in directories {
            self.directories.remove(&directory);
            self.gone.insert(directory.clone());
            taken.push((directory, None));
        }
        taken
    }

    /// Every directory that can be listed.
    pub fn listable(&self) -> impl Iterator<Item = &str> {
        std::iter::once("/memories").chain(self.directories.iter().map(String::as_str))
    }

    /// The listing of a directory, two levels deep.
    pub fn listing(&self, directory: &str) -> String {
        let mut rows = vec![self.row(directory)];
        rows[0].path = directory.to_owned();
        for child in self.children(directory) {
            rows.push(self.row(&child));
            for grandchild in self.children(&child) {
                rows.push(self.row(&grandchild));
            }
        }
        edit::view_directory(directory, &rows, None, 1_000).unwrap()
    }

    fn children(&self, directory: &str) -> Vec<String> {
        let children: BTreeSet<&str> = self
            .files
            .keys()
            .chain(&self.directories)
            .filter_map(|path| path.strip_prefix(directory)?.strip_prefix('/'))
            .filter(|rest| !rest.contains('/'))
            .collect();
        children
            .iter()
            .map(|name| format!("{directory}/{name}"))
            .collect()
    }

    fn row(&self, path: &str) -> Row {
        if let Some(content) = self.files.get(path) {
            return Row {
                bytes: content.len() as u64,
                path: path.to_owned(),
            };
        }
        let below = format!("{path}/");
        let files = self
            .files
            .iter()
            .filter(|(file, _)| file.starts_with(&below));
        let bytes = files.map(|(_, content)| content.len() as u64).sum();
        Row { bytes, path: below }
    }
}

/// A store that is open, and what must be in it.
pub struct Life {
    pub vault: Vault,
    pub model: Model,
}

impl Life {
    pub fn tree(&mut self, tenant: &str) -> &mut Tree {
        self.model.tenants.entry(tenant.to_owned()).or_default()
    }

    fn handle(&self, tenant: &str) -> Tenant {
        self.vault.tenant(tenant).unwrap()
    }

    pub fn create(&mut self, tenant: &str, path: &str, text: &str) {
        let reply = self.handle(tenant).create(path, text).unwrap();
        assert!(!reply.is_error, "{reply:?} {:?}", reply.as_text());
        self.tree(tenant).put(path, text.as_bytes().to_vec());
    }

    pub fn put_bytes(&mut self, tenant: &str, path: &str, bytes: &[u8]) {
        let reply = self.handle(tenant).put_bytes(path, bytes).unwrap();
        assert!(!reply.is_error, "{:?}", reply.as_text());
        self.tree(tenant).put(path, bytes.to_vec());
    }

    pub fn insert(&mut self, tenant: &str, path: &str, text: &str) {
        let reply = self.handle(tenant).insert(path, 0, text).unwrap();
        assert!(!reply.is_error, "{:?}", reply.as_text());
        let content = self.tree(tenant).files.get_mut(path).unwrap();
        content.splice(0..0, text.bytes());
    }

    pub fn delete(&mut self, tenant: &str, path: &str) {
        let reply = self.handle(tenant).delete(path).unwrap();
        assert!(!reply.is_error, "{:?}", reply.as_text());
        self.tree(tenant).take_below(path);
    }

    pub fn rename(&mut self, tenant: &str, from: &str, to: &str) {
        let reply = self.handle(tenant).rename(from, to).unwrap();
        assert!(!reply.is_error, "{:?}", reply.as_text());
        let tree = self.tree(tenant);
        for (path, content) in tree.take_below(from) {
            let path = path.replacen(from, to, 1);
            match content {
                Some(content) => tree.put(&path, content),
                None => {
                    tree.directories.insert(path);
                }
            }
        }
    }

    /// Waits until the reaper has nothing left to do, so that nothing writes while a
    /// directory is copied.
    pub fn settle(&self) {
        // Looks, not a time: a process that is stopped for a while has not failed.
        let mut looks = 0;
        while self.vault.stats().unwrap().pending_removals > 0 {
            assert!(looks < 60_000, "the reaper never ends");
            looks += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Exactly what was stored last.
    Right,
    /// An error, as damage deserves.
    Refused,
    /// Anything else, with what is wrong about it (never hidden by an error code).
    Wrong(String),
}

/// One question to a store: which tenant, which path, and what a right answer is.
pub enum Question<'a> {
    File(&'a str, &'a str, &'a [u8]),
    Listing(&'a str, &'a str, &'a Tree),
    Gone(&'a str, &'a str),
}

impl Question<'_> {
    pub fn name(&self) -> String {
        match self {
            Self::File(tenant, path, _) => format!("{tenant}:{path}"),
            Self::Listing(tenant, path, _) => format!("{tenant}:{path}/"),
            Self::Gone(tenant, path) => format!("{tenant}:{path} (gone)"),
        }
    }

    fn tenant(&self) -> &str {
        match self {
            Self::File(tenant, ..) | Self::Listing(tenant, ..) | Self::Gone(tenant, _) => tenant,
        }
    }

    pub fn ask(&self, vault: &Vault) -> Seen {
        let tenant = match vault.tenant(self.tenant()) {
            Ok(tenant) => tenant,
            Err(error) => return judge_error(&error),
        };
        match self {
            Self::File(_, path, content) => ask_file(&tenant, path, content),
            Self::Listing(_, path, tree) => ask_text(&tenant, path, None, &tree.listing(path)),
            Self::Gone(_, path) => match tenant.view(path, None) {
                Err(error) => judge_error(&error),
                Ok(reply) if reply.is_error && reply.as_text().is_some_and(is_missing) => {
                    Seen::Right
                }
                Ok(_) => Seen::Wrong(format!("{path} was removed and is back")),
            },
        }
    }
}

/// Everything that can be asked about a model, each tenant's files, listings and ghosts.
pub fn questions(model: &Model) -> Vec<Question<'_>> {
    let mut all = Vec::new();
    for (tenant, tree) in model.tenants.iter().filter(|(_, tree)| !tree.is_unknown) {
        all.extend(
            tree.listable()
                .map(|path| Question::Listing(tenant, path, tree)),
        );
        all.extend(
            tree.files
                .iter()
                .map(|(path, content)| Question::File(tenant, path, content)),
        );
        all.extend(tree.gone.iter().map(|path| Question::Gone(tenant, path)));
    }
    all
}

fn is_missing(text: &str) -> bool {
    text.contains("does not exist")
}

/// Any error of the store refuses, but it must be of a kind that damage explains.
pub fn judge_error(error: &Error) -> Seen {
    match error.code() {
        Code::Integrity | Code::Key | Code::Other => Seen::Refused,
        code => Seen::Wrong(format!("failed with {}", code.as_str())),
    }
}

fn ask_file(tenant: &Tenant, path: &str, content: &[u8]) -> Seen {
    if content.starts_with(PNG) {
        return match tenant.view(path, None) {
            Err(error) => judge_error(&error),
            Ok(reply) => match &reply.content {
                Content::Image { data, .. } if data == content && !reply.is_error => Seen::Right,
                _ => Seen::Wrong(format!("{path} is another image: {reply:?}")),
            },
        };
    }
    let text = std::str::from_utf8(content).unwrap();
    let lines = i64::try_from(text.lines().count()).unwrap();
    if lines <= LINES_PER_VIEW {
        let expected = edit::view_file(path, text, None, 1_000_000).unwrap();
        return ask_text(tenant, path, None, &expected);
    }
    // Each view reads and checks the whole file, so one part is enough; which one changes.
    let turn = TURN.fetch_add(1, Ordering::Relaxed) % lines;
    let start = 1 + turn * 97 % (lines - LINES_PER_VIEW);
    let range = Some((start, start + LINES_PER_VIEW - 1));
    let expected = edit::view_file(path, text, range, 1_000_000).unwrap();
    ask_text(tenant, path, range, &expected)
}

static TURN: AtomicI64 = AtomicI64::new(0);

fn ask_text(tenant: &Tenant, path: &str, range: Option<(i64, i64)>, expected: &str) -> Seen {
    let range = range.map(|(start, end)| ViewRange { start, end });
    match tenant.view(path, range) {
        Err(error) => judge_error(&error),
        Ok(reply) if reply.is_error => {
            Seen::Wrong(format!("{path}: {}", reply.as_text().unwrap_or("an image")))
        }
        Ok(reply) if reply.as_text() == Some(expected) => Seen::Right,
        Ok(_) => Seen::Wrong(format!("{path} reads otherwise than it was written")),
    }
}

/// Whether a write's outcome may be either.
pub fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::OutcomeUnknown))
}

pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// All files below a directory, relative to it, sorted.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(directory).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}
