//! What one command carries from its start to its end: tenant, rules, and its entry in the audit log.

use std::cell::RefCell;

use crate::audit::{Draft, Outcome};
use crate::error::Error;
use crate::path::{Guard, MemoryPath};
use crate::store::{Abort, Change, Store, StoreError};
use crate::wire::{Command, Reply};

use super::{Rules, Stop, Tenant, VIEW, texts};

/// What every step of one command needs, and what the audit log is told of it.
pub(super) struct Line<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) rules: &'a Rules,
    pub(super) draft: RefCell<Draft>,
}

impl<'a> Line<'a> {
    pub(super) fn new(tenant: &'a Tenant, rules: &'a Rules, command: &str) -> Self {
        let mut draft = Draft::new(command);
        draft.actor.clone_from(&tenant.actor);
        draft.session.clone_from(&tenant.session);
        Self {
            tenant,
            rules,
            draft: RefCell::new(draft),
        }
    }

    pub(super) fn run(&self, command: &Command) -> Result<Reply, Error> {
        let done = match command {
            Command::View { path, view_range } => self.view(path, *view_range),
            Command::Create { path, .. }
            | Command::StrReplace { path, .. }
            | Command::Insert { path, .. }
            | Command::Delete { path }
            | Command::Rename { old_path: path, .. }
                if self.tenant.is_reader =>
            {
                self.refuse_to_write(path)
            }
            Command::Create { path, file_text } => self.create(path, file_text),
            Command::StrReplace {
                path,
                old_str,
                new_str,
            } => self.str_replace(path, old_str, new_str),
            Command::Insert {
                path,
                insert_line,
                insert_text,
            } => self.insert(path, *insert_line, insert_text),
            Command::Delete { path } => self.delete(path),
            Command::Rename { old_path, new_path } => self.rename(old_path, new_path),
        };
        self.settle(done)
    }

    pub(super) fn refuse_to_write(&self, path: &str) -> Result<Reply, Stop> {
        Err(refuse(texts::only_read(&self.guard(path)?)))
    }

    /// Plans a change and commits it together with its audit entry.
    pub(super) fn write<T>(
        &self,
        plan: impl FnOnce(&mut Change<'_>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.store().write(&self.tenant.tenant, |change| {
            let value = plan(change)?;
            change.audit(self.draft.borrow().clone());
            Ok(value)
        })
    }

    pub(super) fn store(&self) -> &Store {
        &self.tenant.shared.store
    }

    /// A refusal is a reply like any other; only a failure of the store is an error.
    ///
    /// What changed something is in the audit log by now; views and refusals are noted here.
    pub(super) fn settle(&self, done: Result<Reply, Stop>) -> Result<Reply, Error> {
        let reply = match done {
            Ok(reply) => reply,
            Err(Abort::Refused(reply)) => {
                self.draft.borrow_mut().outcome = Outcome::Refused;
                reply
            }
            Err(Abort::Failed(error)) => return Err(error.into()),
        };
        let (is_refused, is_view) = {
            let draft = self.draft.borrow();
            (draft.outcome == Outcome::Refused, draft.command == VIEW)
        };
        if is_refused {
            let draft = self.draft.borrow().clone();
            self.note_refused(draft)?;
        } else if is_view {
            // It has counted no rule, so nobody asks for it later.
            let draft = self.draft.replace(Draft::new(""));
            self.store().note(&self.tenant.tenant, draft, true)?;
        }
        Ok(self.scrub_error(reply))
    }

    /// Notes what was refused, which may be so because its path holds a secret.
    pub(super) fn note_refused(&self, mut draft: Draft) -> Result<(), StoreError> {
        for path in [&mut draft.path, &mut draft.to].into_iter().flatten() {
            *path = self.showable(path);
        }
        let is_view = draft.command == VIEW;
        self.store().note(&self.tenant.tenant, draft, is_view)
    }

    /// The guard: the only way from text to a path.
    pub(super) fn guard(&self, raw: &str) -> Result<MemoryPath, Stop> {
        let path = Guard::new()
            .portable_names(self.rules.effective.paths.portable_names)
            .check(raw)
            // The guard's messages quote what they refuse, cut at some length: a secret in
            // it must be seen before the cut.
            .map_err(|error| match self.secret_in(raw) {
                None => refuse(format!("Error: {error}")),
                Some(rule) => refuse(format!(
                    "Error: The path was refused, and it holds what looks like a secret (rule {rule}). Use a path below /memories without it"
                )),
            })?;
        let mut draft = self.draft.borrow_mut();
        if draft.path.is_none() {
            draft.path = Some(path.as_str().to_owned());
        } else {
            draft.to = Some(path.as_str().to_owned());
        }
        drop(draft);
        Ok(path)
    }
}

/// Ends a command with an error text for the model.
pub(super) fn refuse(text: impl Into<String>) -> Stop {
    Abort::Refused(Reply::error(text))
}
