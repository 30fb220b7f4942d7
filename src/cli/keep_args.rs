//! What may be written after `expire`, `hold`, `rescan` and `stats`.

use clap::{Args, Subcommand};

use super::args::LookArgs;

#[derive(Subcommand)]
pub enum HoldCommand {
    /// Hold a file, or a directory with all that is below it.
    ///
    /// It can then be read and added to, but not edited, overwritten, moved or deleted, and it
    /// does not expire. A hold on the same path is replaced.
    #[command(after_help = "\
Example:
  strongroom hold add /memories/customers/acme --reason \"case 2026-17\" --until 2027-12-31 \\
    --store ./memory --key-file ./memory.key --tenant acme/user-17")]
    Add(HoldAddArgs),
    /// Remove the hold on exactly this path. The policy counts for it again at once.
    #[command(after_help = "\
Example:
  strongroom hold remove /memories/customers/acme \\
    --store ./memory --key-file ./memory.key --tenant acme/user-17")]
    Remove(HoldRemoveArgs),
    /// List the holds that are in force. Writes nothing.
    #[command(after_help = "\
Example:
  strongroom hold list --store ./memory --key-file ./memory.key --all-tenants")]
    List(HoldListArgs),
}

#[derive(Args)]
pub struct ExpireArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Only this tenant's memory.
    #[arg(long, value_name = "NAME", conflicts_with = "all_tenants")]
    pub tenant: Option<String>,
    /// Every tenant of the store; this is the default. A damaged one does not keep the others
    /// from being done; the exit code is 5 at the end.
    #[arg(long)]
    pub all_tenants: bool,
    /// Show what would be removed, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Believe the clock as it stands, then expire. Look at both times and at the machine's
    /// clock first; never write this into a timer or a cron line.
    #[arg(long, conflicts_with = "dry_run")]
    pub confirm_clock: bool,
}

#[derive(Args)]
pub struct RescanArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Whose memory [default: default].
    #[arg(long, value_name = "NAME", conflicts_with = "all_tenants")]
    pub tenant: Option<String>,
    /// Every tenant of the store, one after the other. A damaged one does not keep the others
    /// from being done; the exit code is 5 at the end.
    #[arg(long)]
    pub all_tenants: bool,
    /// Count what would be removed, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub struct StatsArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Only this tenant's memory. Default: the whole store.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
}

#[derive(Args)]
pub struct HoldAddArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The file or directory, as a listing shows it.
    #[arg(value_name = "PATH")]
    pub path: String,
    /// Why it is kept: one line, at most 1,024 bytes. It is stored encrypted.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// When the hold ends: a date, which counts whole (2027-12-31, in UTC), a date and time
    /// (2027-12-31T18:00:00Z), or a duration from now on (90d; s, m, h, d, w, y).
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// Whose memory.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
}

#[derive(Args)]
pub struct HoldRemoveArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The path that `hold list` shows.
    #[arg(value_name = "PATH")]
    pub path: String,
    /// Whose memory.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
}

#[derive(Args)]
pub struct HoldListArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Whose memory.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        conflicts_with = "all_tenants"
    )]
    pub tenant: String,
    /// Every tenant of the store. Damaged ones are named at the end, with exit code 5.
    #[arg(long)]
    pub all_tenants: bool,
}
