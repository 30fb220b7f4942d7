//! A store that several processes use at once: the first holds it and serves its control
//! socket, the others work through that one.
//!
//! This is the library's interface for adapters and servers. Where a [`Vault`] belongs to one
//! process and fails as "locked" in the next, an [`Attached`] store
//!
//! - opens the store, or connects to the process that holds it. When that process ends, the
//!   next call opens the store or connects to its next holder. A command that may have been
//!   carried out is never repeated: its answer says so;
//! - is one open store for all handles of this process that name the same directory;
//! - serves the control socket while it holds the store, so that the operator's commands and
//!   other processes go through it ([`Options::serve`] turns that off);
//! - knows that it was carried into a child by `fork`, and says so.
//!
//! ```
//! use strongroom::attach::Options;
//! use strongroom::key::KeySource;
//!
//! let home = tempfile::tempdir()?;
//! let store = Options::new(home.path().join("store"))
//!     .key(KeySource::KeyFile(home.path().join("store.key")))
//!     .create(true)
//!     .open()?;
//! let memory = store.tenant("clinic/user-17", None, None)?;
//! let answer = memory.execute(
//!     r#"{"command":"create","path":"/memories/a.md","file_text":"Likes tea\n"}"#,
//! );
//! assert_eq!(
//!     answer.reply.as_text(),
//!     Some("File created successfully at: /memories/a.md"),
//! );
//! store.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strongroom::key::KeySource;
use strongroom::path::TenantName;
use strongroom::policy::Policy;
use strongroom::wire::Reply;
use strongroom::{Code, Error, Vault};

use super::control::calls::{Told, Work};
use super::failure;

mod key;
mod opener;
mod site;
mod there;

use opener::Opener;
use site::{Caller, Site};

pub use key::KeyChoice;

/// Describes the store to attach to.
#[must_use]
pub struct Options {
    path: PathBuf,
    key: Option<KeySource>,
    create: bool,
    policy: Option<Policy>,
    serve: bool,
}

impl Options {
    /// The store in this directory.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_path_buf(),
            key: None,
            create: false,
            policy: None,
            serve: true,
        }
    }

    /// Where the key comes from, see also [`KeyChoice`]. Default: none; it must be named.
    pub fn key(mut self, source: KeySource) -> Self {
        self.key = Some(source);
        self
    }

    /// Creates the store if there is none, and its key file if there is neither. A store
    /// whose key file is missing is an error, never a reason for a new key. Default: false.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The policy of a store that is created. Default: the shipped policy `default`.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Whether this process serves the control socket while it holds the store. Without it,
    /// other processes are told that the store is locked. It is served once one handle of the
    /// process asks for it. Default: true.
    pub fn serve(mut self, serve: bool) -> Self {
        self.serve = serve;
        self
    }

    /// Attaches to the store: opens it, or connects to the process that holds it. Waits up to
    /// 5 seconds for a process that holds the store and does not take calls (yet).
    ///
    /// # Errors
    /// A [`Failure`] whose code tells the kinds apart: no store, locked by a process that
    /// takes no calls, wrong key, damaged, and so on.
    pub fn open(self) -> Result<Attached, Failure> {
        let serve = self.serve;
        let opener = Opener::new(self.path, self.key, self.create, self.policy)?;
        Site::attach(opener, serve).map(|site| Attached { site })
    }
}

/// A store that this process is attached to. Clones, and other handles to the same directory,
/// share it; the last one that goes closes it.
#[derive(Clone)]
pub struct Attached {
    site: Arc<site::Handle>,
}

/// How this process has the store at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It holds the store.
    Holder {
        /// Whether it takes calls of other processes.
        is_serving: bool,
    },
    /// Another process holds the store and carries out what this one asks for.
    Guest,
    /// Neither: the holder has ended, and the next call looks for the store again.
    Detached,
}

impl Attached {
    /// The memory of one tenant. Creates nothing; its first write does.
    ///
    /// `actor` and `session` are whom and what the audit log names, each cut at 128 bytes.
    ///
    /// # Errors
    /// For a name that is none.
    pub fn tenant(
        &self,
        name: &str,
        actor: Option<&str>,
        session: Option<&str>,
    ) -> Result<Memory, Failure> {
        let name = TenantName::parse(name).map_err(Error::from)?;
        Ok(Memory {
            site: Arc::clone(&self.site),
            caller: Arc::new(Caller::new(name.as_str(), actor, session)),
        })
    }

    /// The open store, while this process holds it. `None` while another one does.
    ///
    /// # Errors
    /// When the store can be neither opened nor reached.
    pub fn vault(&self) -> Result<Option<Vault>, Failure> {
        self.site.vault()
    }

    /// How this process has the store at the moment.
    #[must_use]
    pub fn role(&self) -> Role {
        self.site.role()
    }

    /// The key file that [`Options::create`] made, if it made one. Without it nothing in the
    /// store can ever be read: tell the operator to keep a copy elsewhere.
    #[must_use]
    pub fn new_key_file(&self) -> Option<&Path> {
        self.site.new_key_file()
    }

    /// Gives this handle up. The last one of the process closes the store, once the calls of
    /// other processes that are under way are done. Dropping it does the same, without the
    /// error.
    ///
    /// # Errors
    /// When the last sync fails.
    pub fn close(self) -> Result<(), Failure> {
        Arc::try_unwrap(self.site).map_or(Ok(()), site::Handle::close)
    }
}

/// One tenant's memory in an attached store. Cheap to clone; all clones and all threads may
/// use it at once.
#[derive(Clone)]
pub struct Memory {
    site: Arc<site::Handle>,
    caller: Arc<Caller>,
}

impl Memory {
    /// Carries out one tool input, or one whole `tool_use` block, as JSON text. Never fails:
    /// a store that cannot do its work gives an answer too, with [`Answer::failure`] set. The
    /// answer is durable before this returns.
    #[must_use]
    pub fn execute(&self, json: &str) -> Answer {
        self.call(Work::Execute(Cow::Borrowed(json)))
    }

    /// Stores bytes that the host brings, see [`Tenant::put_bytes`](crate::Tenant::put_bytes).
    #[must_use]
    pub fn put_bytes(&self, path: &str, bytes: &[u8]) -> Answer {
        self.call(Work::Put {
            path: Cow::Borrowed(path),
            data: Cow::Borrowed(bytes),
        })
    }

    /// Deletes everything that may be deleted, see [`Tenant::clear`](crate::Tenant::clear).
    #[must_use]
    pub fn clear(&self) -> Answer {
        self.call(Work::Clear)
    }

    /// The tenant's name.
    #[must_use]
    pub fn tenant(&self) -> &str {
        self.caller.tenant()
    }

    fn call(&self, work: Work<'_>) -> Answer {
        self.site.call(&self.caller, &work)
    }
}

/// The answer to one call.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The `id` of the `tool_use` block, if the input was one.
    pub tool_use_id: Option<String>,
    /// What the model is to read.
    pub reply: Reply,
    /// Set when it was the store that failed, not the command: for the host's log.
    pub failure: Option<Failure>,
}

impl Answer {
    /// The `tool_result` block as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.reply.to_tool_result(self.tool_use_id.as_deref())
    }
}

impl From<strongroom::Answer> for Answer {
    fn from(answer: strongroom::Answer) -> Self {
        Self {
            tool_use_id: answer.tool_use_id,
            reply: answer.reply,
            failure: answer.failure.as_ref().map(Failure::from),
        }
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        strongroom::Answer::failed(None, error).into()
    }
}

/// Why the store did not do its work, here or in the process that holds it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind, stable across versions.
    pub code: Code,
    /// One line that says what failed. It may name a path that the caller gave.
    pub text: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code(),
            text: failure::Failure::from(error).line(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<Told> for Failure {
    fn from(told: Told) -> Self {
        Self {
            code: told.code(),
            text: told.text,
        }
    }
}
