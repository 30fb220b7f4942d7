//! How a command fails: its exit code, one line that says what, one that says what to do.

use strongroom::key::KeyError;
use strongroom::{BackupError, Code, Error, StoreError};

use super::control::Elsewhere;
use super::output::say;

/// Exit codes other than 0. They never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Anything that has no code of its own.
    Other = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Refused by the policy or the path guard, or a policy that does not load.
    Refused = 3,
    /// There is no store, or no such thing in it.
    NotFound = 4,
    /// Stored bytes are missing, older than they should be, or altered.
    Integrity = 5,
    /// Another process holds the store.
    Locked = 6,
    /// A key is wrong, missing, or cannot be read.
    Key = 7,
    /// The disk is full.
    NoSpace = 8,
}

/// Why a command ends early.
pub enum Stop {
    /// Nobody reads the output any more.
    PipeClosed,
    /// It failed.
    Failed(Failure),
    /// Another process holds the store and carries the command out.
    Elsewhere(Box<Elsewhere>),
}

/// A failure as the operator reads it.
pub struct Failure {
    exit: Exit,
    what: String,
    next: String,
}

impl Failure {
    /// `what` goes after "failed to", `next` says what to do now.
    pub fn new(exit: Exit, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            next: next.into(),
        }
    }

    /// Adds a sentence to what is to be done.
    pub fn and_next(mut self, sentence: &str) -> Self {
        self.next = format!("{} {sentence}", self.next);
        self
    }

    /// The first line.
    pub fn line(&self) -> String {
        format!("failed to {}", self.what)
    }

    /// Writes both lines to stderr. Returns the exit code.
    pub fn report(&self) -> u8 {
        say(&format!("{}\n{}", self.line(), self.next));
        self.exit as u8
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(Failure::from(&error))
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let what = match error {
            Error::Key(error) => format!("use the key: {error}"),
            Error::Policy(error) => format!("load the policy: {error}"),
            Error::TenantName(error) => format!("use the tenant's name: {error}"),
            error => error.to_string(),
        };
        Self::new(exit(error), what, next(error))
    }
}

fn exit(error: &Error) -> Exit {
    match error {
        Error::Policy(_) | Error::Redaction(_) => return Exit::Refused,
        Error::Key(KeyError::NoSuchSlot { .. }) => return Exit::NotFound,
        _ => {}
    }
    match error.code() {
        Code::Usage => Exit::Usage,
        Code::Refused => Exit::Refused,
        Code::NotFound => Exit::NotFound,
        Code::Integrity => Exit::Integrity,
        Code::Locked => Exit::Locked,
        Code::Key => Exit::Key,
        Code::NoSpace => Exit::NoSpace,
        _ => Exit::Other,
    }
}

/// What to do now.
fn next(error: &Error) -> String {
    match error {
        Error::Store(error) => return next_for_store(error).to_owned(),
        Error::Key(error) => return next_for_key(error).to_owned(),
        Error::Backup(error) => return next_for_backup(error).to_owned(),
        _ => {}
    }
    match error {
        Error::Policy(_) | Error::Redaction(_) => "Correct it, then run `strongroom policy check` on it.",
        Error::NoKeySource => {
            "Use --key-file, --passphrase-file or --key-command, or run it on a terminal to be asked."
        }
        Error::NoPath => "Use --store, or set STRONGROOM_STORE.",
        Error::TenantName(_) => "Write another name after --tenant.",
        _ => "Try again; if it stays so, report it with this text.",
    }
    .to_owned()
}

fn next_for_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotAStore => "Check --store, or create a store with `strongroom init`.",
        StoreError::AlreadyExists => {
            "Name another directory with --store, or use the store that is there."
        }
        StoreError::Locked(_) => {
            "One process at a time can use a store: end that process, or wait for it."
        }
        StoreError::KeyFileMissing | StoreError::KeyFileDamaged | StoreError::KeyFileOlder => {
            "Restore the store's directory `keys` from a copy of the same store."
        }
        StoreError::NoSuchTenant => "Run `strongroom tenant list` for the names.",
        StoreError::Held => {
            "Run `strongroom hold list` for the holds, and remove them if they may go."
        }
        StoreError::NoSpace => "Free some space on the store's disk, then try again.",
        StoreError::RestoreUnfinished => {
            "Run `strongroom verify` on it, which first erases what was erased since the backup."
        }
        StoreError::NewerFormat(_) => "Use a newer strongroom.",
        StoreError::ReadOnly => "Leave out --read-only to write.",
        StoreError::OutcomeUnknown => {
            "Start the command again and look whether the last write is there."
        }
        StoreError::Io(_) => "Check the directory, its owner and its disk.",
        StoreError::Limit(_) => "Make the change smaller.",
        StoreError::RolledBack | StoreError::StateLost | StoreError::KeyringOlder => {
            "Keep the directory as it is, and restore a backup, or a copy of the whole directory. Without any, `strongroom verify --accept-loss` opens what is there."
        }
        error if error.is_damage() => {
            "Keep the directory as it is, and restore a copy of the whole directory."
        }
        StoreError::WritesStopped => {
            "Run `strongroom verify --read-only`, and restore a copy of the whole directory."
        }
        _ => "Try again; if it stays so, report it with this text.",
    }
}

fn next_for_backup(error: &BackupError) -> &'static str {
    match error {
        BackupError::File { kind, .. } => match kind {
            std::io::ErrorKind::AlreadyExists => "Name a file that does not exist yet.",
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "Free some space on the backup's disk, then run it again. The store is unchanged."
            }
            _ => "Check the path, its permissions and its disk.",
        },
        BackupError::Damaged(_) => {
            "Use another copy of it, or an older backup. Nothing was restored."
        }
        BackupError::NewerFormat(_) => "Use a newer strongroom.",
        BackupError::OtherKind { .. } => {
            "Name the file of records after --from, and the file of keys after --keys."
        }
        BackupError::InsideStore => "Name a file outside the store, best on another disk.",
        BackupError::Busy => "Wait until it has ended.",
        BackupError::TooManyChanges => "Run it again at a quieter time.",
        BackupError::OtherStore => {
            "Run `strongroom verify-backup` on each file, and compare the ids of their stores."
        }
        BackupError::OtherMaster => {
            "Restore the whole backup into another directory, then `export` the tenant from there and `import` it."
        }
        BackupError::NoSuchTenant => "Check the name, and which backup still had the tenant.",
        BackupError::Erased => "What was erased stays erased.",
        BackupError::NoErasures => {
            "Name certificates that `strongroom tenant erase` printed, or newer backups of the store."
        }
        _ => "Try again; if it stays so, report it with this text.",
    }
}

fn next_for_key(error: &KeyError) -> &'static str {
    match error {
        KeyError::WrongCredential => "Check that this is the key of this store.",
        KeyError::NoSlotForSource { .. } => "Use the kind of key that the store was made with.",
        KeyError::File { .. } => {
            "Check the path. If the key file is lost, another key slot's key still opens the store; without any the store cannot be read."
        }
        KeyError::FileExposed { .. } => "Run `chmod 600` on it.",
        KeyError::FileExists { .. } => "Name a file that does not exist yet.",
        KeyError::FileInsideStore { .. } => "Keep it in another directory, best on another disk.",
        KeyError::NotAKeyLine | KeyError::MistypedKeyLine | KeyError::FileEmpty { .. } => {
            "Check that it is the right file, and compare it with the copy you keep elsewhere."
        }
        KeyError::NewerKeyLine | KeyError::UnknownFormat { .. } => "Use a newer strongroom.",
        KeyError::DamagedSlot { .. } | KeyError::DamagedHeader | KeyError::NoKeyring => {
            "Restore the store's keyring.a and keyring.b from a copy."
        }
        KeyError::NoSuchSlot { .. } => "Run `strongroom key list` for the ids.",
        KeyError::OtherSlots => {
            "Name --drop-other-slots to let them go, and add their keys again afterwards with `strongroom key add`."
        }
        KeyError::LastSlot => "Add another key first, with `strongroom key add`.",
        KeyError::SlotsFull => "Remove one first, with `strongroom key remove`.",
        KeyError::KdfTooExpensive { .. } => "Free some memory, then try again.",
        KeyError::Label => "Write another label.",
        KeyError::CommandEmpty
        | KeyError::CommandStart { .. }
        | KeyError::CommandTimeout { .. }
        | KeyError::CommandExit { .. }
        | KeyError::CommandKilled
        | KeyError::CommandOutputTooLong
        | KeyError::CommandNoOutput => {
            "Run the key command by itself; it must print one key line, without asking anything."
        }
        _ => "Check where the key comes from.",
    }
}
