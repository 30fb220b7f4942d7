//! strongroom: a hardened, encrypted handler for Claude's memory tool `memory_20250818`.

// The command line is written against the public names, as any embedder is.
#[cfg(feature = "cli")]
extern crate self as strongroom;

pub mod audit;
pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
pub mod edit;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handler;
mod hex;
pub mod key;
pub mod path;
pub mod policy;
mod record;
pub mod redact;
mod retention;
mod seal;
mod store;
#[cfg(test)]
mod vectors;
pub mod wire;

#[cfg(feature = "cli")]
pub use cli::attach;
pub use error::{Code, Error};
/// Export of a tenant's files to a directory or a tar stream, and import from one:
/// [`Tenant::export`] and [`Tenant::import`].
pub use handler::transfer;
pub use handler::{
    Answer, AuditReport, BackupTargets, Checkpoint, ErasureCheck, Erasures, ExpireReport, HoldInfo,
    MasterRotated, NewKey, NewToken, Proof, RescanReport, RestoreSources, Rotated, Slot, Tenant,
    TenantSource, TokenInfo, Vault, VaultBuilder, erasure_state_word, restore, verify_backup,
};
pub use record::Access;
#[doc(hidden)]
pub use seal::Sealer;
pub use store::{
    Amount, AuditRecord, BackedUp, BackupCheck, BackupError, BackupKind, Band, ClockState,
    Compacted, Depth, Erased, ErasureState, OpenMode, Picture, Problem, Restored, Step, StoreError,
    StoreStats, Swept, TenantStats, VerifyReport,
};
pub use wire::MEMORY_TOOL;

/// Makes a key file: one random key in one line of text, mode 0600, never over a file that exists.
///
/// Without this file nothing in the store can ever be read. Keep a copy elsewhere.
///
/// # Errors
/// When the file exists already or cannot be written.
pub fn generate_key_file(path: impl AsRef<std::path::Path>) -> Result<(), Error> {
    Ok(key::generate_key_file(path.as_ref(), None, &key::OsRandom)?)
}

/// The README's Rust snippet, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
