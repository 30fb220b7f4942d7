//! `import`: stores the files of a directory or a tar archive in a tenant's memory.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, IsTerminal};
use std::path::Path;

use serde_json::{Value, json};
use strongroom::transfer::{
    FromDirectory, FromTar, ImportOptions, ImportOutcome, ImportReport, ImportSource,
};
use strongroom::{Error, Tenant};

use super::failure::{Exit, Failure, Stop};
use super::open;
use super::output::{Out, say};
use super::transfer::{ImportArgs, Rows, answer, is_pipe};

pub fn run(args: &ImportArgs) -> Result<(), Stop> {
    // Before the store, so that a mistyped name costs no opening.
    let mut source = source(args)?;
    let vault = if args.dry_run {
        open::to_look(&args.look)?
    } else {
        open::to_change(&args.look)?
    };
    let mut tenant = vault.tenant(&args.tenant)?;
    if let Some(actor) = &args.actor.actor {
        tenant = tenant.as_actor(actor, args.actor.session.as_deref());
    }
    let mut rows = Rows::new();
    let report = import(args, &tenant, &mut *source, &mut rows);
    rows.clear();
    let closed = vault.close();
    let mut text = rows.text(["PATH", "RESULT"], &totals(&report));
    if args.dry_run {
        text.push_str("A dry run: nothing changed.\n");
    }
    let is_json = args.look.json;
    let json = json(args, &rows, &report);
    answer(&Out::new(is_json), false, &text, &json, is_json)?;
    ended(args, &report)?;
    Ok(closed?)
}

fn source(args: &ImportArgs) -> Result<Box<dyn ImportSource>, Stop> {
    if let Some(tar) = &args.source.tar {
        if !is_pipe(tar) {
            let file = File::open(tar).map_err(|error| not_opened("the archive", &error))?;
            return Ok(Box::new(FromTar::new(BufReader::new(file))));
        }
        if io::stdin().is_terminal() {
            return Err(Failure::new(
                Exit::Usage,
                "read the archive: stdin is a terminal",
                "Send an archive to stdin, or name a file after --tar.",
            )
            .into());
        }
        return Ok(Box::new(FromTar::new(BufReader::new(io::stdin()))));
    }
    let from = args.source.from.as_deref().unwrap_or(Path::new("."));
    let source = FromDirectory::open(from).map_err(|error| not_opened("the directory", &error))?;
    Ok(Box::new(source))
}

fn import(
    args: &ImportArgs,
    tenant: &Tenant,
    source: &mut dyn ImportSource,
    rows: &mut Rows,
) -> ImportReport {
    let options = ImportOptions::new()
        .overwrite(args.overwrite)
        .as_operator(args.as_operator)
        .images(args.images)
        .dry_run(args.dry_run);
    tenant.import(source, options, |path, outcome| add(rows, path, outcome))
}

/// Adds what became of a file.
pub fn add(rows: &mut Rows, path: &str, outcome: &ImportOutcome) {
    let (text, json) = match outcome {
        ImportOutcome::Stored { bytes, removed } => (
            match removed {
                0 => "stored".to_owned(),
                1 => "stored, 1 value removed".to_owned(),
                many => format!("stored, {many} values removed"),
            },
            json!({ "path": path, "result": "stored", "bytes": bytes, "removed": removed }),
        ),
        ImportOutcome::Exists => (
            "exists, not changed".to_owned(),
            json!({ "path": path, "result": "exists" }),
        ),
        ImportOutcome::Image => (
            "image, left out".to_owned(),
            json!({ "path": path, "result": "image" }),
        ),
        ImportOutcome::Refused(why) => {
            let why = why.strip_prefix("Error: ").unwrap_or(why);
            (
                format!("refused: {why}"),
                json!({ "path": path, "result": "refused", "why": why }),
            )
        }
    };
    rows.add(path, text, json);
}

pub fn totals(report: &ImportReport) -> [(&'static str, u64); 6] {
    [
        ("stored", report.stored),
        ("bytes", report.bytes),
        ("values removed", report.removed),
        ("existed", report.exists),
        ("images left out", report.images),
        ("refused", report.refused),
    ]
}

fn json(args: &ImportArgs, rows: &Rows, report: &ImportReport) -> Value {
    json!({
        "tenant": args.tenant,
        "dry_run": args.dry_run,
        "complete": report.failure.is_none() && report.refused == 0 && report.images == 0,
        "stored": report.stored,
        "bytes": report.bytes,
        "cleaned": report.cleaned,
        "removed": report.removed,
        "exists": report.exists,
        "images": report.images,
        "refused": report.refused,
        "entries": rows.json(),
        "entries_left_out": rows.left_out(),
    })
}

fn ended(args: &ImportArgs, report: &ImportReport) -> Result<(), Stop> {
    match &report.failure {
        Some(error @ Error::Transfer { kind, .. }) => {
            let next = match kind {
                ErrorKind::InvalidData => {
                    "Check that it is a plain tar archive; unpack a compressed one with `gunzip -c` into --tar -."
                }
                ErrorKind::UnexpectedEof => {
                    "The archive ends too early. What is listed as stored is stored whole."
                }
                _ => "Check where it comes from. What is listed as stored is stored whole.",
            };
            return Err(Failure::new(Exit::Other, error.to_string(), next).into());
        }
        Some(error) => return Err(Failure::from(error).into()),
        None => {}
    }
    if report.refused == 0 && report.images == 0 {
        if report.exists > 0 && !args.overwrite {
            say("files that exist were not changed; use --overwrite to replace them");
        }
        return Ok(());
    }
    let next = if report.refused == 0 {
        "Use --images to store images."
    } else {
        "Correct what is listed as refused, then run it again: files that exist stay."
    };
    Err(Failure::new(
        Exit::Refused,
        format!(
            "import everything: {} refused, {} images left out",
            report.refused, report.images
        ),
        next,
    )
    .into())
}

fn not_opened(what: &str, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::NotADirectory => Exit::Usage,
        _ => Exit::Other,
    };
    Failure::new(
        exit,
        format!("open {what} to import: {}", error.kind()),
        "Check the path and its permissions.",
    )
}
