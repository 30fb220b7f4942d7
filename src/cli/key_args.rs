//! What may be written on the command line about keys, and about tenants as a whole.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::LookArgs;

const NEW_KEY_HEADING: &str =
    "The new key: one of these, or a passphrase asked for on the terminal";

#[derive(Subcommand)]
pub enum TenantCommand {
    /// List the tenants with their files, bytes and first write. Writes nothing.
    #[command(after_help = "\
Example:
  strongroom tenant list --store ./memory --key-file ./memory.key --json")]
    List(LookArgs),
    /// Erase a tenant: destroy its keys, then remove all that is stored of it.
    ///
    /// From the first moment on it does not exist for anybody; an erasure that is interrupted
    /// goes on when the store is next opened. Its audit entries stay, without what they were
    /// about. Refused where a hold keeps anything of it (exit code 3). The name can be used
    /// again, for a tenant that knows nothing of the old one.
    ///
    /// Prints a certificate for `verify-erasure`. It names what it cannot speak of: earlier
    /// copies of the store, snapshots, blocks that an SSD keeps.
    #[command(after_help = "\
Example:
  strongroom tenant erase acme/user-17 --yes --store ./memory --key-file ./memory.key > erased.json")]
    Erase(EraseArgs),
    /// Print the certificate of an erasure again, by the tenant's id or name.
    #[command(after_help = "\
Example:
  strongroom tenant certificate acme/user-17 --store ./memory --key-file ./memory.key")]
    Certificate(ErasedArgs),
}

#[derive(Subcommand)]
pub enum KeyCommand {
    /// List the key slots. Writes nothing.
    #[command(after_help = "\
Example:
  strongroom key list --store ./memory --key-file ./memory.key")]
    List(LookArgs),
    /// Add a key slot, so that a second key or passphrase opens the store too.
    ///
    /// Name the key that opens the store now, and the new one.
    #[command(after_help = "\
Example:
  strongroom key add --store ./memory --key-file ./memory.key \\
    --generate-key ./spare.key --label \"in the safe\"")]
    Add(KeyAddArgs),
    /// Remove a key slot. The last one stays.
    ///
    /// A removed key no longer opens this store. It still opens any older copy of the store,
    /// and the store's own keys do not change: whoever copied them while the key was valid
    /// keeps what they have.
    #[command(after_help = "\
Example:
  strongroom key remove 2 --store ./memory --key-file ./spare.key")]
    Remove(KeyRemoveArgs),
    /// Put another passphrase or key in place of the one that opens the store.
    ///
    /// Takes as long for a large store as for a small one: nothing that is stored changes. The
    /// old one still opens older copies of the store; after a leak, use `key rotate --full`.
    #[command(after_help = "\
Example:
  strongroom key change --store ./memory --passphrase-file ./old --new-passphrase-file ./new")]
    Change(KeyChangeArgs),
    /// Give tenants new record keys, or the store a new master key.
    ///
    /// Without a flag: a new record key for every tenant, or one. All that is stored is sealed
    /// anew in small batches, while others go on working; then the key before is forgotten.
    ///
    /// With --master: a new master key, around new keys for the tenants' key files. With
    /// --full, after a leak: every key of the store new, and everything stored under them; the
    /// store must not be in use. Both let a slot stay only if its own key is named here, so
    /// all others have to be added again.
    ///
    /// A rotation that is interrupted goes on when the store is next opened; an interrupted
    /// --full either counts as a whole or has changed nothing. Whoever copied files and keys
    /// before still has what was in those files: make a new backup, destroy the old ones.
    #[command(after_help = "\
Example:
  strongroom key rotate --store ./memory --key-file ./memory.key --tenant acme/user-17

After a leak of the key:
  strongroom key rotate --full --store ./memory --key-file ./memory.key \\
    --generate-key ./new.key --drop-other-slots")]
    Rotate(KeyRotateArgs),
}

#[derive(Args)]
pub struct KeyAddArgs {
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub new: NewKeyArgs,
    /// A note for `key list`, at most 64 bytes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub label: String,
}

/// Where the added key comes from.
#[derive(Args)]
#[group(id = "new key source", multiple = false)]
pub struct NewKeyArgs {
    /// The new key is in this file.
    #[arg(long, help_heading = NEW_KEY_HEADING, value_name = "FILE")]
    pub new_key_file: Option<PathBuf>,
    /// The new passphrase is the first line of this file.
    #[arg(long, help_heading = NEW_KEY_HEADING, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// This program prints the new key line; written as for --key-command.
    #[arg(long, help_heading = NEW_KEY_HEADING, value_name = "PROGRAM ARG…")]
    pub new_key_command: Option<String>,
    /// Write a new key to this file, which must not exist, and add it.
    #[arg(long, help_heading = NEW_KEY_HEADING, value_name = "FILE")]
    pub generate_key: Option<PathBuf>,
}

impl NewKeyArgs {
    /// Whether any of these was named.
    pub fn is_named(&self) -> bool {
        self.new_key_file.is_some()
            || self.new_passphrase_file.is_some()
            || self.new_key_command.is_some()
            || self.generate_key.is_some()
    }
}

#[derive(Args)]
pub struct KeyRemoveArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The slot's id, from `key list`.
    pub id: u64,
}

#[derive(Args)]
pub struct KeyChangeArgs {
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub new: NewKeyArgs,
    /// The slot to change, from `key list` [default: the one whose key is named].
    #[arg(long, value_name = "ID")]
    pub slot: Option<u64>,
    /// A note for `key list`, at most 64 bytes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub label: String,
}

#[derive(Args)]
pub struct KeyRotateArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Only this tenant [default: all].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["master", "full"])]
    pub tenant: Option<String>,
    /// A new master key, around new keys for the tenants' key files.
    #[arg(long)]
    pub master: bool,
    /// Every key new, and everything stored under them.
    #[arg(long, conflicts_with = "master")]
    pub full: bool,
    /// Let all slots go whose keys are not named here. With --master or --full.
    #[arg(long)]
    pub drop_other_slots: bool,
    #[command(flatten)]
    pub new: NewKeyArgs,
}

#[derive(Args)]
pub struct EraseArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The tenant.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Do not ask for the name once more on the terminal.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Args)]
pub struct ErasedArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The tenant's id, from `tenant list`, or its name: then its last erasure.
    #[arg(value_name = "ID|NAME")]
    pub tenant: String,
}

#[derive(Args)]
pub struct CertificateArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The file with the certificate, or - for stdin.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
