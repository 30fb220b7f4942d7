//! What may be written on the command line, and the help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use super::audit::args::{ActorArgs, AuditCommand, CheckpointArgs};
use super::backup_args::{BackupArgs, RestoreArgs, VerifyBackupArgs};
use super::keep_args::{ExpireArgs, HoldCommand, RescanArgs, StatsArgs};
use super::key_args::{CertificateArgs, KeyCommand, TenantCommand};
use super::policy_args::PolicyCommand;
use super::token::TokenCommand;
use super::transfer::{ExportArgs, ImportArgs};

const KEY_HEADING: &str =
    "The key: one of these, or a variable, or a passphrase asked for on the terminal";

/// An encrypted store for Claude's memory tool (memory_20250818).
#[derive(Parser)]
#[command(
    name = "strongroom",
    version,
    disable_help_subcommand = true,
    after_help = "\
Exit codes:
  0 ok   1 other   2 usage   3 refused, or a policy that does not load   4 not found
  5 integrity   6 locked   7 key   8 no space

Example:
  strongroom init --store ./memory --generate-key ./memory.key
  echo '{\"command\":\"view\",\"path\":\"/memories\"}' | \\
    strongroom exec --store ./memory --key-file ./memory.key"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Create a store.
    ///
    /// Nothing is created over something that exists. The parent directory must be there.
    #[command(after_help = "\
Example:
  strongroom init --store ./memory --generate-key ./memory.key --policy strict")]
    Init(InitArgs),
    /// Carry out tool calls: JSON lines in, one tool_result line out for each.
    ///
    /// An input line is what the model sent as the tool's input, or the whole tool_use block,
    /// whose id then comes back as tool_use_id. Blank lines are skipped; every other line gets
    /// one answer, durable before it is printed. Refusals and failures are answers too: the
    /// exit code is 0 at the end of the input, or when whoever reads the output has gone.
    ///
    /// SIGTERM and SIGINT let a running command finish, then close the store. A kill loses
    /// nothing that was answered.
    #[command(after_help = "\
Example:
  echo '{\"command\":\"view\",\"path\":\"/memories\"}' | \\
    strongroom exec --store ./memory --key-file ./memory.key --tenant acme/user-17")]
    Exec(ExecArgs),
    /// Offer the memory tool to a client of the Model Context Protocol, over stdin and stdout.
    ///
    /// One tool, memory, with all six commands, for the one tenant that is named. Several
    /// clients may use one store: the first holds it, the others work through it.
    #[cfg(feature = "mcp")]
    #[command(after_help = "\
Example, as a client's configuration has it:
  \"command\": \"strongroom\",
  \"args\": [\"mcp\", \"--store\", \"/srv/memory\", \"--key-file\", \"/srv/memory.key\", \"--tenant\", \"ada\"]

Example:
  strongroom mcp --store ./memory --key-file ./memory.key --tenant acme/user-17")]
    Mcp(super::mcp::McpArgs),
    /// Serve the memory tool over HTTP, on a Unix socket or a loopback address.
    ///
    /// POST /v1/tenants/{tenant}/memory takes a tool input or a tool_use block and answers the
    /// tool_result; GET /healthz and /metrics are for supervisors. Make a token for each client
    /// with `strongroom token create`. For other machines put a proxy with TLS in front.
    /// docs/HTTP.md has the statuses, limits and examples.
    ///
    /// SIGTERM and SIGINT let requests that have come be answered, then close the store. The
    /// log goes to stderr, one JSON object a line.
    #[cfg(feature = "serve")]
    #[command(after_help = "\
Example:
  strongroom serve --store ./memory --key-file ./memory.key --listen 127.0.0.1:8750")]
    Serve(super::serve::ServeArgs),
    /// The access tokens of clients of `strongroom serve`.
    #[command(after_help = "\
Example:
  strongroom token list --store ./memory --key-file ./memory.key")]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Check everything that is stored, and name what is damaged (exit code 5).
    #[command(after_help = "\
Example:
  strongroom verify --store ./memory --key-file ./memory.key --quick")]
    Verify(VerifyArgs),
    /// Show, check and export the audit log: who did what, when, and how it ended.
    ///
    /// It is kept if the policy says so ([audit] enabled).
    #[command(after_help = "\
Example:
  strongroom audit show --store ./memory --key-file ./memory.key --since 24h")]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Print a line to keep elsewhere: with it `verify` sees that the store was put back.
    ///
    /// Writes an entry with a random id into the store's own audit chain. If the whole
    /// directory is ever replaced by an older copy, `verify --checkpoint` says so. Without
    /// such a line that cannot be seen from inside.
    #[command(after_help = "\
Example:
  strongroom checkpoint --store ./memory --key-file ./memory.key >> /elsewhere/checkpoints")]
    Checkpoint(CheckpointArgs),
    /// Remove from a text what a policy does not let into a store. Needs no store and no key.
    ///
    /// The text comes from FILE or stdin and goes to stdout with every found value replaced by
    /// a marker such as [REDACTED:password]; how many, by rule, is said on stderr. A value is
    /// never printed. A text that a rule rejects gives no text but exit code 3.
    ///
    /// Markers are those of a store, except for the action "pseudonym": its tags need the key
    /// of a tenant, so here such values get a plain marker.
    #[command(after_help = "\
Example:
  strongroom redact --policy strict notes.md > clean.md

As a filter for another program, one answer a line:
  echo '{\"text\":\"the password is hunter2\"}' | strongroom redact --json-lines")]
    Redact(RedactArgs),
    /// Bring stored files under the redaction of today's policy and rules.
    ///
    /// A file that was stored under an older policy, or an older build's rules, is scanned
    /// again at its next read anyway. This does it now, also for files that nobody reads. A run
    /// that was ended goes on where it stopped. Names are never changed, only reported.
    #[command(after_help = "\
Example:
  strongroom rescan --store ./memory --key-file ./memory.key --all-tenants --dry-run")]
    Rescan(RescanArgs),
    /// Remove what the policy's [retention] says is expired.
    ///
    /// What is expired does not exist for any command from that moment on; this takes it out
    /// of the store, with the directories that it empties. Prints what went and when the next
    /// file expires. Run it every night.
    ///
    /// A clock that is more than 5 minutes behind, or 400 days ahead, of what the store has
    /// seen is not believed: nothing is removed, and the exit code is 1.
    #[command(after_help = "\
Example:
  strongroom expire --store ./memory --key-file ./memory.key --dry-run")]
    Expire(ExpireArgs),
    /// What must be kept whatever the policy says: against expiry, edits, delete and rename.
    #[command(after_help = "\
Example:
  strongroom hold list --store ./memory --key-file ./memory.key --all-tenants")]
    Hold {
        #[command(subcommand)]
        command: HoldCommand,
    },
    /// Write a tenant's files to a directory or a tar archive. Changes no file of the store.
    ///
    /// Every file that exists is written, with its path below /memories: hidden ones and those
    /// that agents must not see too. They leave the store unencrypted: keep them accordingly.
    /// Files get mode 0600, directories 0700. A directory must be empty or not exist; nothing
    /// is overwritten and no symbolic link is followed. The report goes to stdout, with --tar -
    /// to stderr. If the policy keeps an audit log, it says who took how much, before the first
    /// byte leaves; not so with --salvage, which writes nothing to the store.
    #[command(after_help = "\
Example:
  strongroom export --store ./memory --key-file ./memory.key --tenant acme/user-17 --to ./out

As an archive for another program:
  strongroom export --store ./memory --key-file ./memory.key --tar - | gzip > memory.tar.gz")]
    Export(ExportArgs),
    /// Store the files of a directory or a tar archive in a tenant's memory.
    ///
    /// Each file goes the way of every write: its name passes the path guard, its text the
    /// redaction and the limits. What does not pass is listed with the reason, and so is what is
    /// no regular file (exit code 3). Each file is stored as a whole or not at all; files that
    /// exist stay, so an import that was ended goes on when it is run again.
    #[command(after_help = "\
Example:
  strongroom import --store ./memory --key-file ./memory.key --tenant acme/user-17 \\
    --from ./notes --dry-run

From a compressed archive:
  gunzip -c memory.tar.gz | strongroom import --store ./memory --key-file ./memory.key --tar -")]
    Import(ImportArgs),
    /// Write the engine's files anew, with only what is stored now in them.
    ///
    /// Deleted ciphertext goes, and so does the room that it takes. Needs room for a second
    /// copy of what is stored. Writes wait meanwhile, reads go on.
    #[command(after_help = "\
Example:
  strongroom compact --store ./memory --key-file ./memory.key")]
    Compact(LookArgs),
    /// Write a backup of a store, also while it is in use: the sealed records to one file, the
    /// keys to another.
    ///
    /// The records are those of one moment, to which the store can be brought back whole.
    /// Nothing in either file is readable without a key of the store. Keep the keys apart from
    /// the records, and destroy older files of keys once there is a newer one: whoever has
    /// both, and a key, reads everything, erased tenants included.
    ///
    /// A file is never written over another; it has its name only once it is whole.
    #[command(after_help = "\
Example:
  strongroom backup --to ./monday.backup --keys ./monday.keys --store ./memory --key-file ./memory.key")]
    Backup(BackupArgs),
    /// Check a backup's file without any key (exit code 5 when it is damaged).
    ///
    /// Says whether it is, byte for byte and to its end, what was written, and whether it holds
    /// what a store has. That a key opens it, and that nobody made it up, shows only a store
    /// made of it: `restore` it somewhere, and run `verify` there.
    #[command(after_help = "\
Example:
  strongroom verify-backup ./monday.backup")]
    VerifyBackup(VerifyBackupArgs),
    /// Make a store from a backup, or bring the files of one tenant back into a store.
    ///
    /// Without --tenant: makes the directory --store, which must not exist or be empty, from
    /// the records (--from) and the keys (--keys). No key is needed. Tenants that were erased
    /// since do not come back, if this is told of them: a newer file of keys knows of them, and
    /// so do --erasures and --replaces. They are erased again, before anything else, by the
    /// first command that opens the store for writing.
    ///
    /// With --tenant: stores that tenant's files in the store that is there, each like an import
    /// by the operator: under today's policy, with today's times. Files that exist stay.
    #[command(after_help = "\
Example:
  strongroom restore --from ./monday.backup --keys ./monday.keys --store ./memory

One tenant's files:
  strongroom restore --tenant acme/user-17 --from ./monday.backup \\
    --store ./memory --key-file ./memory.key")]
    Restore(RestoreArgs),
    /// Bring a store to this build's newest format of stored bytes.
    ///
    /// A store keeps the format that it has until this is run, so that an older build still
    /// opens it. There is one format so far, and nothing to do.
    #[command(after_help = "\
Example:
  strongroom upgrade --store ./memory --key-file ./memory.key")]
    Upgrade(LookArgs),
    /// Show totals, what lies where, how old it is, and what expires when. Writes nothing.
    ///
    /// Reads every directory of the store, and no content. Dead bytes are what the files on
    /// the disk take beyond what is stored: overwritten, deleted, or reserved. The last expire
    /// is one of all tenants that left none out, the last verify one of everything that found
    /// nothing.
    #[command(after_help = "\
Example:
  strongroom stats --store ./memory --key-file ./memory.key --tenant acme/user-17")]
    Stats(StatsArgs),
    /// The tenants of a store.
    #[command(after_help = "\
Example:
  strongroom tenant list --store ./memory --key-file ./memory.key")]
    Tenant {
        #[command(subcommand)]
        command: TenantCommand,
    },
    /// The policy: what agents may store, see and touch.
    #[command(after_help = "\
Example:
  strongroom policy check ./policy.toml")]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// The key slots: each opens the store on its own.
    #[command(after_help = "\
Example:
  strongroom key list --store ./memory --key-file ./memory.key")]
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Check the certificate of an erased tenant (exit code 5 when it does not hold).
    ///
    /// Checks that this store made it, that the store has no record and no key file of the
    /// tenant, and that no file of the store holds a part of its wrapped keys.
    #[command(after_help = "\
Example:
  strongroom verify-erasure ./erased.json --store ./memory --key-file ./memory.key")]
    VerifyErasure(CertificateArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Example:
  strongroom completions bash > ~/.local/share/bash-completion/completions/strongroom")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The store and its key.
#[derive(Args)]
pub struct StoreArgs {
    /// The store's directory, on a local disk.
    #[arg(
        long,
        value_name = "DIR",
        env = "STRONGROOM_STORE",
        hide_env_values = true
    )]
    pub store: PathBuf,
    #[command(flatten)]
    pub key: KeyArgs,
}

/// Where the key comes from.
#[derive(Args)]
#[group(id = "key source", multiple = false)]
pub struct KeyArgs {
    /// The key is in this file [env: STRONGROOM_KEY_FILE].
    #[arg(long, help_heading = KEY_HEADING, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The passphrase is the first line of this file [env: STRONGROOM_PASSPHRASE_FILE].
    #[arg(long, help_heading = KEY_HEADING, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// This program prints the key line [env: STRONGROOM_KEY_COMMAND]. Split at white space,
    /// '…' and "…" keep it; no shell reads it. Never write the secret itself here.
    #[arg(long, help_heading = KEY_HEADING, value_name = "PROGRAM ARG…")]
    pub key_command: Option<String>,
}

#[derive(Args)]
pub struct InitArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Write a new key to this file, which must not exist, and use it.
    #[arg(long, help_heading = KEY_HEADING, value_name = "FILE", conflicts_with = "key source")]
    pub generate_key: Option<PathBuf>,
    /// The store's policy: a shipped one by name (default, strict, hipaa, pci), or a file.
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub policy: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Whose memory: 1 to 128 of A-Z a-z 0-9 . _ @ : - with / between parts.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
    #[command(flatten)]
    pub actor: ActorArgs,
    /// Create the store if there is none, and its key file if there is neither. A store whose
    /// key file is missing is an error (exit code 7), never a reason for a new key.
    #[arg(long, conflicts_with = "read_only")]
    pub create: bool,
    /// Write nothing, whatever the input asks for.
    #[arg(long)]
    pub read_only: bool,
    /// Do not serve the store's control socket: other processes that want to use the store
    /// meanwhile are told that it is locked.
    #[arg(long)]
    pub no_control: bool,
}

#[derive(Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Check the tree, not the contents of files.
    #[arg(long)]
    pub quick: bool,
    /// Require this checkpoint's entry: a line that `strongroom checkpoint` printed. Without
    /// it the store was put back to a time before, or is another one.
    #[arg(long, value_name = "LINE")]
    pub checkpoint: Option<String>,
    /// Write nothing: neither repair the keyring nor finish removals.
    #[arg(long)]
    pub read_only: bool,
    /// Open a store that was rolled back, or whose STATE or keyring is lost or older, if what is
    /// there is whole in itself. What was acknowledged after it is lost for good: try a backup
    /// first. Audited.
    #[arg(long, conflicts_with = "read_only")]
    pub accept_loss: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RedactArgs {
    /// The text; without it, stdin. UTF-8, at most 16 MiB.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A shipped policy by name, or a file: its path has a / or ends in .toml.
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub policy: String,
    /// Print JSON: {"text", "findings": [{"rule", "class", "action", "line", "start", "end"}]},
    /// lines from 1, start and end as bytes of the input.
    #[arg(long)]
    pub json: bool,
    /// Read {"text"} from each line and print the same JSON for each, or {"error"}. Blank lines
    /// are skipped; every other line gets one answer at once.
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
}

/// For commands that only look.
#[derive(Args)]
pub struct LookArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
