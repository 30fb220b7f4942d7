//! The line from a command to a reply: guard, policy, edit, redact, limits, store.
//!
//! [`Tenant::run`] reads like that line. Each command has a file of its own, which asks the
//! steps for what it needs and writes nothing before all of them have agreed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::audit::ACTOR_BYTES_MAX;
use crate::error::Error;
use crate::policy::EffectivePolicy;
use crate::store::{self, Abort, Picture};
use crate::wire::{self, Command, Reply};

mod audit_log;
mod backup;
mod builder;
mod clear;
mod create;
mod delete;
mod edits;
mod erase;
mod expire;
mod in_force;
mod insert;
mod line;
mod put_bytes;
mod redaction;
mod rename;
mod rescan;
mod rotate;
mod str_replace;
mod texts;
mod tokens;
pub mod transfer;
mod vault;
mod view;

use in_force::InForce;
use line::{Line, refuse};

pub use audit_log::{AuditReport, Checkpoint};
pub use backup::{BackupTargets, Erasures, RestoreSources, TenantSource, restore, verify_backup};
pub use builder::{Proof, VaultBuilder};
pub use erase::{ErasureCheck, state_word as erasure_state_word};
pub use expire::{ExpireReport, HoldInfo};
pub use rescan::RescanReport;
pub use rotate::{MasterRotated, NewKey, Rotated};
pub use tokens::{NewToken, TokenInfo};
pub use vault::{Slot, Vault};

/// One tenant's memory. Cheap to clone; all clones and all threads may use it at once.
#[derive(Clone)]
pub struct Tenant {
    shared: Arc<vault::Shared>,
    tenant: Arc<store::Tenant>,
    name: Arc<str>,
    rules: Arc<Mutex<Option<Rules>>>,
    actor: Option<String>,
    session: Option<String>,
    is_reader: bool,
}

/// The policy as it binds one tenant.
#[derive(Clone)]
struct Rules {
    in_force: Arc<InForce>,
    effective: Arc<EffectivePolicy>,
}

/// The answer to one line of input.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The `id` of the `tool_use` block, if the input was one.
    pub tool_use_id: Option<String>,
    /// What the model is to read.
    pub reply: Reply,
    /// Set when it was the store that failed, not the command: what the host should know.
    pub failure: Option<Error>,
    /// The command's name, if the input was one.
    pub command: Option<&'static str>,
    /// How many values were removed by which redaction rules, as the audit log counts them.
    pub rules: BTreeMap<String, u64>,
}

impl Answer {
    /// The answer of a host that has a reply of its own.
    #[must_use]
    pub fn replied(tool_use_id: Option<String>, reply: Reply) -> Self {
        Self {
            tool_use_id,
            reply,
            failure: None,
            command: None,
            rules: BTreeMap::new(),
        }
    }

    /// The answer where the store failed: the model reads a text without details.
    #[must_use]
    pub fn failed(tool_use_id: Option<String>, failure: Error) -> Self {
        let reply = texts::failed(&failure);
        Self {
            failure: Some(failure),
            ..Self::replied(tool_use_id, reply)
        }
    }

    /// The `tool_result` block as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.reply.to_tool_result(self.tool_use_id.as_deref())
    }
}

/// The one command that changes nothing.
const VIEW: &str = "view";

/// Why a command ended without its work done: with a reply for the model, or a failure.
type Stop = Abort<Reply>;

impl Tenant {
    /// The tenant's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same tenant, with whom the audit log names as the one who acts, and in which
    /// session. Longer texts are cut at 128 bytes.
    #[must_use]
    pub fn as_actor(&self, actor: &str, session: Option<&str>) -> Self {
        let cut = |text: &str| {
            let end = text.floor_char_boundary(ACTOR_BYTES_MAX);
            text.get(..end).unwrap_or_default().to_owned()
        };
        Self {
            actor: Some(cut(actor)),
            session: session.map(cut),
            ..self.clone()
        }
    }

    /// The same tenant, for somebody who may only look: every command but `view` is refused,
    /// and so is [`Tenant::put_bytes`].
    #[must_use]
    pub fn as_reader(&self) -> Self {
        Self {
            is_reader: true,
            ..self.clone()
        }
    }

    /// Carries out one tool input, or one whole `tool_use` block, as JSON text.
    ///
    /// Never panics and never fails: hostile or malformed input gets a reply that says what
    /// is wrong with it. The answer is durable before this returns.
    ///
    /// ```
    /// # use strongroom::{Vault, key::{KdfParams, KeySource}};
    /// # let vault = Vault::builder().in_memory().open()?;
    /// let tenant = vault.tenant("acme/user-17")?;
    /// let answer = tenant.execute(
    ///     r#"{"command":"create","path":"/memories/notes.md","file_text":"Likes tea\n"}"#,
    /// );
    /// assert_eq!(
    ///     answer.to_json(),
    ///     r#"{"type":"tool_result","content":"File created successfully at: /memories/notes.md"}"#,
    /// );
    /// # Ok::<(), strongroom::Error>(())
    /// ```
    #[must_use]
    pub fn execute(&self, json: &str) -> Answer {
        self.answer(wire::parse(json.as_bytes()))
    }

    /// Carries out a request that was parsed already, as [`Tenant::execute`] does.
    #[must_use]
    pub fn answer(&self, request: wire::Request) -> Answer {
        let tool_use_id = request.tool_use_id;
        let command = match request.command {
            Ok(command) => command,
            Err(error) => return Answer::replied(tool_use_id, Reply::from(&error)),
        };
        let rules = self.rules();
        let line = Line::new(self, &rules, command.name());
        let answer = match line.run(&command) {
            Ok(reply) => Answer::replied(tool_use_id, reply),
            Err(failure) => Answer::failed(tool_use_id, failure),
        };
        Answer {
            command: Some(command.name()),
            rules: line.draft.into_inner().rules,
            ..answer
        }
    }

    /// Carries out one command. A reply with `is_error` set is for the model.
    ///
    /// # Errors
    /// When the store itself fails, see [`Error::code`]; after
    /// [`StoreError::OutcomeUnknown`](crate::StoreError::OutcomeUnknown) the store must be
    /// opened again to know whether a write happened.
    pub fn run(&self, command: &Command) -> Result<Reply, Error> {
        let rules = self.rules();
        Line::new(self, &rules, command.name()).run(command)
    }

    /// `view`: a file's numbered lines, an image, or a directory's listing.
    ///
    /// # Errors
    /// As [`Tenant::run`], here and below.
    pub fn view(&self, path: &str, view_range: Option<wire::ViewRange>) -> Result<Reply, Error> {
        self.run(&Command::View {
            path: path.to_owned(),
            view_range,
        })
    }

    /// `create`: a new text file.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    ///
    /// ```
    /// # let vault = strongroom::Vault::builder().in_memory().open()?;
    /// let tenant = vault.tenant("acme/user-17")?;
    /// assert!(!tenant.create("/memories/a.md", "one\ntwo\n")?.is_error);
    /// assert!(!tenant.insert("/memories/a.md", 1, "between\n")?.is_error);
    /// assert!(!tenant.str_replace("/memories/a.md", "two", "2")?.is_error);
    /// assert!(!tenant.rename("/memories/a.md", "/memories/b.md")?.is_error);
    /// let reply = tenant.view("/memories/b.md", None)?;
    /// assert_eq!(
    ///     reply.as_text(),
    ///     Some("Here's the content of /memories/b.md with line numbers:\n     1\tone\n     2\tbetween\n     3\t2"),
    /// );
    /// assert!(!tenant.delete("/memories/b.md")?.is_error);
    /// assert!(tenant.view("/memoriesX/b.md", None)?.is_error);
    /// # Ok::<(), strongroom::Error>(())
    /// ```
    pub fn create(&self, path: &str, file_text: &str) -> Result<Reply, Error> {
        self.run(&Command::Create {
            path: path.to_owned(),
            file_text: file_text.to_owned(),
        })
    }

    /// `str_replace`: one literal text for another, where the old one stands exactly once.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn str_replace(&self, path: &str, old_str: &str, new_str: &str) -> Result<Reply, Error> {
        self.run(&Command::StrReplace {
            path: path.to_owned(),
            old_str: old_str.to_owned(),
            new_str: new_str.to_owned(),
        })
    }

    /// `insert`: whole lines after line `insert_line`; 0 is before the first.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn insert(&self, path: &str, insert_line: i64, insert_text: &str) -> Result<Reply, Error> {
        self.run(&Command::Insert {
            path: path.to_owned(),
            insert_line,
            insert_text: insert_text.to_owned(),
        })
    }

    /// `delete`: a file, or a directory with all that is below it.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn delete(&self, path: &str) -> Result<Reply, Error> {
        self.run(&Command::Delete {
            path: path.to_owned(),
        })
    }

    /// `rename`: a file or directory, never over something that exists.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn rename(&self, old_path: &str, new_path: &str) -> Result<Reply, Error> {
        self.run(&Command::Rename {
            old_path: old_path.to_owned(),
            new_path: new_path.to_owned(),
        })
    }

    /// Stores bytes that the host brings: an image (`.png`, `.jpg`, `.jpeg` with that
    /// signature) or UTF-8 text, in place of what was there. Everything else is refused,
    /// since it could be neither shown nor scanned.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn put_bytes(&self, path: &str, bytes: &[u8]) -> Result<Reply, Error> {
        let rules = self.rules();
        let line = Line::new(self, &rules, "put_bytes");
        line.settle(match self.is_reader {
            true => line.refuse_to_write(path),
            false => line.put_bytes(path, bytes),
        })
    }

    /// Adds this tenant's files to a picture of what lies where, how old it is, and when it
    /// expires. Reads every directory, and no content.
    ///
    /// # Errors
    /// When a directory cannot be read. The picture is as it was then.
    pub fn add_to_picture(&self, picture: &mut Picture) -> Result<(), Error> {
        Ok(self.shared.store.picture(&self.tenant, picture)?)
    }

    /// The longest input line that `exec` accepts under this tenant's policy, in bytes.
    #[must_use]
    pub fn line_bytes_max(&self) -> usize {
        wire::line_bytes_max(self.rules().effective.limits.max_file_bytes)
    }

    fn tag(&self) -> crate::key::FileTag {
        self.tenant.tag()
    }

    fn rules(&self) -> Rules {
        let in_force = self.shared.in_force();
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        match &*rules {
            Some(rules) if Arc::ptr_eq(&rules.in_force, &in_force) => rules.clone(),
            _ => {
                let effective = Arc::new(in_force.policy.for_tenant(&self.name));
                rules
                    .insert(Rules {
                        in_force,
                        effective,
                    })
                    .clone()
            }
        }
    }
}
