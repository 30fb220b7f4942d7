//! Takes connections and serves each, under limits of number and time.
//!
//! Where there are as many as may be, the one that has been a stranger for longest makes room:
//! a client is known once it has shown a valid token. So processes without one cannot keep
//! others out by holding connections.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::app::App;
use super::listen::Listener;
use super::stall::Stream;

/// Connections at once.
const CONNECTIONS_MAX: usize = 256;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

const HEADERS_MAX: usize = 64;

/// How long to wait where no connection can be taken, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The other side of a connection.
#[derive(Default)]
pub struct Client {
    is_known: AtomicBool,
    is_to_go: Notify,
}

impl Client {
    /// Notes that a valid token came.
    pub fn is_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// Clients that may have to make room, the oldest first.
#[derive(Default)]
struct Strangers(VecDeque<Weak<Client>>);

impl Strangers {
    fn add(&mut self, client: &Arc<Client>) {
        // Those that have gone, or are known by now, are in nobody's way.
        self.0.retain(|other| {
            other
                .upgrade()
                .is_some_and(|other| !other.is_known.load(Ordering::Relaxed))
        });
        self.0.push_back(Arc::downgrade(client));
    }

    fn send_oldest_away(&mut self) {
        while let Some(oldest) = self.0.pop_front() {
            if let Some(client) = oldest.upgrade()
                && !client.is_known.load(Ordering::Relaxed)
            {
                client.is_to_go.notify_one();
                return;
            }
        }
    }
}

/// Takes connections for as long as it is let.
pub async fn accept(
    app: &Arc<App>,
    listener: &Listener,
    router: &Router,
    stopped: &watch::Receiver<()>,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut strangers = Strangers::default();
    loop {
        let Ok(stream) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if room.available_permits() == 0 {
            strangers.send_oldest_away();
        }
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let client = Arc::new(Client::default());
        strangers.add(&client);
        let connection = connection(
            Arc::clone(app),
            client,
            stream,
            router.clone(),
            stopped.clone(),
        );
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }
}

async fn connection(
    app: Arc<App>,
    client: Arc<Client>,
    stream: Stream,
    router: Router,
    mut stopped: watch::Receiver<()>,
) {
    struct Counted(Arc<App>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
    app.connections.fetch_add(1, Ordering::Relaxed);
    let _counted = Counted(app);
    let service = TowerToHyperService::new(router);
    let introduced = Arc::clone(&client);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Arc::clone(&introduced));
        service.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = client.is_to_go.notified() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    // What goes wrong with a connection is its client's to see.
    let _ended = connection.await;
}
