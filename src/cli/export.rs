//! `export`: writes a tenant's files to a directory or a tar archive.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Value, json};
use strongroom::transfer::{
    ExportOptions, ExportOutcome, ExportReport, ExportSink, ToDirectory, ToTar,
};
use strongroom::{Code, Error, Tenant, Vault};

use super::failure::{Exit, Failure, Stop};
use super::open::{self, Opened};
use super::output::{Out, say};
use super::transfer::{ExportArgs, Rows, answer, is_pipe};

pub fn run(args: &ExportArgs) -> Result<(), Stop> {
    let vault = open(args)?;
    let mut tenant = tenant(&vault, &args.tenant)?;
    if let Some(actor) = &args.actor.actor {
        tenant = tenant.as_actor(actor, args.actor.session.as_deref());
    }
    let mut rows = Rows::new();
    let report = export(args, &tenant, &mut rows)?;
    rows.clear();
    let closed = vault.close();
    let is_piped = args.target.tar.as_deref().is_some_and(is_pipe);
    let is_json = args.look.json;
    let text = rows.text(["PATH", "RESULT"], &totals(&report));
    let json = json(args, &rows, &report);
    answer(&Out::new(is_json), is_piped, &text, &json, is_json)?;
    ended(args, &report)?;
    Ok(closed?)
}

/// Opens the store for writing only where the policy wants the export in the audit log. A
/// damaged store is left as it is.
fn open(args: &ExportArgs) -> Result<Opened, Stop> {
    let vault = open::to_look(&args.look)?;
    if args.salvage || !vault.policy().audit.enabled || vault.is_shared() {
        return Ok(vault);
    }
    vault.close()?;
    // The look has warned of the clock.
    open::without_warning(&args.look.store, false)
}

/// A tenant that is there: one without any memory would be exported as nothing.
fn tenant(vault: &Vault, name: &str) -> Result<Tenant, Stop> {
    let tenant = vault.tenant(name)?;
    if vault
        .stats()?
        .tenants
        .iter()
        .any(|known| known.name == name)
    {
        return Ok(tenant);
    }
    Err(Failure::new(
        Exit::NotFound,
        format!("find the tenant {name}: it has no memory in this store"),
        "Run `strongroom tenant list` for the names.",
    )
    .into())
}

fn export(args: &ExportArgs, tenant: &Tenant, rows: &mut Rows) -> Result<ExportReport, Stop> {
    let target = &args.target;
    if let Some(tar) = target.tar.as_deref().filter(|tar| !is_pipe(tar)) {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(tar)
            .map_err(|error| not_made("the archive", &error))?;
        let mut sink = ToTar::new(BufWriter::new(made));
        let mut report = write(args, tenant, &mut sink, rows);
        let synced = sink
            .into_inner()
            .into_inner()
            .map_err(|error| error.into_error());
        if let (Err(error), None) = (
            synced.and_then(|file: File| file.sync_all()),
            &report.failure,
        ) {
            report.failure = Some(Error::Transfer {
                doing: "write the export",
                kind: error.kind(),
            });
        }
        if report.failure.is_some() {
            // A cut archive is of no use, and was made here just now.
            let _removed = fs::remove_file(tar);
        }
        return Ok(report);
    }
    if target.tar.is_some() {
        if io::stdout().is_terminal() {
            return Err(Failure::new(
                Exit::Usage,
                "write the archive: stdout is a terminal",
                "Send it to a file or another program, or name a file after --tar.",
            )
            .into());
        }
        let mut sink = ToTar::new(BufWriter::new(io::stdout().lock()));
        return Ok(write(args, tenant, &mut sink, rows));
    }
    let to = target.to.as_deref().unwrap_or(Path::new("."));
    let mut sink = ToDirectory::create(to).map_err(|error| not_made("the directory", &error))?;
    Ok(write(args, tenant, &mut sink, rows))
}

fn write(
    args: &ExportArgs,
    tenant: &Tenant,
    sink: &mut dyn ExportSink,
    rows: &mut Rows,
) -> ExportReport {
    let options = ExportOptions::new().salvage(args.salvage);
    tenant.export(sink, options, |path, outcome| {
        let (text, json) = match outcome {
            ExportOutcome::File(bytes) => (
                format!("{bytes} bytes"),
                json!({ "path": path, "result": "exported", "bytes": bytes }),
            ),
            ExportOutcome::Directory => (
                "directory".to_owned(),
                json!({ "path": path, "result": "directory" }),
            ),
            ExportOutcome::Damaged(what) => (
                format!("damaged: failed to {what}"),
                json!({ "path": path, "result": "damaged", "what": format!("failed to {what}") }),
            ),
            ExportOutcome::NotHeld(why) => (
                format!("not exported: {why}"),
                json!({ "path": path, "result": "not_exported", "why": why }),
            ),
        };
        rows.add(path, text, json);
    })
}

fn totals(report: &ExportReport) -> [(&'static str, u64); 5] {
    [
        ("files", report.files),
        ("directories", report.directories),
        ("bytes", report.bytes),
        ("damaged", report.damaged),
        ("not exported", report.not_held),
    ]
}

fn json(args: &ExportArgs, rows: &Rows, report: &ExportReport) -> Value {
    json!({
        "tenant": args.tenant,
        "complete": report.failure.is_none() && report.damaged == 0 && report.not_held == 0,
        "files": report.files,
        "directories": report.directories,
        "bytes": report.bytes,
        "stale": report.stale,
        "damaged": report.damaged,
        "not_exported": report.not_held,
        "entries": rows.json(),
        "entries_left_out": rows.left_out(),
    })
}

fn ended(args: &ExportArgs, report: &ExportReport) -> Result<(), Stop> {
    if report.stale > 0 {
        say(&format!(
            "scanned under older rules only: {}; `strongroom rescan` removes what today's rules find",
            report.stale
        ));
    }
    match &report.failure {
        // Whoever reads the archive has read enough.
        Some(Error::Transfer {
            kind: ErrorKind::BrokenPipe,
            ..
        }) => return Err(Stop::PipeClosed),
        Some(error @ Error::Transfer { .. }) => {
            let next =
                "Check the target and its disk, and export to an empty directory or a new file.";
            return Err(Failure::new(exit(error), error.to_string(), next).into());
        }
        Some(error) if error.code() == Code::Integrity && !args.salvage => {
            let failure = Failure::from(error);
            return Err(failure
                .and_next("Or use --salvage to export what is intact.")
                .into());
        }
        Some(error) => return Err(Failure::from(error).into()),
        None => {}
    }
    if report.damaged > 0 {
        return Err(Failure::new(
            Exit::Integrity,
            format!("export everything: {} damaged", report.damaged),
            "Keep the store as it is, and restore what is listed from a copy. What was exported is intact.",
        )
        .into());
    }
    if report.not_held > 0 {
        return Err(Failure::new(
            Exit::Refused,
            format!(
                "export everything: the target cannot hold {}",
                report.not_held
            ),
            "Export to another file system, or to an archive with --tar.",
        )
        .into());
    }
    Ok(())
}

fn exit(error: &Error) -> Exit {
    match error.code() {
        Code::NoSpace => Exit::NoSpace,
        _ => Exit::Other,
    }
}

fn not_made(what: &str, error: &io::Error) -> Failure {
    let (exit, why, next) = match error.kind() {
        ErrorKind::DirectoryNotEmpty => (
            Exit::Usage,
            "it is not empty".to_owned(),
            "Name one that is empty or does not exist.",
        ),
        ErrorKind::AlreadyExists => (
            Exit::Usage,
            "it exists already".to_owned(),
            "Name one that does not exist.",
        ),
        ErrorKind::NotADirectory => (
            Exit::Usage,
            "it is none, or a symbolic link".to_owned(),
            "Name one that is empty or does not exist.",
        ),
        ErrorKind::NotFound => (
            Exit::NotFound,
            "the directory above it does not exist".to_owned(),
            "Make that directory first.",
        ),
        ErrorKind::StorageFull => (
            Exit::NoSpace,
            "no space left".to_owned(),
            "Free some space, then try again.",
        ),
        kind => (
            Exit::Other,
            kind.to_string(),
            "Check the path and its permissions.",
        ),
    };
    Failure::new(exit, format!("make {what} to export to: {why}"), next)
}
