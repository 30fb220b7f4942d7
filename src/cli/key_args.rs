//! What may be written after `key`, and the help texts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::LookArgs;

const NEW_KEY_HEADING: &str =
    "The new key: one of these, or a passphrase asked for on the terminal";

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

#[derive(Args)]
pub struct KeyRemoveArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The slot's id, from `key list`.
    pub id: u64,
}
