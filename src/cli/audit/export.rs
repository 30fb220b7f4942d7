//! `audit export`: the log as JSON lines, each the exact text that its hash is over.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use strongroom::audit::ExportCheck;

use super::args::AuditExportArgs;
use super::check::summary;
use crate::cli::desk;
use crate::cli::failure::{Exit, Failure, Stop};
use crate::cli::open;
use crate::cli::output::{not_printed, print};

pub fn run(args: &AuditExportArgs) -> Result<(), Stop> {
    // Before anything is created: a wrong key or tenant leaves no empty file behind.
    let vault = open::vault(&args.store, true)?;
    let mut target = Target::new(&args.file);
    let mut check = ExportCheck::new();
    let mut written = Ok(());
    let (tenant, store_events) = (args.chain.tenant.as_deref(), args.chain.store_events);
    let report = super::read(&vault, tenant, store_events, |_, record| {
        if written.is_ok() {
            written = target.line(&record.json);
        }
        // What the store vouches for passes; this only notes where each chain ends.
        let _entry = check.line(&record.json);
    })?;
    let closed = vault.close();
    written?;
    target.finish()?;
    if args.file.as_os_str() != "-" {
        print(&summary(&check).0)?;
    }
    super::whole(&report, "export the whole audit log")?;
    Ok(closed?)
}

/// Where the lines go. A file is made with the first of them, or at the end.
struct Target<'a> {
    file: Option<&'a Path>,
    out: Option<BufWriter<Box<dyn Write>>>,
    made: Option<File>,
}

impl<'a> Target<'a> {
    fn new(file: &'a Path) -> Self {
        Self {
            file: (file.as_os_str() != "-").then_some(file),
            out: None,
            made: None,
        }
    }

    fn line(&mut self, json: &str) -> Result<(), Stop> {
        let out = self.opened()?;
        let done = out
            .write_all(json.as_bytes())
            .and_then(|()| out.write_all(b"\n"));
        done.map_err(|error| self.failed(&error))
    }

    fn finish(mut self) -> Result<(), Stop> {
        let done = self.opened()?.flush();
        let made = self.made.as_ref();
        done.and_then(|()| made.map_or(Ok(()), File::sync_all))
            .map_err(|error| self.failed(&error))
    }

    fn opened(&mut self) -> Result<&mut BufWriter<Box<dyn Write>>, Stop> {
        if self.out.is_none() {
            let out: Box<dyn Write> = match self.file {
                None => desk::output(),
                Some(path) => {
                    let file = create(path).map_err(|error| self.failed(&error))?;
                    self.made = file.try_clone().ok();
                    Box::new(file)
                }
            };
            self.out = Some(BufWriter::new(out));
        }
        self.out
            .as_mut()
            .ok_or_else(|| self::not_printed(&io::Error::other("no output")))
    }

    fn failed(&self, error: &io::Error) -> Stop {
        let Some(path) = self.file else {
            return not_printed(error);
        };
        let path = path.display();
        let kind = error.kind();
        let (exit, next) = match kind {
            io::ErrorKind::AlreadyExists => (Exit::Usage, "Name a file that does not exist yet."),
            io::ErrorKind::StorageFull => (
                Exit::NoSpace,
                "Free some space, remove the unfinished file, then try again.",
            ),
            io::ErrorKind::NotFound => (Exit::NotFound, "Create its directory first."),
            _ => (Exit::Other, "Check the path and its disk."),
        };
        Failure::new(exit, format!("write {path}: {kind}"), next).into()
    }
}

/// A new file that only its owner can read: actors are names of people.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
