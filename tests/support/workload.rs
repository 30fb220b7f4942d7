//! A worker that changes its own directory at random, and knows what must be there afterwards.

use strongroom::wire::Reply;
use strongroom::{Error, Tenant};

use super::rng::Rng;
use super::tree::Tree;

/// Nothing this deep is moved any deeper.
const DEPTH_MAX: usize = 12;

/// One command. Each changes something, so that state before and after can be told apart.
#[derive(Clone, Debug)]
pub enum Op {
    Create {
        path: String,
        text: String,
    },
    Replace {
        path: String,
        old: String,
        new: String,
    },
    Insert {
        path: String,
        text: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Delete {
        path: String,
    },
}

impl Op {
    /// Carries the command out on a store.
    pub fn run(&self, tenant: &Tenant) -> Result<Reply, Error> {
        match self {
            Self::Create { path, text } => tenant.create(path, text),
            Self::Replace { path, old, new } => tenant.str_replace(path, old, new),
            Self::Insert { path, text } => tenant.insert(path, 0, text),
            Self::Rename { from, to } => tenant.rename(from, to),
            Self::Delete { path } => tenant.delete(path),
        }
    }

    /// Carries the command out on a model.
    pub fn apply(&self, tree: &mut Tree) {
        match self {
            Self::Create { path, text } => put(tree, path, Some(text.clone())),
            Self::Replace { path, old, new } => {
                let text = file(tree, path).replacen(old, new, 1);
                put(tree, path, Some(text));
            }
            Self::Insert { path, text } => {
                let text = format!("{text}{}", file(tree, path));
                put(tree, path, Some(text));
            }
            Self::Rename { from, to } => {
                for (path, entry) in take(tree, from) {
                    put(tree, &format!("{to}{}", &path[from.len()..]), entry);
                }
            }
            Self::Delete { path } => {
                take(tree, path);
            }
        }
    }
}

fn file<'a>(tree: &'a Tree, path: &str) -> &'a str {
    tree[path].as_deref().expect("a file in the model")
}

/// Puts an entry and the directories above it, up to `/memories` itself.
fn put(tree: &mut Tree, path: &str, entry: Option<String>) {
    let mut parent = path;
    while let Some((above, _)) = parent.rsplit_once('/') {
        if above == "/memories" {
            break;
        }
        tree.entry(above.to_owned()).or_insert(None);
        parent = above;
    }
    tree.insert(path.to_owned(), entry);
}

/// Takes an entry away with all that is below it.
fn take(tree: &mut Tree, path: &str) -> Vec<(String, Option<String>)> {
    let below = format!("{path}/");
    let paths: Vec<String> = tree
        .keys()
        .filter(|other| *other == path || other.starts_with(&below))
        .cloned()
        .collect();
    paths
        .into_iter()
        .map(|path| tree.remove_entry(&path).unwrap())
        .collect()
}

/// Makes commands for one directory. The same seed and tree make the same commands.
#[derive(Clone)]
pub struct Worker {
    rng: Rng,
    top: String,
    tree: Tree,
    serial: u64,
    bytes_max: u64,
}

impl Worker {
    pub fn new(seed: u64, top: &str, tree: Tree) -> Self {
        Self {
            rng: Rng::new(seed),
            top: top.to_owned(),
            tree,
            serial: 0,
            bytes_max: 60_000,
        }
    }

    /// One that writes small files only.
    pub fn small(seed: u64, top: &str, tree: Tree) -> Self {
        Self {
            bytes_max: 8_000,
            ..Self::new(seed, top, tree)
        }
    }

    /// What is there once all commands so far were carried out.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Makes the next command and takes it as carried out.
    pub fn step(&mut self) -> Op {
        let op = self.choose();
        op.apply(&mut self.tree);
        self.serial += 1;
        op
    }

    fn choose(&mut self) -> Op {
        let files: Vec<String> = self.paths(|entry| entry.is_some());
        let most = self.rng.below(100);
        if files.len() < 3 || (most < 40 && files.len() < 30) {
            return self.create();
        }
        let file = self.pick(&files);
        let directories: Vec<String> = self.paths(Option::is_none);
        match most {
            0..=64 => {
                let text = self.tree[&file].clone().unwrap_or_default();
                match text.lines().find(|line| line.starts_with("<<")) {
                    Some(line) if self.rng.percent(70) => Op::Replace {
                        path: file,
                        old: line.to_owned(),
                        new: self.mark(),
                    },
                    _ => Op::Insert {
                        path: file,
                        text: format!("{}\n", self.mark()),
                    },
                }
            }
            65..=79 => {
                let from = match directories.len() > 1 && self.rng.percent(40) {
                    true => self.pick(&directories),
                    false => file,
                };
                let to = self.new_path();
                let is_deep = self
                    .tree
                    .range(from.clone()..)
                    .take_while(|(path, _)| path.starts_with(&from))
                    .any(|(path, _)| path.matches('/').count() > DEPTH_MAX);
                if is_deep || from == self.top || to.starts_with(&format!("{from}/")) {
                    return self.create();
                }
                Op::Rename { from, to }
            }
            _ => {
                let path = match self.rng.percent(30) {
                    true => self.pick(&directories),
                    false => file,
                };
                Op::Delete { path }
            }
        }
    }

    fn create(&mut self) -> Op {
        let path = self.new_path();
        let most = match self.rng.below(20) {
            0 => 1,
            1..=10 => 3_000,
            11..=17 => 20_000,
            _ => 60_000,
        };
        let bytes = self.rng.below(most.min(self.bytes_max));
        let mut text = String::new();
        if bytes > 0 {
            text = format!("{}\n", self.mark());
        }
        while (text.len() as u64) < bytes {
            let line = format!("{:016x} ", self.rng.next()).repeat(4);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        Op::Create { path, text }
    }

    /// A line that stands once in all texts.
    fn mark(&mut self) -> String {
        format!("<<{} {:016x}>>", self.serial, self.rng.next())
    }

    /// A path at which there is nothing yet. Names of files never are names of directories
    /// that stand in the way.
    fn new_path(&mut self) -> String {
        loop {
            let mut path = self.top.clone();
            for _ in 0..self.rng.below(3) {
                path.push_str(&format!("/d{}", self.rng.below(4)));
            }
            let path = format!("{path}/f{}-{}", self.serial, self.rng.below(1_000));
            if !self.tree.contains_key(&path) {
                return path;
            }
        }
    }

    fn pick(&mut self, paths: &[String]) -> String {
        paths[self.rng.below(paths.len() as u64) as usize].clone()
    }

    fn paths(&self, is_wanted: impl Fn(&Option<String>) -> bool) -> Vec<String> {
        self.tree
            .iter()
            .filter(|(_, entry)| is_wanted(entry))
            .map(|(path, _)| path.clone())
            .collect()
    }
}
