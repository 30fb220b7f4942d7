//! The requests that the server knows, and how each is carried out.
//!
//! ```text
//! host -> token -> tenant -> content type -> room for work -> body -> call, on a blocking thread
//! ```

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use lru::LruCache;
use serde_json::json;
use strongroom::path::TenantName;
use strongroom::wire::{self, Command};
use strongroom::{Access, Answer, Code, Error, StoreError, Tenant, TokenInfo, Vault};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::super::held::Gate;
use super::super::time;
use super::answer::{Refusal, respond};
use super::connections::Client;
use super::log::Log;
use super::metrics::Metrics;
use super::repeat::{Repeats, Seen};
use super::request::{
    bearer, check_content_type, idempotency_key, is_own_host, method, read_body, route, tenant_of,
};

/// Calls that are carried out at once, and whose bodies are in memory. Others wait.
pub const CALLS_MAX: usize = 64;

/// Calls of one token that are carried out at once: one that dawdles leaves room for others.
const CALLS_MAX_PER_TOKEN: usize = CALLS_MAX / 2;

/// How long a call waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);

/// Tenants whose handles are kept open.
const TENANTS_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();

const TOKENS_MAX: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// What all requests share.
pub struct App {
    pub gate: Arc<Gate>,
    pub log: Log,
    pub metrics: Metrics,
    /// The names that a `Host` may have; `None` is any.
    pub hosts: Option<Vec<String>>,
    pub connections: AtomicUsize,
    /// Told when the store must be opened again.
    pub lost: Notify,
    repeats: Arc<Repeats>,
    tenants: Mutex<LruCache<String, Tenant>>,
    turns: Semaphore,
    /// More than a store has tokens, so that none in use is forgotten.
    turns_of_tokens: Mutex<LruCache<String, Arc<Semaphore>>>,
}

/// What the log says of a request besides its status and time.
#[derive(Clone, Default)]
struct Facts(Arc<Mutex<serde_json::Map<String, serde_json::Value>>>);

impl Facts {
    fn note(&self, name: &str, value: impl Into<serde_json::Value>) {
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        facts.insert(name.to_owned(), value.into());
    }
}

impl App {
    pub fn new(gate: Arc<Gate>, log: Log, hosts: Option<Vec<String>>) -> Arc<Self> {
        Arc::new(Self {
            gate,
            log,
            metrics: Metrics::default(),
            hosts,
            connections: AtomicUsize::new(0),
            lost: Notify::new(),
            repeats: Arc::default(),
            tenants: Mutex::new(LruCache::new(TENANTS_MAX)),
            turns: Semaphore::new(CALLS_MAX),
            turns_of_tokens: Mutex::new(LruCache::new(TOKENS_MAX)),
        })
    }

    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/healthz", get(health))
            .route("/metrics", get(metrics))
            .route("/v1/tenants/{*rest}", post(memory))
            .fallback(async || Refusal::NotFound.response())
            .method_not_allowed_fallback(async || Refusal::Method.response())
            .layer(middleware::from_fn_with_state(Arc::clone(self), around))
            .with_state(Arc::clone(self))
    }

    /// Work with the store, on a thread that may block. It ends in its own time, also when
    /// whoever asked has gone.
    async fn on_store<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Vault) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let busy = app.gate.busy();
            busy.as_ref().map(|vault| work(&app, vault))
        });
        done.await
            .map_err(|_| Refusal::Internal)?
            .ok_or(Refusal::Closing)
    }

    /// The token that came. Its client is known from then on.
    async fn token(
        self: &Arc<Self>,
        headers: &HeaderMap,
        client: Option<Arc<Client>>,
    ) -> Result<TokenInfo, Refusal> {
        let text = bearer(headers).ok_or(Refusal::NoToken)?;
        let token = self
            .on_store(move |_, vault| vault.token(&text))
            .await?
            .ok_or(Refusal::NoToken)?;
        if let Some(client) = client {
            client.is_known();
        }
        Ok(token)
    }

    fn tenant(&self, vault: &Vault, name: &TenantName) -> Result<Tenant, Error> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = tenants.get(name.as_str()) {
            return Ok(tenant.clone());
        }
        drop(tenants);
        let tenant = vault.tenant(name.as_str())?;
        tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.put(name.as_str().to_owned(), tenant.clone());
        Ok(tenant)
    }
}

/// What goes around every request: the check of its host, the log, the figures.
async fn around(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let came = Instant::now();
    let facts = Facts::default();
    facts.note("method", method(request.method()));
    facts.note("route", route(request.uri()));
    request.extensions_mut().insert(facts.clone());
    let mut line = Line {
        app: &app,
        facts,
        came,
        status: None,
    };
    let response = if is_own_host(app.hosts.as_deref(), &request) {
        next.run(request).await
    } else {
        line.facts.note("refused", Refusal::Host.word());
        Refusal::Host.response()
    };
    line.status = Some(response.status().as_u16());
    response
}

/// Logs a request when it ends, also when its client went first.
struct Line<'a> {
    app: &'a App,
    facts: Facts,
    came: Instant,
    status: Option<u16>,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        match self.status {
            Some(status) => {
                self.app.metrics.response(status);
                self.facts.note("status", status);
            }
            None => self.facts.note("client_gone", true),
        }
        let millis = u64::try_from(self.came.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.facts.note("ms", millis);
        let mut facts = self.facts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = std::mem::take(&mut *facts);
        self.app.log.event("request", facts.into());
    }
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let look = app.on_store(|_, vault| {
        let clock = time::clock_word(vault.clock());
        match vault.check_writable() {
            Ok(()) => (StatusCode::OK, "ok", clock),
            Err(error) => (
                StatusCode::SERVICE_UNAVAILABLE,
                match error {
                    Error::Store(StoreError::WritesStopped) => "writes_stopped",
                    _ => "failed",
                },
                clock,
            ),
        }
    });
    match look.await {
        Ok((status, word, clock)) => respond(
            status,
            json!({ "status": word, "clock": clock }).to_string(),
        ),
        Err(refusal) => refusal.response(),
    }
}

async fn metrics(State(app): State<Arc<App>>, request: Request) -> Response {
    let facts = facts(&request);
    let headers = request.headers().clone();
    let client = request.extensions().get().cloned();
    let text = async {
        let token = app.token(&headers, client).await?;
        facts.note("token", token.label.as_str());
        if token.access != Access::Metrics {
            return Err(Refusal::NotAllowed);
        }
        let _turn = turn(&app, &token).await?;
        app.on_store(|app, vault| {
            let connections = app.connections.load(Ordering::Relaxed);
            app.metrics.text(vault, connections)
        })
        .await?
        .map_err(|_| Refusal::Internal)
    };
    match text.await {
        Ok(text) => {
            let mut response = respond(StatusCode::OK, text);
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(refusal) => refused(&facts, refusal),
    }
}

async fn memory(State(app): State<Arc<App>>, request: Request) -> Response {
    let facts = facts(&request);
    match call(&app, &facts, request).await {
        Ok(response) => response,
        Err(refusal) => refused(&facts, refusal),
    }
}

fn refused(facts: &Facts, refusal: Refusal) -> Response {
    facts.note("refused", refusal.word());
    refusal.response()
}

fn facts(request: &Request) -> Facts {
    request.extensions().get().cloned().unwrap_or_default()
}

/// One tool call. What the token does not allow is refused before the body is read.
async fn call(app: &Arc<App>, facts: &Facts, request: Request) -> Result<Response, Refusal> {
    let client = request.extensions().get().cloned();
    let token = app.token(request.headers(), client).await?;
    facts.note("token", token.label.as_str());
    let name = tenant_of(request.uri().path())?;
    if token.access == Access::Metrics || !token.is_for(name.as_str()) {
        return Err(Refusal::NotAllowed);
    }
    check_content_type(request.headers())?;
    let key = idempotency_key(request.headers())?;
    let session = request
        .headers()
        .get("strongroom-session")
        .and_then(|session| session.to_str().ok())
        .map(str::to_owned);
    let _turn = turn(app, &token).await?;
    let tenant = {
        let name = name.clone();
        app.on_store(move |app, vault| app.tenant(vault, &name))
            .await?
    };
    let tenant = match tenant {
        Ok(tenant) => tenant.as_actor(&token.label, session.as_deref()),
        Err(error) => return Ok(answered(app, facts, &Answer::failed(None, error)).0),
    };
    let tenant = match token.access {
        Access::ReadWrite => tenant,
        _ => tenant.as_reader(),
    };
    let body = read_body(request, tenant.line_bytes_max()).await?;
    facts.note("bytes_in", body.len());
    let facts = facts.clone();
    app.on_store(move |app, vault| carry_out(app, vault, &facts, &tenant, &token, key, &body))
        .await?
}

/// On a blocking thread. It remembers its answer before anybody hears of it.
fn carry_out(
    app: &App,
    _open: &Vault,
    facts: &Facts,
    tenant: &Tenant,
    token: &TokenInfo,
    key: Option<String>,
    body: &[u8],
) -> Result<Response, Refusal> {
    let request = wire::parse(body);
    let is_write =
        matches!(&request.command, Ok(command) if !matches!(command, Command::View { .. }));
    let pending = match key.filter(|_| is_write) {
        None => None,
        Some(key) => {
            match app
                .repeats
                .look(&token.id, tenant.name(), &key, body, Instant::now())
            {
                Seen::New(pending) => Some(pending),
                Seen::Before(status, body) => {
                    facts.note("replayed", true);
                    let status = StatusCode::from_u16(status).map_err(|_| Refusal::Internal)?;
                    let mut response = respond(status, body);
                    let yes = HeaderValue::from_static("true");
                    response.headers_mut().insert("idempotency-replayed", yes);
                    return Ok(response);
                }
                Seen::Running => return Err(Refusal::KeyRunning),
                Seen::Other => return Err(Refusal::KeyOther),
            }
        }
    };
    let is_forbidden = is_write && token.access != Access::ReadWrite;
    let started = Instant::now();
    let answer = tenant.answer(request);
    app.metrics.operation(&answer, started.elapsed());
    let (mut response, body) = answered(app, facts, &answer);
    if is_forbidden && answer.failure.is_none() {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    if let (Some(pending), None) = (pending, &answer.failure) {
        pending.answered(response.status().as_u16(), body);
    }
    Ok(response)
}

/// The `tool_result`, and the status that says how it went with the call.
fn answered(app: &App, facts: &Facts, answer: &Answer) -> (Response, Bytes) {
    let body = Bytes::from(answer.to_json());
    let status = match &answer.failure {
        None if answer.command.is_none() => StatusCode::BAD_REQUEST,
        None => StatusCode::OK,
        Some(error) if error.code() == Code::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        Some(Error::Store(StoreError::Closed)) => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    facts.note("command", answer.command.unwrap_or("malformed"));
    facts.note("is_error", answer.reply.is_error);
    facts.note("bytes_out", body.len());
    if let Some(error) = &answer.failure {
        facts.note("failure", error.code().as_str());
        if matches!(error, Error::Store(StoreError::OutcomeUnknown)) {
            app.lost.notify_one();
        }
    }
    (respond(status, body.clone()), body)
}

/// Room for one call: among those of its token, and among all.
struct Turn<'a> {
    _own: OwnedSemaphorePermit,
    _all: SemaphorePermit<'a>,
}

async fn turn<'a>(app: &'a App, token: &TokenInfo) -> Result<Turn<'a>, Refusal> {
    let own = {
        let mut turns = app
            .turns_of_tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let own =
            turns.get_or_insert_ref(&token.id, || Arc::new(Semaphore::new(CALLS_MAX_PER_TOKEN)));
        Arc::clone(own)
    };
    let both = async {
        let _own = own.acquire_owned().await?;
        let _all = app.turns.acquire().await?;
        Ok::<_, AcquireError>(Turn { _own, _all })
    };
    match tokio::time::timeout(TURN_TIMEOUT, both).await {
        Ok(Ok(turn)) => Ok(turn),
        _ => Err(Refusal::Busy),
    }
}
