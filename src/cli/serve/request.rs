//! What of a request is looked at before its call is: host, token, path, headers, body.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, Method, Uri};
use strongroom::path::TenantName;
use zeroize::Zeroizing;

use super::answer::Refusal;
use super::repeat::KEY_BYTES_MAX;

/// How long a body may take to arrive, all of it.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

const BEFORE: &str = "/v1/tenants/";
const AFTER: &str = "/memory";

/// The method, if it is one of those that clients have; others are not for the log.
pub fn method(method: &Method) -> &'static str {
    ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"]
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or("other")
}

/// The request's kind; what a client wrote in its path is not for the log.
pub fn route(uri: &Uri) -> &'static str {
    match uri.path() {
        "/healthz" => "/healthz",
        "/metrics" => "/metrics",
        path if path.starts_with(BEFORE) => "/v1/tenants/{tenant}/memory",
        _ => "other",
    }
}

/// Against DNS rebinding: a page in a browser can reach a loopback address, but only under
/// the name that it came from.
pub fn is_own_host(hosts: Option<&[String]>, request: &Request) -> bool {
    let Some(hosts) = hosts else { return true };
    let is_own = |host: &str| hosts.contains(&host.to_ascii_lowercase());
    let mut named = request.headers().get_all(HOST).iter();
    let (first, more) = (named.next(), named.next());
    let header = first.and_then(|host| host.to_str().ok());
    let authority = request.uri().authority();
    more.is_none()
        && header.is_some_and(is_own)
        && authority.is_none_or(|authority| is_own(authority.as_str()))
}

pub fn bearer(headers: &HeaderMap) -> Option<Zeroizing<String>> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (first, more) = (all.next()?, all.next());
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    (more.is_none() && scheme.eq_ignore_ascii_case("bearer"))
        .then(|| token.trim_matches(' ').to_owned().into())
}

/// `/v1/tenants/{tenant}/memory`: what lies between is the name, its `/` included. Characters
/// of a name may be percent-encoded, which is undone once.
pub fn tenant_of(path: &str) -> Result<TenantName, Refusal> {
    let name = path
        .strip_prefix(BEFORE)
        .and_then(|rest| rest.strip_suffix(AFTER))
        .ok_or(Refusal::NotFound)?;
    let name = percent_decoded(name).ok_or(Refusal::Tenant)?;
    TenantName::parse(&name).map_err(|_| Refusal::Tenant)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

pub fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    match kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => Err(Refusal::ContentType),
    }
}

pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut all = headers.get_all("idempotency-key").iter();
    let Some(key) = all.next() else {
        return Ok(None);
    };
    let key = key.to_str().ok().filter(|key| {
        (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    });
    match (key, all.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Refusal::Key),
    }
}

/// The whole body, or why there is none.
pub async fn read_body(request: Request, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(Refusal::TooLarge);
    }
    let body = collect(request.into_body(), bytes_max);
    tokio::time::timeout(BODY_TIMEOUT, body)
        .await
        .unwrap_or(Err(Refusal::Slow))
}

async fn collect(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Refusal::Cut)?;
        if let Some(data) = frame.data_ref() {
            if bytes.len() + data.len() > bytes_max {
                return Err(Refusal::TooLarge);
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, hosts: &[&str]) -> Request {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_the_server_s_own_names_are_hosts() {
        let own = ["127.0.0.1:8750".to_owned(), "localhost:8750".to_owned()];
        let is_own = |uri: &str, hosts: &[&str]| is_own_host(Some(&own), &request(uri, hosts));
        assert!(is_own("/", &["127.0.0.1:8750"]));
        assert!(is_own("/", &["LocalHost:8750"]));
        assert!(is_own("http://localhost:8750/", &["localhost:8750"]));
        for hosts in [
            &[][..],
            &["evil.example"],
            &["evil.example:8750"],
            &["127.0.0.1"],
            &["127.0.0.1:8751"],
            &["127.0.0.1:8750.evil.example"],
            &["127.0.0.1:8750", "evil.example"],
            &["127.0.0.1:8750", "127.0.0.1:8750"],
            &["user@127.0.0.1:8750"],
        ] {
            assert!(!is_own("/", hosts), "{hosts:?}");
        }
        assert!(!is_own("http://evil.example/", &["127.0.0.1:8750"]));
        assert!(is_own_host(None, &request("/", &["anything"])));
    }

    #[test]
    fn a_tenant_s_name_is_what_lies_between_and_is_decoded_once() {
        let tenant = |path: &str| tenant_of(path).map(|name| name.as_str().to_owned());
        for (path, name) in [
            ("/v1/tenants/a/memory", "a"),
            ("/v1/tenants/clinic/user-17/memory", "clinic/user-17"),
            ("/v1/tenants/clinic%2Fuser-17/memory", "clinic/user-17"),
            ("/v1/tenants/ada%40example.org/memory", "ada@example.org"),
            ("/v1/tenants/memory/memory", "memory"),
            ("/v1/tenants/a/memory/memory", "a/memory"),
        ] {
            assert_eq!(tenant(path).as_deref(), Ok(name), "{path}");
        }
        for path in [
            "/v1/tenants//memory",
            "/v1/tenants/a//b/memory",
            "/v1/tenants/../b/memory",
            "/v1/tenants/a/%2e%2e/memory",
            "/v1/tenants/a%252Fb/memory",
            "/v1/tenants/a%00/memory",
            "/v1/tenants/a%ff/memory",
            "/v1/tenants/a%2/memory",
            "/v1/tenants/a%+2/memory",
        ] {
            assert_eq!(tenant(path), Err(Refusal::Tenant), "{path}");
        }
        for path in [
            "/v1/tenants/memory",
            "/v1/tenants/a/memory/",
            "/v1/tenants/a",
        ] {
            assert_eq!(tenant(path), Err(Refusal::NotFound), "{path}");
        }
    }
}
