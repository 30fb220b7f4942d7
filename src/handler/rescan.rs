//! Brings stored files under today's redaction rules.
//!
//! Each file remembers the policy and rules under which it was scanned, so a rescan that
//! was interrupted goes on where it stopped.

use crate::audit::Draft;
use crate::error::Error;
use crate::path::{Guard, MemoryPath};
use crate::record::{DirentBody, FileKind};
use crate::store::{Directory, NewFile, Reader};

use super::edits::file_at;
use super::{Line, Stop, Tenant, refuse, texts};

/// What a rescan did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RescanReport {
    /// Files that an older policy, or an older build's rules, had scanned.
    pub stale: u64,
    /// Files from which values were removed.
    pub changed: u64,
    /// Values that were removed.
    pub values: u64,
    /// Paths of files that could not be scanned: over a cap of the engine, or not text.
    pub skipped: Vec<String>,
    /// Paths whose names hold what looks like a secret. Names are never changed.
    pub names: Vec<String>,
}

impl Tenant {
    /// Applies today's redaction to every file that was stored under older rules.
    /// `progress` is told how many of how many files are done.
    ///
    /// # Errors
    /// As [`Tenant::run`]. What was done until then is kept; the next run goes on from there.
    pub fn rescan(
        &self,
        dry_run: bool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<RescanReport, Error> {
        let rules = self.rules();
        let line = Line::new(self, &rules, "rescan");
        let mut report = RescanReport::default();
        let listed = line.store().read(&self.tenant, |reader| {
            let mut files = Listed::default();
            line.list_stale(reader, &reader.root(), &mut files)?;
            Ok::<_, Stop>(files)
        });
        let listed = match listed {
            Ok(listed) => listed,
            Err(stop) => return line.settle(Err(stop)).map(|_reply| report),
        };
        report.names = listed.names;
        report.stale = listed.stale.len() as u64;
        for (done, path) in listed.stale.iter().enumerate() {
            let values = if dry_run {
                line.count_values(path)
            } else {
                line.rescan_file(path)
            };
            match values {
                Ok(0) => {}
                Ok(values) => {
                    report.changed += 1;
                    report.values += values;
                }
                Err(crate::store::Abort::Refused(_)) => report.skipped.push(path.to_string()),
                Err(crate::store::Abort::Failed(error)) => return Err(error.into()),
            }
            progress(done as u64 + 1, report.stale);
        }
        Ok(report)
    }
}

#[derive(Default)]
struct Listed {
    stale: Vec<MemoryPath>,
    names: Vec<String>,
}

impl Line<'_> {
    /// Redacts one stored file again. Returns how many values were removed.
    pub(super) fn rescan_file(&self, path: &MemoryPath) -> Result<u64, Stop> {
        self.store().write(&self.tenant.tenant, |change| {
            let digest = self.rules.in_force.digest;
            let meta =
                file_at(change.reader(), path)?.ok_or_else(|| refuse(texts::missing(path)))?;
            if meta.policy_digest == digest {
                return Ok(0);
            }
            if meta.kind == FileKind::Bytes {
                change.set_policy_digest(path, digest)?;
                return Ok(0);
            }
            let text = self
                .text_to_edit(change.reader(), path, || texts::missing(path))?
                .text;
            let Some(engine) = &self.rules.in_force.engine else {
                change.set_policy_digest(path, digest)?;
                return Ok(0);
            };
            let pseudonym = |value: &[u8]| change.pseudonym(value);
            let redacted = engine
                .scrub(&text, Some(&pseudonym))
                .map_err(|_| refuse(texts::missing(path)))?;
            let findings = redacted.findings;
            let values = findings.len() as u64;
            let cleaned = zeroize::Zeroizing::new(redacted.text.into_owned());
            if values == 0 {
                change.set_policy_digest(path, digest)?;
            } else {
                let file = NewFile {
                    kind: FileKind::Text,
                    bytes: cleaned.as_bytes(),
                    lines: crate::edit::line_count(&cleaned),
                    policy_digest: digest,
                };
                change.put_file(path, &file)?;
                // Nobody has opened it: a rescan must not keep a file from expiring.
                change.set_accessed(path, meta.accessed)?;
                let mut draft = Draft::new("rescan");
                draft.path = Some(path.as_str().to_owned());
                draft.bytes = cleaned.len() as u64;
                for finding in &findings {
                    draft.count_rule(&finding.rule);
                }
                change.audit(draft);
            }
            Ok(values)
        })
    }

    /// How many values a rescan of this file would remove.
    fn count_values(&self, path: &MemoryPath) -> Result<u64, Stop> {
        self.store().read(&self.tenant.tenant, |reader| {
            let meta = file_at(reader, path)?;
            let Some(meta) = meta.filter(|meta| meta.kind == FileKind::Text) else {
                return Ok(0);
            };
            let content = reader.content(&meta)?;
            let (Some(engine), Ok(text)) =
                (&self.rules.in_force.engine, std::str::from_utf8(&content))
            else {
                return Ok(0);
            };
            let redacted = engine
                .scrub(text, None)
                .map_err(|_| refuse(texts::missing(path)))?;
            Ok(redacted.findings.len() as u64)
        })
    }

    fn list_stale(
        &self,
        reader: &Reader<'_>,
        directory: &Directory,
        listed: &mut Listed,
    ) -> Result<(), Stop> {
        for entry in reader.children(directory)? {
            let path = directory.path_of(&entry.name);
            if self.secret_in(&entry.name).is_some() {
                listed.names.push(path.clone());
            }
            match (&entry.body, directory.child(&entry)) {
                (_, Some(below)) => self.list_stale(reader, &below, listed)?,
                (DirentBody::File(meta), _) if meta.policy_digest != self.rules.in_force.digest => {
                    // The names were accepted once, under whatever rule on portable names.
                    let guard = Guard::new().portable_names(false);
                    listed.stale.extend(guard.check(&path).ok());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
