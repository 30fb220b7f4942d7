//! `audit check`: an exported file, without any store or key.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Value, json};
use strongroom::Checkpoint;
use strongroom::audit::{Entry, ExportCheck};

use super::args::AuditCheckArgs;
use crate::cli::failure::{Exit, Failure, Stop};
use crate::cli::output::{Out, table};

/// No entry is longer: what it may hold is limited.
const LINE_BYTES_MAX: u64 = 65_536;

/// The store's own chain, as entries name it.
const STORE_CHAIN: &str = "00000000000000000000000000000000";

pub fn run(args: &AuditCheckArgs) -> Result<(), Stop> {
    let checkpoint = args.checkpoint.as_deref();
    let checkpoint = checkpoint.map(super::parse_checkpoint).transpose()?;
    let mut check = ExportCheck::new();
    let mut is_there = false;
    let mut lines = lines_of(&args.file)?;
    let mut number = 0_u64;
    while let Some(line) = next_line(&mut lines, number + 1)? {
        number += 1;
        let entry = check
            .line(&line)
            .map_err(|error| wrong(number, &error.to_string()))?;
        is_there |= checkpoint
            .as_ref()
            .is_some_and(|checkpoint| is_of(&entry, checkpoint));
    }
    if checkpoint.is_some() && !is_there {
        return Err(Failure::new(
            Exit::Integrity,
            "check the file: the checkpoint's entry is not in it",
            "Look whether the file was exported with --all or --store-events, from that store, after the checkpoint; if so the store was put back to a time before it.",
        )
        .into());
    }
    let (text, chains) = summary(&check);
    Out::new(args.json).answer(&text, &json!({ "entries": number, "chains": chains }))
}

/// Where the chains of an exported file begin and end.
pub fn summary(check: &ExportCheck) -> (String, Value) {
    let mut rows = vec![
        ["TENANT ID", "FIRST", "LAST", "HASH"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut chains = Vec::new();
    for (tenant, chain) in check.chains() {
        let shown = if tenant == STORE_CHAIN { "-" } else { tenant };
        rows.push(vec![
            super::printable(shown),
            chain.first.to_string(),
            chain.last.to_string(),
            chain.hash.clone(),
        ]);
        chains.push(json!({
            "tenant_id": tenant, "first": chain.first, "last": chain.last, "hash": chain.hash,
        }));
    }
    (table(&rows, &[1, 2]), Value::Array(chains))
}

/// Whether the entry is the one that the checkpoint was made with.
fn is_of(entry: &Entry, checkpoint: &Checkpoint) -> bool {
    entry.tenant == STORE_CHAIN
        && entry.seq == checkpoint.seq
        && entry.detail.as_deref() == Some(checkpoint.id.as_str())
}

fn lines_of(file: &Path) -> Result<Box<dyn BufRead>, Stop> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Other
        };
        Failure::new(
            exit,
            format!("read {}: {}", file.display(), error.kind()),
            "Check the path of the exported file.",
        )
    })?;
    Ok(Box::new(BufReader::new(opened)))
}

/// The next line without its line feed. A last line without one was cut off.
fn next_line(lines: &mut dyn BufRead, number: u64) -> Result<Option<String>, Stop> {
    let mut line = Vec::new();
    lines
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut line)
        .map_err(|error| {
            Failure::new(
                Exit::Other,
                format!("read the exported file: {}", error.kind()),
                "Check the file and its disk.",
            )
        })?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(wrong(number, "it is cut off, or too long for an entry"));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Some(line)),
        Err(_) => Err(wrong(number, "it is not an audit entry as it was exported")),
    }
}

fn wrong(number: u64, what: &str) -> Stop {
    Failure::new(
        Exit::Integrity,
        format!("check the file: line {number}: {what}"),
        "The file is not as it was exported. Export it again, or take another copy.",
    )
    .into()
}
