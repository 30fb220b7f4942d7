//! The errors of keys, key sources, the keyring and tenant key files.

use std::io;
use std::path::PathBuf;

/// What can go wrong with keys. Every text fits "failed to …: {error}", is
/// meant for the operator (it may name a path the operator gave) and never
/// quotes a byte of a key, a passphrase or a key command's output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The random source failed; nothing was made with what it left behind.
    #[error("the operating system's random source failed")]
    Random,

    /// The keyring is readable, but no slot takes this passphrase or key.
    #[error("wrong passphrase or key: no key slot accepts it")]
    WrongCredential,
    /// The keyring is readable, but has no slot of the kind that was offered.
    #[error("the store has no key slot for a {offered}")]
    NoSlotForSource {
        /// What was offered: `passphrase` or `key`.
        offered: &'static str,
    },
    /// A key slot's checksum does not hold (damage, not a wrong passphrase),
    /// and no intact slot accepts the credential.
    #[error("key slot at position {position} of the keyring is damaged")]
    DamagedSlot {
        /// Which slot, counted from 0 in the order of the file.
        position: u8,
    },
    /// The keyring's fixed part is damaged or was altered.
    #[error("the keyring is damaged or was altered")]
    DamagedHeader,
    /// The bytes carry a format or suite that this version does not know.
    #[error("the {what} was written by a newer strongroom (format {format}, suite {suite})")]
    UnknownFormat {
        /// `keyring` or `tenant key file`.
        what: &'static str,
        /// The format byte found.
        format: u8,
        /// The suite byte found.
        suite: u8,
    },
    /// There is no copy of the keyring at all.
    #[error("the store has no keyring")]
    NoKeyring,
    /// The key derivation asks for more than the caps allow; it was not run.
    #[error(
        "the key slot asks for {memory_kib} KiB of memory and {passes} passes, \
         more than is allowed or available here"
    )]
    KdfTooExpensive {
        /// Memory asked for, in KiB.
        memory_kib: u32,
        /// Passes asked for.
        passes: u32,
    },
    /// The parameters lie below the floor of 19 MiB and 2 passes, or the
    /// number of lanes is not 1 to 16.
    #[error("key derivation needs at least 19456 KiB, 2 passes and 1 to 16 lanes")]
    KdfOutOfRange,
    /// The keyring holds as many slots as it can.
    #[error("the keyring holds {} key slots already", super::MAX_SLOTS)]
    SlotsFull,
    /// No slot has this id.
    #[error("there is no key slot {id}")]
    NoSuchSlot {
        /// The id asked for.
        id: u64,
    },
    /// Without this slot nothing could open the store.
    #[error("the last key slot cannot be removed")]
    LastSlot,
    /// A slot's label is longer than 64 bytes or has a control character.
    #[error("a key slot's label has at most 64 bytes and no control characters")]
    Label,
    /// A counter cannot go on; it never wraps.
    #[error("the counter is exhausted")]
    CounterExhausted,

    /// The text is no key line at all.
    #[error("this is not a key line (`strongroom-key-1 …`)")]
    NotAKeyLine,
    /// It starts like a key line, but its checksum does not hold.
    #[error("the key line is mistyped or cut short: its checksum does not hold")]
    MistypedKeyLine,
    /// A key line of a later version.
    #[error("the key line was written by a newer strongroom")]
    NewerKeyLine,
    /// A passphrase must have at least one character.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// A passphrase has at most 1,024 bytes.
    #[error("the passphrase is longer than 1024 bytes")]
    PassphraseTooLong,
    /// A passphrase is text in UTF-8.
    #[error("the passphrase is not valid UTF-8")]
    PassphraseNotUtf8,

    /// A key or passphrase file lies inside the store it opens.
    #[error("{} lies inside the store; keep the key elsewhere", path.display())]
    FileInsideStore {
        /// The path the operator gave.
        path: PathBuf,
    },
    /// Group or others have rights on a key or passphrase file.
    #[error("{} is accessible to others (mode {mode:04o}); make it 0600", path.display())]
    FileExposed {
        /// The path the operator gave.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key or passphrase file is a directory, pipe, device or socket.
    #[error("{} is not a regular file", path.display())]
    FileNotRegular {
        /// The path the operator gave.
        path: PathBuf,
    },
    /// A key or passphrase file is larger than 4 KiB.
    #[error("{} is larger than 4 KiB", path.display())]
    FileTooLarge {
        /// The path the operator gave.
        path: PathBuf,
    },
    /// A key or passphrase file is empty.
    #[error("{} is empty", path.display())]
    FileEmpty {
        /// The path the operator gave.
        path: PathBuf,
    },
    /// A key file is never overwritten.
    #[error("{} exists already", path.display())]
    FileExists {
        /// The path the operator gave.
        path: PathBuf,
    },
    /// The operating system refused an operation on a key or passphrase file.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: `open`, `read`, `create`, `write` or `sync`.
        action: &'static str,
        /// The path the operator gave.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A key command without a program.
    #[error("the key command is empty")]
    CommandEmpty,
    /// The key command could not be started or waited for.
    #[error("cannot run the key command: {source}")]
    CommandStart {
        /// The system's reason.
        source: io::Error,
    },
    /// The key command ran past its time limit and was killed.
    #[error("the key command took longer than {seconds} s and was stopped")]
    CommandTimeout {
        /// The limit in whole seconds, rounded up.
        seconds: u64,
    },
    /// The key command failed.
    #[error("the key command failed with exit code {code}")]
    CommandExit {
        /// Its exit code.
        code: i32,
    },
    /// The key command was ended by a signal.
    #[error("the key command was ended by a signal")]
    CommandKilled,
    /// The key command printed more than 4 KiB.
    #[error("the key command printed more than 4 KiB")]
    CommandOutputTooLong,
    /// The key command ended well, but printed nothing.
    #[error("the key command printed nothing")]
    CommandNoOutput,

    /// A tenant's name breaks the rules (see [`super::is_tenant_name`]).
    #[error(
        "a tenant's name has 1 to 128 characters of A-Z a-z 0-9 . _ @ : - \
         with single slashes between parts"
    )]
    TenantName,
    /// Both halves of a tenant's key file are damaged.
    #[error("the tenant's key file is damaged")]
    DamagedTenantKeys,
    /// A tenant's key file is whole, but was not sealed by this store for
    /// this tenant.
    #[error("the tenant's key file was altered, or belongs to another store or tenant")]
    ForeignTenantKeys,
    /// The tenant has no record key of this epoch.
    #[error("the tenant has no record key of epoch {epoch}")]
    NoSuchEpoch {
        /// The epoch asked for.
        epoch: u32,
    },
    /// The record key of the current epoch is in use and cannot be removed.
    #[error("the record key of the current epoch cannot be removed")]
    CurrentEpoch,
    /// A new master key would leave slots without it.
    #[error(
        "the store has other key slots, and only their own keys could give them the new master key"
    )]
    OtherSlots,
    /// The master key was rotated, and some tenants' keys are still sealed under the one before.
    #[error("an earlier rotation of the master key has not ended")]
    RotationUnfinished,
    /// A tenant keeps at most 1,024 record keys.
    #[error("a tenant keeps at most {} record keys", super::MAX_EPOCHS)]
    EpochLimit,
}
