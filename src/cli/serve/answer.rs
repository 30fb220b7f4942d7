//! Answers to HTTP requests: a `tool_result`, or an error of the request itself.

use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a request was not carried out. None of them has changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No token, or one that is unknown, revoked or expired: which of these is not said.
    NoToken,
    /// The token is not for this.
    NotAllowed,
    /// The `Host` is none of this server's names.
    Host,
    NotFound,
    Method,
    Tenant,
    ContentType,
    TooLarge,
    Cut,
    Slow,
    Key,
    KeyRunning,
    KeyOther,
    Busy,
    Closing,
    Internal,
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NoToken => (
                StatusCode::UNAUTHORIZED,
                "authentication",
                "Send a valid token as `Authorization: Bearer TOKEN`.",
            ),
            Self::NotAllowed => (
                StatusCode::FORBIDDEN,
                "permission",
                "This token is not for this.",
            ),
            Self::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                "host",
                "This server does not go by that name. Use its loopback address, or start it with --allow-host.",
            ),
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "not_found",
                "There is POST /v1/tenants/{tenant}/memory, GET /healthz and GET /metrics.",
            ),
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "Use POST for a tool call, GET for /healthz and /metrics.",
            ),
            Self::Tenant => (
                StatusCode::BAD_REQUEST,
                "tenant",
                "The path does not hold a tenant's name: 1 to 128 of A-Z a-z 0-9 . _ @ : - with / between parts.",
            ),
            Self::ContentType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content_type",
                "Send JSON with `Content-Type: application/json`.",
            ),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "The body is larger than any call of this tenant can be.",
            ),
            Self::Cut => (
                StatusCode::BAD_REQUEST,
                "cut",
                "The body did not arrive as a whole.",
            ),
            Self::Slow => (
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                "The body did not arrive in time.",
            ),
            Self::Key => (
                StatusCode::BAD_REQUEST,
                "idempotency_key",
                "Idempotency-Key must be 1 to 255 visible ASCII characters, given once.",
            ),
            Self::KeyRunning => (
                StatusCode::CONFLICT,
                "idempotency_running",
                "The request with this Idempotency-Key is still carried out. Ask again in a moment.",
            ),
            Self::KeyOther => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_reused",
                "This Idempotency-Key came with another body. Use a new key for a new request.",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "The server has too much to do. Ask again in a moment.",
            ),
            Self::Closing => (
                StatusCode::SERVICE_UNAVAILABLE,
                "closing",
                "The server is about to end. Nothing was done.",
            ),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "The server failed, and it is unknown whether the call was carried out.",
            ),
        }
    }

    /// The word by which the log knows it.
    pub fn word(self) -> &'static str {
        self.parts().1
    }

    pub fn response(self) -> Response {
        let (status, kind, message) = self.parts();
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
        let mut response = respond(status, body.to_string());
        let headers = response.headers_mut();
        match self {
            Self::NoToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::KeyRunning | Self::Busy | Self::Closing => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, POST"));
            }
            _ => {}
        }
        response
    }
}

/// A JSON answer. Nothing of it is to be kept by anybody in between.
pub fn respond(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
