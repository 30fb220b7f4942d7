//! What may be written after `policy`, and the help texts.

use clap::{Args, Subcommand};

use super::args::LookArgs;

#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Print the policy in force, or what differs from another. Writes nothing.
    #[command(after_help = "\
Example:
  strongroom policy show --store ./memory --key-file ./memory.key --diff strict")]
    Show(PolicyShowArgs),
    /// Say whether a policy loads and its rules find what they should. Needs no store.
    ///
    /// Runs every example and negative example of the rule packs and of the policy's own
    /// rules. Exit code 3 when the policy does not load or an example falls.
    #[command(after_help = "\
Example:
  strongroom policy check ./policy.toml")]
    Check(PolicyCheckArgs),
    /// Put another policy in force, and print what changes.
    #[command(after_help = "\
Example:
  strongroom policy set strict --store ./memory --key-file ./memory.key --dry-run")]
    Set(PolicySetArgs),
}

#[derive(Args)]
pub struct PolicyShowArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Print only the keys whose values differ in this policy: a shipped one, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    pub diff: Option<String>,
}

#[derive(Args)]
pub struct PolicyCheckArgs {
    /// A shipped policy (default, strict, hipaa, pci), or a file: its path has a / or ends in .toml.
    #[arg(value_name = "NAME|FILE")]
    pub policy: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct PolicySetArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// A shipped policy (default, strict, hipaa, pci), or a file: its path has a / or ends in .toml.
    #[arg(value_name = "NAME|FILE")]
    pub policy: String,
    /// Print what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}
