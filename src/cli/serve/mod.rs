//! `serve`: the memory tool over HTTP, on a Unix socket or a loopback address.
//!
//! Connections are tasks; all work with the store is done on threads that may block.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::StoreArgs;
use super::control::Control;
use super::failure::{Exit, Failure, Stop};
use super::held::Gate;
use super::memory;
use super::open::{self, Opened};

mod answer;
mod app;
mod connections;
mod listen;
mod log;
mod metrics;
mod repeat;
mod request;
mod stall;

use app::App;
use listen::Listener;
use log::Log;

/// How long the end of the server waits for requests that have come.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Listen on this Unix socket, made with mode 0600 [default: http.sock in the store's
    /// directory, where only its owner can come].
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    socket: Option<PathBuf>,
    /// Listen on a loopback address and port instead, such as 127.0.0.1:8750 or [::1]:8750.
    /// Port 0 takes a free one, which the log names.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::address)]
    listen: Option<SocketAddr>,
    /// A further name (with its port, if the client sends one) that a request's Host may have,
    /// for a proxy that does not put the server's own there. May be given more than once.
    #[arg(long, value_name = "HOST[:PORT]", requires = "listen")]
    allow_host: Vec<String>,
}

pub fn run(args: &ServeArgs) -> Result<(), Stop> {
    let Opened::Own(vault) = open::vault(&args.store, false)? else {
        return Err(not_started("serve: this process runs for another one").into());
    };
    let gate = Gate::new(vault.clone());
    let control = Control::serve(&args.store.store, &vault, &gate)
        .map_err(|error| not_started(&format!("make the control socket: {}", error.kind())))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(2 * app::CALLS_MAX)
        .build()
        .map_err(|error| not_started(&format!("start threads: {}", error.kind())))?;
    drop(vault);
    let served = runtime.block_on(serve(args, &gate));
    // Calls that still run are waited for here and at the gate.
    drop(runtime);
    control.finish();
    let closed = gate.close();
    served?;
    Ok(closed?)
}

/// Why the server ends.
enum End {
    Asked,
    /// What is stored is not known any more: the store must be opened again.
    Lost,
}

async fn serve(args: &ServeArgs, gate: &Arc<Gate>) -> Result<(), Failure> {
    let in_store = || args.store.store.join(listen::NAME);
    let listener = match args.listen {
        Some(address) => Listener::tcp(address).await?,
        None => Listener::unix(&args.socket.clone().unwrap_or_else(in_store))?,
    };
    let asked = |kind| {
        signal(kind).map_err(|error| not_started(&format!("watch for signals: {}", error.kind())))
    };
    let (mut terminate, mut interrupt) = (
        asked(SignalKind::terminate())?,
        asked(SignalKind::interrupt())?,
    );
    let (log, written) =
        Log::start().map_err(|error| not_started(&format!("start the log: {}", error.kind())))?;
    let app = App::new(Arc::clone(gate), log, listener.hosts(&args.allow_host));
    app.log
        .event("listening", json!({ "on": listener.shown() }));
    if let Some(warning) = memory::swap_warning() {
        app.log.event("warning", json!({ "text": warning }));
    }
    let router = app.router();
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let end = tokio::select! {
        never = connections::accept(&app, &listener, &router, &stopped, &mut connections) => match never {},
        _ = terminate.recv() => End::Asked,
        _ = interrupt.recv() => End::Asked,
        () = app.lost.notified() => End::Lost,
    };
    drop(listener);
    app.log
        .event("ending", json!({ "open_connections": connections.len() }));
    // Each finishes the request that it is at, with its answer, and takes no other.
    let _told = stop.send(());
    tokio::select! {
        _ = tokio::time::timeout(DRAIN_TIMEOUT, async {
            while connections.join_next().await.is_some() {}
        }) => {}
        // Whoever asks twice does not want to wait.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    app.log
        .event("ended", json!({ "cut_off": connections.len() }));
    connections.shutdown().await;
    drop((app, router));
    tokio::task::spawn_blocking(|| written.wait())
        .await
        .unwrap_or_default();
    match end {
        End::Asked => Ok(()),
        End::Lost => Err(Failure::new(
            Exit::Other,
            "go on: a write failed, and the store must be opened again",
            "Start the server again; a supervisor such as systemd does so by itself.",
        )),
    }
}

fn not_started(what: &str) -> Failure {
    Failure::new(Exit::Other, what, "Check the limits of this process.")
}
