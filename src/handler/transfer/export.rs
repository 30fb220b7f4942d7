//! Export: a tenant's files as they are stored, to a directory or an archive.
//!
//! Directory by directory and file by file, each read at the tenant's newest state: what
//! changes meanwhile is there in its old or its new form, never mixed within one file.

use std::ops::ControlFlow;

use crate::clock::UnixMillis;
use crate::error::Error;
use crate::key::Plain;
use crate::path::{Guard, MemoryPath, ROOT};
use crate::record::{DirentBody, FileKind};
use crate::store::{Abort, Reader, StoreError};

use super::super::{Line, Rules, Tenant};
use super::{ExportOptions, ExportOutcome, ExportReport, ExportSink, SinkError};

impl Tenant {
    /// Writes every file that exists to `sink`, hidden and denied ones too, under its path
    /// below `/memories`; empty directories too. `each` is told what became of each, by its
    /// path in the store.
    ///
    /// Files are written as they are stored. What does not check out ends the export, or is
    /// reported and left out with [`ExportOptions::salvage`]. Never fails itself: what ended
    /// it is in [`ExportReport::failure`].
    ///
    /// ```
    /// # let vault = strongroom::Vault::builder().in_memory().open()?;
    /// # let home = tempfile::tempdir()?;
    /// use strongroom::transfer::{ExportOptions, ToDirectory};
    ///
    /// let tenant = vault.tenant("acme/user-17")?;
    /// tenant.create("/memories/people/ada.md", "Likes tea\n")?;
    /// let mut target = ToDirectory::create(home.path().join("out"))?;
    /// let report = tenant.export(&mut target, ExportOptions::new(), |_path, _outcome| ());
    /// assert!(report.failure.is_none());
    /// assert_eq!(std::fs::read(home.path().join("out/people/ada.md"))?, b"Likes tea\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export(
        &self,
        sink: &mut dyn ExportSink,
        options: ExportOptions,
        each: impl FnMut(&str, &ExportOutcome),
    ) -> ExportReport {
        let mut export = Export {
            tenant: self,
            rules: self.rules(),
            sink,
            options,
            each,
            report: ExportReport::default(),
            is_past_holds: false,
        };
        if let Err(error) = export.note() {
            export.report.failure = Some(error.into());
            return export.report;
        }
        if export.directory(&MemoryPath::root()).is_continue() {
            let finished = export.sink.finish();
            if let Err(error) = finished {
                export.report.failure = Some(write_failed(&error));
            }
        }
        export.report
    }
}

struct Export<'a, F> {
    tenant: &'a Tenant,
    rules: Rules,
    sink: &'a mut dyn ExportSink,
    options: ExportOptions,
    each: F,
    report: ExportReport,
    /// Whether the list of holds cannot be read, so that nothing counts as expired.
    is_past_holds: bool,
}

/// An entry as far as the walk needs it.
struct Listed {
    path: String,
    is_directory: bool,
}

struct Content {
    bytes: Plain,
    modified: UnixMillis,
    is_stale: bool,
}

impl<F: FnMut(&str, &ExportOutcome)> Export<'_, F> {
    /// Notes in the audit log who takes how much out, before the first byte leaves. An export
    /// that cannot be logged does not happen, unless what is left is to be saved.
    fn note(&mut self) -> Result<(), StoreError> {
        let line = Line::new(self.tenant, &self.rules, "export");
        if !self.rules.in_force.policy.audit.enabled {
            return Ok(());
        }
        let totals = |reader: &Reader<'_>| {
            let totals = reader.totals(&reader.root());
            totals.map_err(Abort::<()>::Failed)
        };
        let noted = unrefused(line.store().read(&self.tenant.tenant, totals)).and_then(|below| {
            let mut draft = line.draft.borrow().clone();
            draft.bytes = below.bytes;
            let draft = draft.detail(format!("{} files", below.files));
            line.store().note_now(&self.tenant.tenant, draft)
        });
        if self.options.salvage { Ok(()) } else { noted }
    }

    /// Exports what lies in a directory.
    fn directory(&mut self, path: &MemoryPath) -> ControlFlow<()> {
        let entries = match self.read(|reader| list(reader, path)) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(path.as_str(), error),
        };
        for entry in entries {
            // The name was accepted once, under whatever rule on portable names.
            let Ok(path) = Guard::new().portable_names(false).check(&entry.path) else {
                let why = "the path guard of this version does not accept the name".to_owned();
                self.report.not_held += 1;
                (self.each)(&entry.path, &ExportOutcome::NotHeld(why));
                continue;
            };
            if entry.is_directory {
                let now = self.tenant.shared.store.now();
                let made = self.sink.directory(relative(&path), now);
                if self.put(&path, ExportOutcome::Directory, made)? {
                    self.report.directories += 1;
                    self.directory(&path)?;
                }
            } else {
                self.file(&path)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn file(&mut self, path: &MemoryPath) -> ControlFlow<()> {
        let digest = self.rules.in_force.digest;
        let has_engine = self.rules.in_force.engine.is_some();
        let read = self.read(|reader| {
            let walk = reader.walk(path)?;
            // Gone since it was listed.
            let Some(DirentBody::File(meta)) = walk.target().map(|entry| &entry.body) else {
                return Ok(None);
            };
            let is_text = meta.kind == FileKind::Text;
            Ok(Some(Content {
                bytes: reader.content(meta)?,
                modified: meta.modified,
                is_stale: has_engine && is_text && meta.policy_digest != digest,
            }))
        });
        let content = match read {
            Ok(Some(content)) => content,
            Ok(None) => return ControlFlow::Continue(()),
            Err(error) => return self.unreadable(path.as_str(), error),
        };
        let bytes = content.bytes.len() as u64;
        let written = self
            .sink
            .file(relative(path), &content.bytes, content.modified);
        if self.put(path, ExportOutcome::File(bytes), written)? {
            self.report.files += 1;
            self.report.bytes += bytes;
            self.report.stale += u64::from(content.is_stale);
        }
        ControlFlow::Continue(())
    }

    /// Notes what the target said. Says whether it took it.
    fn put(
        &mut self,
        path: &MemoryPath,
        outcome: ExportOutcome,
        put: Result<(), SinkError>,
    ) -> ControlFlow<(), bool> {
        match put {
            Ok(()) => {
                (self.each)(path.as_str(), &outcome);
                ControlFlow::Continue(true)
            }
            Err(SinkError::Name(why)) => {
                self.report.not_held += 1;
                (self.each)(path.as_str(), &ExportOutcome::NotHeld(why.to_owned()));
                ControlFlow::Continue(false)
            }
            Err(SinkError::Failed(error)) => {
                self.report.failure = Some(write_failed(&error));
                ControlFlow::Break(())
            }
        }
    }

    /// Damage ends the export, unless what is left is to be saved.
    fn unreadable(&mut self, path: &str, error: StoreError) -> ControlFlow<()> {
        if error.is_damage() {
            self.report.damaged += 1;
            (self.each)(path, &ExportOutcome::Damaged(error.to_string()));
            if self.options.salvage {
                return ControlFlow::Continue(());
            }
        }
        self.report.failure = Some(error.into());
        ControlFlow::Break(())
    }

    fn read<T>(
        &mut self,
        read: impl Fn(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let store = &self.tenant.shared.store;
        let read = |reader: &Reader<'_>| read(reader).map_err(Abort::<()>::Failed);
        if !self.is_past_holds {
            match unrefused(store.read(&self.tenant.tenant, read)) {
                Err(error) if error.is_damage() && self.options.salvage => {
                    // Every read needs the holds, to know what is expired.
                    let nothing = |_: &Reader<'_>| Ok::<_, Abort<()>>(());
                    let with_holds = unrefused(store.read(&self.tenant.tenant, nothing));
                    let without = unrefused(store.read_all(&self.tenant.tenant, nothing));
                    if with_holds.is_ok() || without.is_err() {
                        return Err(error);
                    }
                    self.is_past_holds = true;
                    self.report.damaged += 1;
                    let what = ExportOutcome::Damaged(
                        "read the holds: nothing counts as expired".to_owned(),
                    );
                    (self.each)(ROOT, &what);
                }
                done => return done,
            }
        }
        unrefused(store.read_all(&self.tenant.tenant, read))
    }
}

fn list(reader: &Reader<'_>, path: &MemoryPath) -> Result<Vec<Listed>, StoreError> {
    let directory = if path.is_root() {
        reader.root()
    } else {
        match reader.walk(path)?.target_directory() {
            Some(directory) => directory.clone(),
            // Gone since it was listed.
            None => return Ok(Vec::new()),
        }
    };
    let listed = |entry: crate::record::Dirent| Listed {
        path: directory.path_of(&entry.name),
        is_directory: matches!(entry.body, DirentBody::Directory { .. }),
    };
    Ok(reader
        .children(&directory)?
        .into_iter()
        .map(listed)
        .collect())
}

/// The path below `/memories`.
fn relative(path: &MemoryPath) -> &str {
    path.as_str()
        .strip_prefix(ROOT)
        .map_or("", |rest| rest.trim_start_matches('/'))
}

fn unrefused<T>(done: Result<T, Abort<()>>) -> Result<T, StoreError> {
    match done {
        Ok(value) => Ok(value),
        Err(Abort::Failed(error)) => Err(error),
        Err(Abort::Refused(())) => Err(StoreError::Limit("nothing was read")),
    }
}

fn write_failed(error: &std::io::Error) -> Error {
    Error::Transfer {
        doing: "write the export",
        kind: error.kind(),
    }
}
