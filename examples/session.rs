//! A real session: every tool call of `session.jsonl` against an encrypted store on disk.
//!
//! ```text
//! cargo run --release --example session
//! ```
//!
//! It prints each call (`>`) and what the model reads, both cut at 92 characters. The store
//! lies in a temporary directory and is gone afterwards.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use strongroom::{Depth, Vault, policy};

/// The tool calls, as a model sends them.
const CALLS: &str = include_str!("session.jsonl");

/// Small views, so that a short file already takes two. Every other rule is as shipped.
const POLICY: &str = "
schema = 1
[limits]
max_line_chars = 1_000
[view]
max_chars = 1_000
";

/// Words of the session, looked for in the store's files at the end.
const WORDS: [&[u8]; 3] = [b"Acme", b"before noon", b"invoice of March"];

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Runs the session and writes what there is to read to `out`.
pub fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let (store, key) = (home.path().join("store"), home.path().join("store.key"));
    strongroom::generate_key_file(&key)?;
    let vault = Vault::builder()
        .path(&store)
        .key_file(&key)
        .policy(policy::load(POLICY, "the session's policy")?)
        .create(true)
        .open()?;
    let tenant = vault.tenant("acme/user-17")?;
    for call in CALLS.lines() {
        writeln!(out, "> {}", cut(call))?;
        let answer = tenant.execute(call);
        for line in answer.reply.as_text().unwrap_or("(an image)").lines() {
            writeln!(out, "{}", cut(line))?;
        }
        writeln!(out)?;
    }
    vault.close()?;

    let vault = Vault::builder().path(&store).key_file(&key).open()?;
    let report = vault.verify(Depth::Full)?;
    writeln!(
        out,
        "Closed, opened and verified: {} tenant, {} file, {} problems.",
        report.tenants,
        report.files,
        report.problems.len()
    )?;
    vault.close()?;
    writeln!(
        out,
        "Files on disk in which a word of the session can be found: {}.",
        files_with_words(&store)?
    )?;
    Ok(())
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(92) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}

fn files_with_words(directory: &Path) -> io::Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found += files_with_words(&path)?;
        } else {
            let bytes = fs::read(&path)?;
            let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
            found += usize::from(WORDS.into_iter().any(holds));
        }
    }
    Ok(found)
}
