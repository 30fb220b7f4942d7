//! `mcp`: the memory tool for clients of the Model Context Protocol, over stdin and stdout.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use strongroom::Code;
use strongroom::attach::{self, Attached, Options};
use strongroom::wire;
use tokio::signal::unix::{SignalKind, signal};

use super::args::StoreArgs;
use super::audit::args::ActorArgs;
use super::failure::{Exit, Failure, Stop};
use super::output::say;
use super::{keys, memory};

mod drain;
mod server;
mod tool;

use drain::Drain;
use server::Server;

/// How long a signal waits for the answers of calls that have come.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest message in bytes: what any policy's files need in JSON, and the envelope.
const MESSAGE_BYTES_MAX: usize = 64 * 1_024 * 1_024;

#[derive(Args)]
pub struct McpArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Whose memory: 1 to 128 of A-Z a-z 0-9 . _ @ : - with / between parts.
    #[arg(long, value_name = "NAME")]
    tenant: String,
    #[command(flatten)]
    actor: ActorArgs,
    /// Create the store if there is none, and its key file if there is neither. A store whose
    /// key file is missing is an error (exit code 7), never a reason for a new key.
    #[arg(long)]
    create: bool,
    /// Refuse every command but view.
    #[arg(long)]
    read_only: bool,
}

pub fn run(args: &McpArgs) -> Result<(), Stop> {
    let store = attach(args)?;
    let actor = &args.actor;
    let memory = store
        .tenant(
            &args.tenant,
            actor.actor.as_deref(),
            actor.session.as_deref(),
        )
        .map_err(failed)?;
    memory::warn_of_swap();
    if io::stdin().is_terminal() {
        say("waiting for a client of the Model Context Protocol on stdin; Ctrl-D ends");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()
        .map_err(|error| not_started(&error))?;
    let served = runtime.block_on(serve(Server::new(memory, args.read_only)));
    // A thread may still wait on stdin, and would for ever.
    runtime.shutdown_background();
    let closed = store.close().map_err(failed);
    served?;
    Ok(closed?)
}

fn attach(args: &McpArgs) -> Result<Attached, Stop> {
    let store = Options::new(&args.store.store)
        .key(keys::source(&args.store.key)?)
        .create(args.create)
        .open()
        .map_err(failed)?;
    if let Some(key) = store.new_key_file() {
        say(&format!("wrote the store's key to {}", key.display()));
        say("Without this key nothing in the store can ever be read. Keep a copy elsewhere.");
    }
    Ok(store)
}

/// Serves until the input ends, or SIGTERM or SIGINT comes. A call that has started is then
/// finished and answered.
async fn serve(server: Server) -> Result<(), Stop> {
    let transport = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout())
        .with_max_line_length(MESSAGE_BYTES_MAX);
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| not_started(&error))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| not_started(&error))?;
    let transport = Drain::new(transport);
    let open = transport.open();
    let session = async move {
        match server.serve(transport).await {
            Ok(running) => {
                let _ended = running.waiting().await;
            }
            // The client left, or spoke something else, before it said hello. It has been told
            // what there is to tell.
            Err(_) => say("the client ended without a session"),
        }
    };
    tokio::pin!(session);
    tokio::select! {
        () = &mut session => return Ok(()),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let last_answers = tokio::time::timeout(LAST_ANSWERS_TIMEOUT, open.all_answered());
    tokio::select! {
        () = session => {}
        _ = last_answers => {}
        // Whoever asks twice does not want to wait.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// The failure of the shared store as an operator reads it.
fn failed(failure: attach::Failure) -> Failure {
    let (exit, next) = match failure.code {
        Code::Usage => (Exit::Usage, "Correct the command line."),
        Code::NotFound => (
            Exit::NotFound,
            "Check --store, or use --create to make a store.",
        ),
        Code::Integrity => (
            Exit::Integrity,
            "Keep the directory as it is, and run `strongroom verify --read-only`.",
        ),
        Code::Locked => (
            Exit::Locked,
            "The process that holds the store takes no calls: end it, or wait for it.",
        ),
        Code::Key => (Exit::Key, "Check that this is the key of this store."),
        Code::NoSpace => (
            Exit::NoSpace,
            "Free some space on the store's disk, then try again.",
        ),
        _ => (
            Exit::Other,
            "Try again; if it stays so, report it with this text.",
        ),
    };
    let what = failure.text.strip_prefix("failed to ");
    Failure::new(exit, what.unwrap_or(&failure.text), next)
}

fn not_started(error: &io::Error) -> Stop {
    Failure::new(
        Exit::Other,
        format!("start the server: {}", error.kind()),
        "Check the limits of this process.",
    )
    .into()
}

/// Whether the call only looks. One that cannot be read changes nothing either.
fn only_looks(input: &str) -> bool {
    !matches!(
        wire::parse(input.as_bytes()).command,
        Ok(ref command) if !matches!(command, wire::Command::View { .. })
    )
}
