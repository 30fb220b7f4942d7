//! `strongroom serve` and `token`, with clients of every kind: honest, wrong, slow and hostile.
#![cfg(feature = "serve")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use strongroom::policy::TenantPattern;
use strongroom::{Access, NewToken, Vault};
use tempfile::TempDir;

const ON_STORE: &str = "--store s --key-file k";
const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;

/// A directory with a store `s`, which is audited, and its key file `k`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.ok(&[
            "init",
            "--store",
            "s",
            "--generate-key",
            "k",
            "--policy",
            "strict",
        ]);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
        command.args(words).current_dir(self.0.path());
        command.stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let done = self.run(words);
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn on_store(&self, words: &str) -> Output {
        let words = format!("{words} {ON_STORE}");
        self.run(&words.split_whitespace().collect::<Vec<_>>())
    }

    fn token(&self, words: &str) -> String {
        let made = self.on_store(&format!("token create {words}"));
        assert!(made.status.success(), "{words}: {made:?}");
        String::from_utf8(made.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    fn serve(&self, words: &str) -> Server {
        let words = format!("serve {ON_STORE} {words}");
        let words: Vec<_> = words.split_whitespace().collect();
        Server::start(self.command(&words))
    }
}

struct Server {
    child: Child,
    /// The address, as the log names it.
    on: String,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let event: Value = serde_json::from_str(&first).expect(&first);
        let log = Arc::new(Mutex::new(first));
        let writing = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).unwrap() > 0 {
                writing.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self {
            child,
            on: event["on"].as_str().unwrap().to_owned(),
            log,
            reader: Some(reader),
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it. Returns its log.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.reader.take().unwrap().join().unwrap();
        self.log.lock().unwrap().clone()
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.on).unwrap()
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}",
            self.on
        )
    }

    /// One request on a connection of its own.
    fn send(&self, request: &str) -> Response {
        let mut connection = self.connect();
        connection.write_all(request.as_bytes()).unwrap();
        Response::read(&mut connection)
    }

    fn get(&self, path: &str, more: &str) -> Response {
        self.send(&format!("{}\r\n", self.head("GET", path, more)))
    }

    fn post(&self, tenant: &str, token: &str, more: &str, body: &str) -> Response {
        let path = format!("/v1/tenants/{tenant}/memory");
        let head = self.head("POST", &path, more);
        self.send(&format!(
            "{head}Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn read(from: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        // A server that refuses may close before it has read all.
        let _end = from.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect(&self.body)
    }

    /// The kind of the error that the request met.
    fn refused(&self) -> (u16, String) {
        let json = self.json();
        assert_eq!(json["type"], "error", "{self:?}");
        (
            self.status,
            json["error"]["type"].as_str().unwrap().to_owned(),
        )
    }
}

fn create(path: &str, text: &str) -> String {
    json!({ "command": "create", "path": path, "file_text": text }).to_string()
}

#[test]
fn a_call_gets_its_tool_result_and_the_audit_log_names_the_token() {
    let home = Home::new();
    let token = home.token("--label intake --tenants clinic/*");
    let server = home.serve("--listen 127.0.0.1:0");
    let made = server.post(
        "clinic/ada",
        &token,
        "Strongroom-Session: s-7\r\n",
        &create("/memories/a.md", "one\n"),
    );
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(
        made.body,
        r#"{"type":"tool_result","content":"File created successfully at: /memories/a.md"}"#
    );
    assert!(made.head.contains("content-type: application/json"));
    assert!(made.head.contains("cache-control: no-store"));
    let block = json!({ "type": "tool_use", "id": "toolu_9", "name": "memory",
        "input": { "command": "view", "path": "/memories/a.md" } });
    let seen = server
        .post("clinic%2Fada", &token, "", &block.to_string())
        .json();
    assert_eq!(seen["tool_use_id"], "toolu_9");
    assert!(seen["content"].as_str().unwrap().ends_with("1\tone"));
    let again = server.post("clinic/ada", &token, "", &create("/memories/a.md", "x"));
    assert_eq!(
        (again.status, &again.json()["is_error"]),
        (200, &Value::Bool(true))
    );
    let malformed = server.post("clinic/ada", &token, "", "{\"command\":\"fly\"}");
    assert_eq!(
        (malformed.status, &malformed.json()["type"]),
        (400, &Value::from("tool_result"))
    );
    let shown = home.on_store("audit show --tenant clinic/ada --json");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("intake") && shown.contains("s-7"), "{shown}");
    let events = String::from_utf8(home.on_store("audit show --json").stdout).unwrap();
    assert!(events.contains("token create"), "{events}");
    let log = server.end();
    assert!(
        log.contains(r#""token":"intake""#) && log.contains(r#""command":"create""#),
        "{log}"
    );
}

#[test]
fn what_no_token_allows_is_refused_before_the_body_is_read() {
    let home = Home::new();
    let expired = {
        let vault = Vault::builder()
            .path(home.path("s"))
            .key_file(home.path("k"))
            .open()
            .unwrap();
        let new = NewToken {
            label: "expired".to_owned(),
            access: Access::ReadWrite,
            tenants: vec![TenantPattern::parse("**").unwrap()],
            expires: Some(vault.now()),
        };
        let (_, text) = vault.create_token(&new).unwrap();
        vault.close().unwrap();
        text
    };
    let token = home.token("--label a --tenants clinic/*");
    let revoked = home.token("--label b --tenants clinic/*");
    let figures = home.token("--label m --access metrics");
    let server = home.serve("--listen 127.0.0.1:0");
    // In the server that runs, by way of its control socket.
    assert_eq!(server.post("clinic/a", &revoked, "", VIEW).status, 200);
    let done = home.on_store("token revoke b");
    assert!(done.status.success(), "{done:?}");
    let unauthenticated = (401, "authentication".to_owned());
    let other_id = token.replace(&token[5..21], "0123456789abcdef");
    for wrong in [
        "",
        "x",
        &revoked,
        &expired,
        &other_id,
        &token[..token.len() - 1],
        &format!("{token} ")[1..],
    ] {
        assert_eq!(
            server.post("clinic/a", wrong, "", VIEW).refused(),
            unauthenticated,
            "{wrong}"
        );
    }
    let head = server.head(
        "POST",
        "/v1/tenants/clinic/a/memory",
        "Content-Type: application/json\r\n",
    );
    for more in [
        String::new(),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n"),
    ] {
        // The body that is announced never comes.
        let response = server.send(&format!("{head}{more}Content-Length: 9\r\n\r\n"));
        assert_eq!(response.refused(), unauthenticated, "{more}");
        assert!(response.head.contains("www-authenticate: bearer"));
    }
    let forbidden = (403, "permission".to_owned());
    for tenant in ["lab/a", "clinic", "clinic/a/b", "Clinic/a"] {
        assert_eq!(
            server.post(tenant, &token, "", VIEW).refused(),
            forbidden,
            "{tenant}"
        );
    }
    assert_eq!(
        server.post("clinic/a", &figures, "", VIEW).refused(),
        forbidden
    );
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    assert_eq!(server.get("/metrics", &bearer(&token)).refused(), forbidden);
    assert_eq!(server.get("/metrics", "").refused(), unauthenticated);
    assert_eq!(server.get("/metrics", &bearer(&figures)).status, 200);
    server.end();
}

#[test]
fn a_reader_may_view_and_is_told_that_it_may_not_write() {
    let home = Home::new();
    let writer = home.token("--label w --tenants a");
    let reader = home.token("--label r --tenants a --access read-only");
    let server = home.serve("--listen 127.0.0.1:0");
    server.post("a", &writer, "", &create("/memories/a.md", "one\n"));
    assert_eq!(server.post("a", &reader, "", VIEW).status, 200);
    for input in [
        create("/memories/b.md", "x"),
        json!({ "command": "delete", "path": "/memories/a.md" }).to_string(),
        json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/c" }).to_string(),
        json!({ "command": "str_replace", "path": "/memories/a.md", "old_str": "one" }).to_string(),
        json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "x" }).to_string(),
    ] {
        let refused = server.post("a", &reader, "", &input);
        assert_eq!(refused.status, 403, "{refused:?}");
        let text = refused.json()["content"].as_str().unwrap().to_owned();
        assert!(text.contains("can only be read here"), "{text}");
    }
    let seen = server.post("a", &writer, "", VIEW).json();
    assert!(
        seen["content"]
            .as_str()
            .unwrap()
            .ends_with("4B\t/memories/a.md"),
        "{seen}"
    );
    let shown = String::from_utf8(home.on_store("audit show --tenant a --json").stdout).unwrap();
    assert_eq!(shown.matches("refused").count(), 5, "{shown}");
    server.end();
}

#[test]
fn requests_that_are_none_are_refused_with_the_reason() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let server = home.serve("--listen 127.0.0.1:0 --allow-host memory.example");
    let kind = |response: Response| response.refused();
    for (path, expected) in [
        ("/", (404, "not_found")),
        ("/v1/tenants/a", (405, "method")),
        ("/v1/tenants/a/memory", (405, "method")),
    ] {
        let expected = (expected.0, expected.1.to_owned());
        assert_eq!(kind(server.get(path, "")), expected, "{path}");
    }
    for tenant in [
        "a%2F..%2Fb",
        "a//b",
        "%00",
        "a%252fb",
        "a b",
        &"x".repeat(129),
    ] {
        let status = server.post(tenant, &token, "", VIEW).status;
        assert_eq!(status, 400, "{tenant}");
    }
    let head = server.head(
        "POST",
        "/v1/tenants/a/memory",
        &format!("Authorization: Bearer {token}\r\n"),
    );
    let plain = format!(
        "{head}Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{VIEW}",
        VIEW.len()
    );
    assert_eq!(kind(server.send(&plain)), (415, "content_type".to_owned()));
    let rebound = plain.replace(&format!("Host: {}", server.on), "Host: evil.example");
    assert_eq!(kind(server.send(&rebound)), (421, "host".to_owned()));
    let proxied = rebound
        .replace("evil.example", "memory.example")
        .replace("text/plain", "application/json");
    assert_eq!(server.send(&proxied).status, 200);
    for key in ["", "a b", &"k".repeat(256), "a\r\nIdempotency-Key: b"] {
        let more = format!("Idempotency-Key: {key}\r\n");
        assert_eq!(
            kind(server.post("a", &token, &more, VIEW)),
            (400, "idempotency_key".to_owned()),
            "{key}"
        );
    }
    // Hyper's own answers: a head that is too long, and what is no HTTP.
    let long = server.head("GET", "/healthz", &format!("X: {}\r\n", "x".repeat(20_000)));
    assert_eq!(server.send(&format!("{long}\r\n")).status, 431);
    let many = server.head("GET", "/healthz", &"X: x\r\n".repeat(100));
    assert_eq!(server.send(&format!("{many}\r\n")).status, 431);
    assert_eq!(server.send("HELO there\r\n\r\n").status, 400);
    let smuggled = format!(
        "{head}Content-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"
    );
    let answer = server.send(&smuggled);
    assert!(
        answer.status == 400 && !answer.body.contains("HTTP/1.1 200"),
        "{answer:?}"
    );
    server.end();
}

#[test]
fn a_body_that_is_too_large_is_refused_and_never_held() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let server = home.serve("--listen 127.0.0.1:0");
    let head = server.head(
        "POST",
        "/v1/tenants/a/memory",
        &format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"),
    );
    let too_large = (413, "too_large".to_owned());
    let announced = server.send(&format!("{head}Content-Length: 99999999999\r\n\r\n"));
    assert_eq!(announced.refused(), too_large);
    let mut connection = server.connect();
    connection
        .write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = connection.try_clone().unwrap();
    let reader = std::thread::spawn(move || Response::read(&mut answer));
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // Without an end: the server must stop reading by itself.
    while connection.write_all(piece.as_bytes()).is_ok() {}
    drop(connection);
    let answer = reader.join().unwrap();
    assert!(answer.status == 413 || answer.status == 0, "{answer:?}");
    assert_eq!(server.post("a", &token, "", VIEW).status, 200);
    server.end();
}

/// Each of them takes a connection and gives nothing for it, 70 of them with a token and a place
/// among the calls. All are ended by the server, and others are answered meanwhile.
#[test]
fn clients_that_dawdle_are_cut_off_and_hold_up_nobody() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let slow_token = home.token("--label slow --tenants **");
    let server = home.serve("--listen 127.0.0.1:0");
    let with_token =
        format!("Authorization: Bearer {slow_token}\r\nContent-Type: application/json\r\n");
    let head = server.head("POST", "/v1/tenants/a/memory", &with_token);
    let starts = [
        String::new(),
        "GET /heal".to_owned(),
        server.head("GET", "/healthz", ""),
        format!("{head}Content-Length: 100\r\n\r\n{{"),
    ];
    let slow: Vec<_> = (0..100)
        .map(|n| {
            let start = &starts[if n < 30 { n % 3 } else { 3 }];
            let mut connection = server.connect();
            connection.write_all(start.as_bytes()).unwrap();
            connection
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(server.post("a", &token, "", VIEW).status, 200);
    }
    for (n, mut connection) in slow.into_iter().enumerate() {
        // Ends when the server ends it. Those that wait for a turn are told that it is busy.
        let response = Response::read(&mut connection);
        let expected = if n < 30 { [0, 408] } else { [408, 503] };
        assert!(expected.contains(&response.status), "{n}: {response:?}");
    }
    server.end();
}

/// More connections than there may be, none with a token: they make room for who has one, and
/// a connection that has shown a token is not sent away.
#[test]
fn strangers_that_hold_connections_keep_nobody_out() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let server = home.serve("--listen 127.0.0.1:0");
    let request = format!(
        "POST /v1/tenants/a/memory HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{VIEW}",
        server.on,
        VIEW.len()
    );
    let mut known = server.connect();
    let ask = |known: &mut TcpStream| {
        known.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        known.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        // The rest of this answer; no other follows.
        let mut rest = [0; 4_096];
        while !rest.starts_with(b"{") && !String::from_utf8_lossy(&rest).contains("tool_result") {
            assert!(known.read(&mut rest).unwrap() > 0);
        }
    };
    ask(&mut known);
    let mut strangers: Vec<TcpStream> = (0..600).map(|_| server.connect()).collect();
    for _ in 0..10 {
        assert_eq!(server.post("a", &token, "", VIEW).status, 200);
    }
    ask(&mut known);
    // The first of them had to go, without an answer and before any time-out could tell it 408.
    assert_eq!(Response::read(&mut strangers[0]).status, 0);
    drop(strangers);
    let log = server.end();
    assert!(log.matches("\"status\":200").count() >= 12, "{log}");
}

#[test]
fn a_repeated_key_is_answered_once_carried_out_and_another_body_refused() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let other = home.token("--label b --tenants **");
    let server = home.serve("--listen 127.0.0.1:0");
    server.post("a", &token, "", &create("/memories/l.md", ""));
    let insert = json!({ "command": "insert", "path": "/memories/l.md", "insert_line": 0, "insert_text": "x\n" }).to_string();
    let key = "Idempotency-Key: k-1\r\n";
    let first = server.post("a", &token, key, &insert);
    let second = server.post("a", &token, key, &insert);
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert!(second.head.contains("idempotency-replayed: true") && !first.head.contains("replayed"));
    let reused = server.post("a", &token, key, &create("/memories/x.md", ""));
    assert_eq!(reused.refused(), (422, "idempotency_reused".to_owned()));
    let lines = |server: &Server| {
        let view = json!({ "command": "view", "path": "/memories/l.md" }).to_string();
        server
            .post("a", &token, "", &view)
            .body
            .matches("\\tx")
            .count()
    };
    assert_eq!(lines(&server), 1);
    // Another token's keys are its own; without a key nothing is remembered.
    server.post("a", &other, key, &insert);
    server.post("a", &token, "", &insert);
    assert_eq!(lines(&server), 3);
    server.end();
}

#[test]
fn eight_threads_write_one_file_and_every_line_stays() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let server = home.serve("--listen 127.0.0.1:0");
    server.post("a", &token, "", &create("/memories/l.md", ""));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (server, token) = (&server, &token);
            scope.spawn(move || {
                for number in 0..25 {
                    let text = format!("{thread}-{number}\n");
                    let insert = json!({ "command": "insert", "path": "/memories/l.md", "insert_line": 0, "insert_text": text });
                    assert_eq!(server.post("a", token, "", &insert.to_string()).status, 200);
                }
            });
        }
    });
    let view = json!({ "command": "view", "path": "/memories/l.md" }).to_string();
    let seen = server.post("a", &token, "", &view).json();
    let seen = seen["content"].as_str().unwrap();
    for thread in 0..8 {
        for number in 0..25 {
            assert!(
                seen.contains(&format!("\t{thread}-{number}\n"))
                    || seen.ends_with(&format!("\t{thread}-{number}"))
            );
        }
    }
    server.end();
}

/// Ended and killed under load: what was acknowledged is there, and a request that was begun
/// when SIGTERM came is answered.
#[test]
fn no_acknowledged_write_is_lost_however_the_server_ends() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let mut acknowledged = Vec::new();
    for (round, signal) in [Signal::TERM, Signal::KILL, Signal::TERM]
        .into_iter()
        .enumerate()
    {
        let mut server = home.serve("--listen 127.0.0.1:0");
        let written = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (written, token, on) = (&written, &token, server.on.clone());
                scope.spawn(move || {
                    for number in 0.. {
                        let path = format!("/memories/{round}-{thread}-{number}.md");
                        let Some(response) = try_post(&on, "t", token, &create(&path, "x")) else {
                            return;
                        };
                        assert!([200, 503].contains(&response.status), "{response:?}");
                        if response.status == 200 {
                            written.lock().unwrap().push(path);
                        }
                    }
                });
            }
            while written.lock().unwrap().len() < 40 {
                std::thread::yield_now();
            }
            server.signal(signal);
            let status = server.child.wait().unwrap();
            assert_eq!(status.code(), (signal == Signal::TERM).then_some(0));
        });
        acknowledged.extend(written.into_inner().unwrap());
    }
    let server = home.serve("--listen [::1]:0");
    for path in &acknowledged {
        let view = json!({ "command": "view", "path": path }).to_string();
        let seen = server.post("t", &token, "", &view);
        assert!(seen.body.contains("1\\tx"), "{path}: {seen:?}");
    }
    server.end();
    let checked = home.on_store("verify");
    assert!(checked.status.success(), "{checked:?}");
}

/// The engine's file may not grow past a limit here: one write fails half-way, its outcome is
/// unknown, and the server ends so that the store is opened anew.
#[test]
fn a_write_that_fails_half_way_ends_the_server_and_what_was_acknowledged_stays() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let mut command = Command::new("bash");
    command
        .current_dir(home.0.path())
        .stdin(Stdio::null())
        .args(["-c", "trap '' XFSZ; ulimit -f 1200; exec \"$0\" serve --store s --key-file k --listen 127.0.0.1:0"])
        .arg(env!("CARGO_BIN_EXE_strongroom"));
    let mut server = Server::start(command);
    let text = "a line of text that says nothing\n".repeat(100);
    let mut acknowledged = Vec::new();
    let failed = loop {
        let path = format!("/memories/{}.md", acknowledged.len());
        let response = server.post("t", &token, "", &create(&path, &text));
        if response.status != 200 {
            break response;
        }
        acknowledged.push(path);
    };
    assert_eq!(failed.status, 500, "{failed:?}");
    assert!(failed.body.contains("It is unknown whether"), "{failed:?}");
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    let server = home.serve("--listen 127.0.0.1:0");
    assert!(!acknowledged.is_empty());
    for path in &acknowledged {
        let view = json!({ "command": "view", "path": path }).to_string();
        assert!(
            server
                .post("t", &token, "", &view)
                .body
                .contains("says nothing"),
            "{path}"
        );
    }
    server.end();
}

/// `None` once the server is gone, or was before it answered whole.
fn try_post(on: &str, tenant: &str, token: &str, body: &str) -> Option<Response> {
    let mut connection = TcpStream::connect(on).ok()?;
    let request = format!(
        "POST /v1/tenants/{tenant}/memory HTTP/1.1\r\nHost: {on}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).ok()?;
    let response = Response::read(&mut connection);
    (!response.body.is_empty()).then_some(response)
}

#[test]
fn neither_log_nor_store_holds_a_token_and_the_log_no_data() {
    let home = Home::new();
    let token = home.token("--label audited-label --tenants clinic/*");
    let secret = token.splitn(3, '_').nth(2).unwrap().to_owned();
    let server = home.serve("--listen 127.0.0.1:0");
    server.post(
        "clinic/quinn",
        &token,
        "Idempotency-Key: key-of-mine\r\n",
        &create("/memories/diagnosis.md", "gout, said quinn"),
    );
    server.post("clinic/quinn", &format!("{token}x"), "", VIEW);
    server.post("lab/zoe", &token, "", VIEW);
    server.post("a b", &token, "", VIEW);
    server.get(&format!("/{token}?token={token}"), "Referer: spy\r\n");
    server.send(&format!(
        "{}\r\n",
        server.head("SPY-quinn-gout", "/healthz", "")
    ));
    let log = server.end();
    assert!(log.lines().count() >= 6, "{log}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect(line);
        assert!(line["time"].is_string() && line["event"].is_string());
    }
    for word in [
        "diagnosis",
        "gout",
        "clinic",
        "quinn",
        "lab",
        "zoe",
        "/memories",
        "key-of-mine",
        "spy",
        &secret,
    ] {
        // "lab" stands in "audited-label".
        let log = log.replace("audited-label", "");
        assert!(!log.contains(word), "{word}: {log}");
    }
    let mut files = vec![home.path("s")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let bytes = fs::read(&path).unwrap();
            for plain in [secret.as_bytes(), b"audited-label"] {
                assert!(
                    !bytes.windows(plain.len()).any(|found| found == plain),
                    "{path:?}"
                );
            }
        }
    }
}

#[test]
fn the_socket_is_for_its_owner_and_is_replaced_only_when_nobody_serves_it() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let server = home.serve("");
    let socket = home.path("s/http.sock");
    assert_eq!(server.on, "unix socket");
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let mut connection = UnixStream::connect(&socket).unwrap();
    let request = format!(
        "POST /v1/tenants/a/memory HTTP/1.1\r\nHost: any\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{VIEW}",
        VIEW.len()
    );
    connection.write_all(request.as_bytes()).unwrap();
    assert_eq!(Response::read(&mut connection).status, 200);
    let curl = Command::new("curl")
        .args(["-s", "--unix-socket", socket.to_str().unwrap()])
        .args(["-H", &format!("Authorization: Bearer {token}")])
        .args(["--json", VIEW, "http://memory/v1/tenants/a/memory"])
        .output();
    // A machine may have none.
    if let Ok(curl) = curl {
        let result: Value = serde_json::from_slice(&curl.stdout).unwrap();
        assert_eq!(result["type"], "tool_result", "{curl:?}");
    }
    // While it runs the store is its, but the operator's commands go through it.
    assert_eq!(
        home.on_store("serve --listen 127.0.0.1:0").status.code(),
        Some(6)
    );
    assert!(home.on_store("stats").status.success());
    server.signal(Signal::KILL);
    drop(server);
    assert!(socket.exists());
    home.serve("").end();
    assert!(!socket.exists());
    // Somebody else's socket, and what is no socket, stay.
    let served = UnixListener::bind(home.path("other.sock")).unwrap();
    fs::write(home.path("file"), "mine").unwrap();
    for name in ["other.sock", "file"] {
        let refused = home.on_store(&format!("serve --socket {name}"));
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert_eq!(
            refused.stderr.iter().filter(|byte| **byte == b'\n').count(),
            2,
            "{refused:?}"
        );
    }
    assert_eq!(fs::read(home.path("file")).unwrap(), b"mine");
    drop(served);
}

#[test]
fn addresses_beyond_loopback_are_refused_with_the_reason() {
    let home = Home::new();
    for address in ["0.0.0.0:8750", "[::]:8750", "192.0.2.1:80", "localhost:80"] {
        let refused = home.on_store(&format!("serve --listen {address}"));
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let refused = home.on_store("serve --listen 0.0.0.0:8750");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("proxy"),
        "{refused:?}"
    );
}

#[test]
fn health_and_figures_say_how_it_goes() {
    let home = Home::new();
    let token = home.token("--label a --tenants **");
    let figures = home.token("--label m --access metrics");
    let server = home.serve("--listen 127.0.0.1:0");
    let health = server.get("/healthz", "");
    assert_eq!(
        (health.status, health.body.as_str()),
        (200, r#"{"clock":"believed","status":"ok"}"#)
    );
    server.post(
        "quinn",
        &token,
        "",
        &create("/memories/a.md", "password: hunter2hunter2"),
    );
    server.post("quinn", &token, "", &create("/memories/a.md", "x"));
    server.get("/healthz", "Host: twice\r\n");
    let metrics = server.get("/metrics", &format!("Authorization: Bearer {figures}\r\n"));
    assert!(metrics.head.contains("text/plain; version=0.0.4"));
    for line in [
        r#"strongroom_operations_total{command="create",outcome="ok"} 1"#,
        r#"strongroom_operations_total{command="create",outcome="refused"} 1"#,
        r#"strongroom_operation_seconds_count{command="create"} 2"#,
        r#"strongroom_redactions_total{rule="password"} 1"#,
        r#"strongroom_http_responses_total{status="200"} 3"#,
        r#"strongroom_http_responses_total{status="421"} 1"#,
        "strongroom_files 1",
        "strongroom_tenants 1",
    ] {
        assert!(
            metrics.body.lines().any(|found| found == line),
            "{line}\n{}",
            metrics.body
        );
    }
    assert!(!metrics.body.contains("quinn"));
    server.end();
}

#[test]
fn tokens_are_made_listed_and_revoked_on_the_command_line() {
    let home = Home::new();
    let made = home.run(&[
        "token",
        "create",
        "--store",
        "s",
        "--key-file",
        "k",
        "--label",
        "the intake",
        "--tenants",
        "clinic/*",
        "--tenants",
        "lab",
        "--access",
        "read-only",
        "--expires",
        "90d",
        "--json",
    ]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("srt1_") && token.len() == 65, "{token}");
    assert_eq!(made["tenants"], json!(["clinic/*", "lab"]));
    let listed: Value = serde_json::from_slice(&home.on_store("token list --json").stdout).unwrap();
    assert_eq!(listed[0]["label"], "the intake");
    assert_eq!(listed[0]["access"], "read-only");
    assert!(listed[0]["expires"].is_string() && listed[0].get("token").is_none());
    let table = String::from_utf8(home.on_store("token list").stdout).unwrap();
    assert!(
        table.contains("the intake") && !table.contains(&token[22..]),
        "{table}"
    );
    for (words, code) in [
        ("token create --label x", 2),
        ("token create --label x --tenants a/**/b", 2),
        ("token create --label x --tenants a --access metrics", 2),
        ("token create --label x --tenants a --expires yesterday", 2),
        ("token create --label x --tenants a --expires 2020-01-01", 2),
        ("token revoke nobody", 4),
    ] {
        let refused = home.on_store(words);
        assert_eq!(refused.status.code(), Some(code), "{words}: {refused:?}");
    }
    let id = listed[0]["id"].as_str().unwrap();
    assert!(
        home.on_store(&format!("token revoke {id}"))
            .status
            .success()
    );
    let listed: Value = serde_json::from_slice(&home.on_store("token list --json").stdout).unwrap();
    assert_eq!(listed, json!([]));
    let checked = home.on_store("verify");
    assert!(checked.status.success(), "{checked:?}");
}
