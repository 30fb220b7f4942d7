//! Import: files from a directory or an archive, each through the whole line of a write.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::audit::Outcome;
use crate::error::Error;
use crate::key::Plain;
use crate::path::{MemoryPath, Quoted, ROOT};
use crate::policy::PatternSet;
use crate::store::{Abort, StoreError};
use crate::wire::Reply;

use super::super::edits::Ahead;
use super::super::put_bytes::Put;
use super::super::view::{has_image_name, image_type};
use super::super::{Line, Rules, Stop, Tenant, refuse, texts};
use super::{
    ENTRIES_MAX, ImportOptions, ImportOutcome, ImportReport, ImportSource, SourceEntry, SourceKind,
};

impl Tenant {
    /// Stores the regular files of `source` under `/memories`, each as one durable write of
    /// its own that passes the guard, policy, redaction and limits. `each` is told what
    /// became of each, by its path in the store, or by its name in the source where that is
    /// none.
    ///
    /// What is no regular file is refused and listed. A file that exists stays and is
    /// reported, so an import that was ended goes on where it stopped. Empty directories are
    /// not made. Never fails itself: what ended it is in [`ImportReport::failure`].
    ///
    /// ```
    /// # let vault = strongroom::Vault::builder().in_memory().open()?;
    /// # let home = tempfile::tempdir()?;
    /// # std::fs::write(home.path().join("tea.md"), "Likes tea\n")?;
    /// use strongroom::transfer::{FromDirectory, ImportOptions};
    ///
    /// let tenant = vault.tenant("acme/user-17")?;
    /// let mut source = FromDirectory::open(home.path())?;
    /// let report = tenant.import(&mut source, ImportOptions::new(), |_path, _outcome| ());
    /// assert_eq!((report.stored, report.refused), (1, 0));
    /// assert!(!tenant.view("/memories/tea.md", None)?.is_error);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn import(
        &self,
        source: &mut dyn ImportSource,
        options: ImportOptions,
        each: impl FnMut(&str, &ImportOutcome),
    ) -> ImportReport {
        let mut rules = self.rules();
        if options.as_operator {
            // The patterns bind agents; everything else stays as it is.
            let mut effective = (*rules.effective).clone();
            effective.paths.read_only = PatternSet::default();
            effective.paths.denied = PatternSet::default();
            rules.effective = Arc::new(effective);
        }
        let mut import = Import {
            tenant: self,
            rules,
            options,
            each,
            entries: 0,
            at: None,
            report: ImportReport::default(),
            planned: Planned::default(),
        };
        let visited = source.visit(&mut |entry| import.entry(entry));
        if let (Err(error), None) = (visited, &import.report.failure) {
            import.report.failure = Some(read_failed(error.kind()));
        }
        import.report
    }
}

struct Import<'a, F> {
    tenant: &'a Tenant,
    rules: Rules,
    options: ImportOptions,
    each: F,
    entries: u64,
    /// The path of the entry at hand, if it is one.
    at: Option<MemoryPath>,
    report: ImportReport,
    planned: Planned,
}

/// What a dry run would have stored so far.
#[derive(Default)]
struct Planned {
    ahead: Ahead,
    /// `None` for a directory that would have been made.
    paths: HashMap<String, Option<PlannedFile>>,
}

#[derive(Clone, Copy)]
struct PlannedFile {
    bytes: u64,
    /// The size of the stored file that it would replace.
    replaced: Option<u64>,
}

impl<F: FnMut(&str, &ImportOutcome)> Import<'_, F> {
    fn entry(&mut self, entry: SourceEntry<'_>) -> ControlFlow<()> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            self.report.failure = Some(read_failed(std::io::ErrorKind::FileTooLarge));
            return ControlFlow::Break(());
        }
        let line = Line::new(self.tenant, &self.rules, "import");
        let shown = line.showable(Quoted::new(&String::from_utf8_lossy(entry.name)).as_str());
        self.at = None;
        let path = match path_of(&line, entry.name) {
            Ok(path) => path,
            Err(stop) => return self.ended(&shown, Err(stop)),
        };
        self.at = Some(path.clone());
        match entry.kind {
            // Made with the first file in it.
            SourceKind::Directory => ControlFlow::Continue(()),
            SourceKind::Refused(why) => self.tell(&shown, ImportOutcome::Refused(why.to_owned())),
            SourceKind::File { bytes, content } => {
                let done = read(&line, &path, bytes, content)
                    .and_then(|content| self.store(&path, &content));
                let line = Line::new(self.tenant, &self.rules, "import");
                let name = line.showable(path.as_str());
                self.ended(&name, done)
            }
        }
    }

    fn store(&mut self, path: &MemoryPath, content: &[u8]) -> Result<ImportOutcome, Stop> {
        let line = Line::new(self.tenant, &self.rules, "import");
        line.draft.borrow_mut().path = Some(path.as_str().to_owned());
        if !self.options.images && image_type(path, content).is_some() {
            return Ok(ImportOutcome::Image);
        }
        let put = if self.options.dry_run {
            self.planned
                .put(&line, path, content, self.options.overwrite)?
        } else {
            line.put_at(path, content, self.options.overwrite)?
        };
        Ok(match put {
            Put::Exists => ImportOutcome::Exists,
            Put::Stored(stored) => ImportOutcome::Stored {
                bytes: stored.bytes,
                removed: stored.removed,
            },
        })
    }

    /// A refusal is about one file; a failure of the store ends the import.
    fn ended(&mut self, name: &str, done: Result<ImportOutcome, Stop>) -> ControlFlow<()> {
        match done {
            Ok(outcome) => self.tell(name, outcome),
            Err(Abort::Refused(reply)) => {
                let line = Line::new(self.tenant, &self.rules, "import");
                let reply = line.scrub_error(reply);
                let why = reply.as_text().unwrap_or_default().to_owned();
                self.tell(name, ImportOutcome::Refused(why))
            }
            Err(Abort::Failed(error)) => {
                self.report.failure = Some(error.into());
                ControlFlow::Break(())
            }
        }
    }

    /// Notes in the audit log that an entry was refused.
    fn note_refusal(&self) -> Result<(), StoreError> {
        if self.options.dry_run {
            return Ok(());
        }
        let line = Line::new(self.tenant, &self.rules, "import");
        let mut draft = line.draft.borrow().clone();
        draft.outcome = Outcome::Refused;
        draft.path = self.at.as_ref().map(ToString::to_string);
        line.note_refused(draft)
    }

    fn tell(&mut self, name: &str, outcome: ImportOutcome) -> ControlFlow<()> {
        let report = &mut self.report;
        match &outcome {
            ImportOutcome::Stored { bytes, removed } => {
                report.stored += 1;
                report.bytes += bytes;
                report.cleaned += u64::from(*removed > 0);
                report.removed += removed;
            }
            ImportOutcome::Exists => report.exists += 1,
            ImportOutcome::Image => report.images += 1,
            ImportOutcome::Refused(_) => report.refused += 1,
        }
        (self.each)(name, &outcome);
        if matches!(outcome, ImportOutcome::Refused(_))
            && let Err(error) = self.note_refusal()
        {
            self.report.failure = Some(error.into());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Planned {
    /// What putting the file would do if all that is planned had been stored.
    fn put(
        &mut self,
        line: &Line<'_>,
        path: &MemoryPath,
        content: &[u8],
        may_replace: bool,
    ) -> Result<Put, Stop> {
        let mut above = path.parent();
        while let Some(directory) = above {
            if matches!(self.paths.get(directory.as_str()), Some(Some(_))) {
                return Err(refuse(texts::not_a_directory(&directory)));
            }
            above = directory.parent();
        }
        let mut ahead = self.ahead;
        match self.paths.get(path.as_str()) {
            None => {}
            Some(None) => return Err(refuse(texts::is_directory(path))),
            Some(Some(_)) if !may_replace => return Ok(Put::Exists),
            // As if it had not been planned.
            Some(Some(before)) => {
                ahead.bytes -= before.bytes;
                ahead.gone -= before.replaced.unwrap_or(0);
                ahead.files -= u64::from(before.replaced.is_none());
            }
        }
        let put = line.try_put_at(path, content, may_replace, ahead)?;
        if let Put::Stored(stored) = &put {
            let file = PlannedFile {
                bytes: stored.bytes,
                replaced: stored.replaced,
            };
            self.ahead = Ahead {
                files: ahead.files + u64::from(file.replaced.is_none()),
                bytes: ahead.bytes + file.bytes,
                gone: ahead.gone + file.replaced.unwrap_or(0),
            };
            self.paths.insert(path.as_str().to_owned(), Some(file));
            let mut above = path.parent();
            while let Some(directory) = above.filter(|directory| !directory.is_root()) {
                self.paths.insert(directory.as_str().to_owned(), None);
                above = directory.parent();
            }
        }
        Ok(put)
    }
}

/// The path under which an entry would be stored.
fn path_of(line: &Line<'_>, name: &[u8]) -> Result<MemoryPath, Stop> {
    let Ok(name) = std::str::from_utf8(name) else {
        return Err(refuse("Error: its name is not UTF-8"));
    };
    if name.starts_with('/') {
        return Err(refuse("Error: its name is an absolute path"));
    }
    line.guard(&format!("{ROOT}/{name}"))
}

/// Reads a file that is not too large: what its size says is checked before.
fn read(
    line: &Line<'_>,
    path: &MemoryPath,
    bytes: u64,
    content: &mut dyn Read,
) -> Result<Plain, Stop> {
    let limits = &line.rules.effective.limits;
    let mut fits = limits.check_file_bytes(bytes);
    if fits.is_err() && has_image_name(path) {
        fits = limits.check_image_bytes(bytes);
    }
    fits.map_err(|refusal| refuse(refusal.message(path.as_str())))?;
    let capacity = usize::try_from(bytes.saturating_add(1)).unwrap_or(0);
    let mut read = Plain::with_capacity(capacity);
    let done = content.take(bytes.saturating_add(1)).read_to_end(&mut read);
    match done {
        Ok(_) if read.len() as u64 == bytes => Ok(read),
        Ok(_) => Err(refuse(
            "Error: it is not as long as it says, or changed meanwhile",
        )),
        Err(error) => Err(Abort::Refused(Reply::error(format!(
            "Error: it cannot be read: {}",
            error.kind()
        )))),
    }
}

fn read_failed(kind: std::io::ErrorKind) -> Error {
    Error::Transfer {
        doing: "read what is to be imported",
        kind,
    }
}
