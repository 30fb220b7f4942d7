//! What may be written after `audit`, and the help texts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::args::LookArgs;

#[derive(Subcommand)]
pub enum AuditCommand {
    /// Show who did what, to which path, when, and how it ended. Writes nothing.
    ///
    /// Chain by chain, the oldest entry of each first: the store's own events, then each
    /// tenant. All filters that are given must fit. Paths are readable as long as their tenant
    /// has its keys. Every link is checked; a damaged chain ends the list of its entries, and
    /// the exit code is then 5.
    #[command(after_help = "\
Example:
  strongroom audit show --store ./memory --key-file ./memory.key \\
    --tenant acme/user-17 --since 24h --path /memories/customers")]
    Show(AuditShowArgs),
    /// Check every link of the audit log, and name the chains that are damaged (exit code 5).
    ///
    /// Prints for each chain the number and the hash of its last entry. Writes nothing.
    #[command(after_help = "\
Example:
  strongroom audit verify --store ./memory --key-file ./memory.key")]
    Verify(AuditVerifyArgs),
    /// Write the log as JSON lines, to be checked and kept without the store. Changes nothing.
    ///
    /// Each line is the JSON text of one entry, byte for byte as it is hashed: the SHA-256 of
    /// a line (without its line feed) is the "prev" of the next one in its chain. Paths stay
    /// sealed. A file that exists is not overwritten.
    #[command(after_help = "\
Example:
  strongroom audit export --store ./memory --key-file ./memory.key --all audit-2026-06.jsonl")]
    Export(AuditExportArgs),
    /// Check an exported file. Needs no store and no key.
    ///
    /// Prints for each chain in it the first and last number and the hash of the last entry.
    /// Exit code 5, with the line, when one was altered, dropped, inserted or moved. What
    /// lies after the last entry of a file, and what the last entry itself said, it cannot
    /// know: compare the hash with one that was noted elsewhere.
    #[command(after_help = "\
Example:
  strongroom audit check audit-2026-06.jsonl")]
    Check(AuditCheckArgs),
}

#[derive(Args)]
pub struct AuditShowArgs {
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub chain: ChainArgs,
    /// From then on: a date (2026-01-31, in UTC), a date and time (2026-01-31T18:00:00Z), or
    /// so long ago (24h, 90d; s, m, h, d, w, y).
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before then, written likewise; a date counts whole.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only what was done on behalf of this actor.
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Only what was done in this session.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Only this command, such as create, or "key add".
    #[arg(long, value_name = "NAME")]
    pub command: Option<String>,
    /// Only what was done to this file or directory, or to anything below it.
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
}

/// Which chains.
#[derive(Args)]
pub struct ChainArgs {
    /// Only this tenant's chain.
    #[arg(long, value_name = "NAME", conflicts_with = "store_events")]
    pub tenant: Option<String>,
    /// Only the store's own chain: keys, policy, expiry runs, checkpoints.
    #[arg(long)]
    pub store_events: bool,
}

#[derive(Args)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Only this tenant's chain.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
}

#[derive(Args)]
pub struct AuditExportArgs {
    #[command(flatten)]
    pub store: crate::cli::args::StoreArgs,
    #[command(flatten)]
    pub chain: ExportChainArgs,
    /// Where to, a new file; - is stdout.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Which chains; one must be named.
#[derive(Args)]
#[group(id = "chain", multiple = false, required = true)]
pub struct ExportChainArgs {
    /// This tenant's chain.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The store's own chain.
    #[arg(long)]
    pub store_events: bool,
    /// The store's own chain and those of all tenants, one after the other.
    #[arg(long)]
    pub all: bool,
}

#[derive(Args)]
pub struct AuditCheckArgs {
    /// The exported file; - is stdin.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Require this checkpoint's entry too: a line that `strongroom checkpoint` printed before
    /// the export. The file must hold the store's own chain.
    #[arg(long, value_name = "LINE")]
    pub checkpoint: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CheckpointArgs {
    #[command(flatten)]
    pub look: LookArgs,
}

/// Who acts, for the audit log.
#[derive(Args)]
pub struct ActorArgs {
    /// On whose behalf the calls are made, for the audit log: at most 128 bytes. Nothing checks
    /// that it is true.
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub actor: Option<String>,
    /// In which session, for the audit log: at most 128 bytes.
    #[arg(long, value_name = "NAME", value_parser = label, requires = "actor")]
    pub session: Option<String>,
}

fn label(text: &str) -> Result<String, String> {
    let most = strongroom::audit::ACTOR_BYTES_MAX;
    if text.is_empty() || text.len() > most || text.contains(char::is_control) {
        return Err(format!(
            "write 1 to {most} bytes without control characters"
        ));
    }
    Ok(text.to_owned())
}
