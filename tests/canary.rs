//! No secret that is written anywhere comes out anywhere: 50 of them, each of another issuer's
//! format and made up from parts, go through the library and the whole command, and the files,
//! answers, errors, logs and exports are searched for them in every form.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod redact_corpus;
mod store_kit;

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use store_kit::builder;
use store_kit::needles::Needles;
use strongroom::wire;

const CANARIES: usize = 50;
/// Names the child process that panics.
const CHILD: &str = "STRONGROOM_CANARY_CHILD";
const ON_STORE: &[&str] = &["--store", "s", "--key-file", "k"];

fn canaries() -> Vec<String> {
    redact_corpus::formats::secrets(&mut redact_corpus::Rng(0xCA4A), CANARIES)
}

/// The part that no other text has: a prefix such as `sk_live_` may be named in a message.
fn core(secret: &str) -> &str {
    &secret[secret.len() - 14.min(secret.len())..]
}

/// Whoever listens to everything that is said.
struct Ear {
    needles: Needles,
    heard: usize,
}

impl Ear {
    fn new() -> Self {
        let canaries = canaries();
        let needles = canaries
            .iter()
            .map(|c| core(c).as_bytes())
            .collect::<Vec<_>>();
        Self {
            needles: Needles::new(needles),
            heard: 0,
        }
    }

    fn hears(&mut self, what: &str, said: impl AsRef<[u8]>) {
        let said = said.as_ref();
        let found = self.needles.found_among(said);
        let line = String::from_utf8_lossy(said)
            .lines()
            .find(|l| !self.needles.found_among(l.as_bytes()).is_empty())
            .unwrap_or_default()
            .to_owned();
        assert!(found.is_empty(), "{what}: canaries {found:?} in {line}");
        self.heard += said.len();
    }

    fn searches(&self, what: &str, directory: &Path) {
        let found = self.needles.found(directory);
        assert_eq!(found, BTreeSet::new(), "{what}");
    }
}

/// Calls that write a secret, name one, look for one or are broken around one.
fn calls(secret: &str, n: usize) -> Vec<Value> {
    let note = format!("/memories/d{}/n{n}.md", n % 7);
    // So early that neither part is a secret by itself.
    let (head, tail) = secret.split_at(3);
    vec![
        json!({"command": "create", "path": note, "file_text": format!("# note\nuse {secret}, please\nend\n")}),
        json!({"command": "view", "path": note}),
        json!({"command": "create", "path": note, "file_text": secret}),
        json!({"command": "str_replace", "path": note, "old_str": secret, "new_str": "x"}),
        json!({"command": "str_replace", "path": note, "old_str": "please", "new_str": secret}),
        json!({"command": "str_replace", "path": note, "old_str": format!("{secret}\n{secret}"), "new_str": secret}),
        json!({"command": "insert", "path": note, "insert_line": 1, "insert_text": secret}),
        json!({"command": "insert", "path": note, "insert_line": 99_999, "insert_text": secret}),
        json!({"command": "insert", "path": note, "insert_line": secret, "insert_text": secret}),
        json!({"command": "create", "path": format!("/memories/{secret}.md"), "file_text": "x"}),
        json!({"command": "create", "path": format!("/memories/../{secret}"), "file_text": secret}),
        json!({"command": "create", "path": secret, "file_text": secret}),
        json!({"command": "create", "path": format!("/memories/d{}/{secret}/", n % 7), "file_text": secret}),
        json!({"command": "view", "path": format!("/memories/{secret}")}),
        json!({"command": "view", "path": note, "view_range": [secret, 3]}),
        json!({"command": "view", "path": note, "view_range": [9_999, 1]}),
        json!({"command": "rename", "old_path": note, "new_path": format!("/memories/{secret}")}),
        json!({"command": "rename", "old_path": format!("/memories/{secret}"), "new_path": note}),
        json!({"command": "delete", "path": format!("/memories/{secret}")}),
        json!({"command": secret, "path": note}),
        json!({"command": "create", "path": note, secret: secret}),
        json!({"command": "create", "path": [secret], "file_text": {"x": secret}}),
        json!([secret]),
        json!(secret),
        // Put together by two harmless edits.
        json!({"command": "create", "path": format!("/memories/j{n}.md"), "file_text": format!("a {head}--CUT--{tail} b\n")}),
        json!({"command": "str_replace", "path": format!("/memories/j{n}.md"), "old_str": "--CUT--", "new_str": ""}),
        json!({"command": "view", "path": format!("/memories/j{n}.md")}),
        json!({"command": "view", "path": "/memories"}),
    ]
}

#[test]
fn no_canary_leaves_the_library() {
    let mut ear = Ear::new();
    let home = tempfile::tempdir().unwrap();
    let (store, key) = (home.path().join("s"), home.path().join("k"));
    strongroom::generate_key_file(&key).unwrap();
    let vault = builder(&store, &key).create(true).open().unwrap();
    let tenant = vault.tenant("canary").unwrap();
    for (n, secret) in canaries().iter().enumerate() {
        for call in calls(secret, n) {
            let line = call.to_string();
            ear.hears(
                "debug of a call",
                format!("{:?}", wire::parse(line.as_bytes())),
            );
            let answer = tenant.execute(&line);
            ear.hears("answer", answer.to_json());
            if let Some(error) = &answer.failure {
                ear.hears("failure", format!("{error} {error:?}"));
            }
        }
        let bytes = [b"\xff\xfe".as_slice(), secret.as_bytes()].concat();
        for (path, bytes) in [
            ("/memories/b.md".to_owned(), bytes),
            (format!("/memories/{secret}.png"), b"no image".to_vec()),
            ("/memories/t.md".to_owned(), secret.clone().into_bytes()),
        ] {
            let reply = tenant.put_bytes(&path, &bytes).unwrap();
            ear.hears("put_bytes", reply.as_text().unwrap_or_default());
        }
        if let Err(error) = vault.tenant(secret) {
            ear.hears(
                "a tenant's name",
                format!(
                    "{error} {error:?} {:?}",
                    error.source().map(ToString::to_string)
                ),
            );
        }
        let policy = format!("schema = 1\n[redaction]\n{secret} = \"{secret}\"\n");
        if let Err(error) = strongroom::policy::load(&policy, "p.toml") {
            ear.hears(
                "debug of a policy's error",
                format!("{:?}", error.source().map(ToString::to_string)),
            );
        }
        ear.searches("the store, open", &store);
    }
    ear.hears("stats", format!("{:?}", vault.stats().unwrap()));
    let report = vault.verify(strongroom::Depth::Full).unwrap();
    assert!(report.problems.is_empty());
    ear.hears("verify", format!("{report:?}"));
    drop(tenant);
    vault.close().unwrap();
    ear.searches("the store, closed", &store);
    assert!(ear.heard > 100_000, "{} bytes were heard", ear.heard);
}

/// A directory with a store, where commands leave their temporary files too.
struct Home {
    dir: tempfile::TempDir,
    ear: Ear,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            dir: tempfile::tempdir().unwrap(),
            ear: Ear::new(),
        };
        fs::create_dir(home.path("tmp")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
        command
            .args(words)
            .current_dir(self.dir.path())
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command, listens to all it says and gives its exit code and answer.
    fn run(&mut self, words: &[&str], input: &str) -> (i32, String) {
        let mut child = self.command(words).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let what = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        self.ear.hears(&format!("stdout of {what}"), &output.stdout);
        self.ear.hears(&format!("stderr of {what}"), &output.stderr);
        let code = output.status.code().unwrap();
        (code, String::from_utf8(output.stdout).unwrap())
    }

    fn on_store(&mut self, words: &[&str], input: &str) -> (i32, String) {
        self.run(&[words, ON_STORE].concat(), input)
    }
}

#[test]
fn no_canary_leaves_the_command() {
    let mut home = Home::new();
    let canaries = canaries();
    // At first nothing is scanned, so that there is something to clean up later.
    fs::write(
        home.path("open.toml"),
        "schema = 1\nextends = [\"strict\"]\n[redaction]\nrule_packs = []\nactions = {}\n",
    )
    .unwrap();
    let made = home.run(
        &[
            "init",
            "--store",
            "s",
            "--generate-key",
            "k",
            "--policy",
            "./open.toml",
        ],
        "",
    );
    assert_eq!(made.0, 0);
    let old: String = canaries
        .iter()
        .enumerate()
        .map(|(n, c)| {
            let call = json!({"command": "create", "path": format!("/memories/old{n}.md"), "file_text": format!("was {c}\n")});
            format!("{call}\n")
        })
        .collect();
    assert_eq!(home.on_store(&["exec", "--tenant", "old"], &old).0, 0);
    assert_eq!(home.on_store(&["policy", "set", "strict"], "").0, 0);

    // Everything that a session can be asked, and lines that are no call.
    let mut lines = String::new();
    for (n, secret) in canaries.iter().enumerate() {
        for call in calls(secret, n) {
            lines.push_str(&format!("{call}\n"));
        }
        lines.push_str(&format!("{{\"command\": \"view\", \"path\": \"{secret}\n"));
        lines.push_str(&format!("{secret}\n\u{1}{secret}\n"));
    }
    let (_, answers) = home.on_store(&["exec", "--tenant", "new"], &lines);
    assert!(answers.contains("[REDACTED:"), "something was removed");

    // Beside a session, over its socket.
    let mut session = home
        .command(&[&["exec", "--tenant", "new"], ON_STORE].concat())
        .spawn()
        .unwrap();
    let mut stdin = session.stdin.take().unwrap();
    let mut stdout = BufReader::new(session.stdout.take().unwrap());
    writeln!(stdin, "{}", calls(&canaries[0], 90)[0]).unwrap();
    let mut answer = String::new();
    stdout.read_line(&mut answer).unwrap();
    home.ear.hears("an answer of the session", &answer);
    let (scanned, report) = home.on_store(&["rescan", "--all-tenants", "--json"], "");
    assert_eq!(scanned, 0);
    assert!(
        report.contains("50"),
        "what is stored was cleaned: {report}"
    );
    let mut socket = UnixStream::connect(home.path("s/control")).unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(5)))
        .unwrap();
    let _refused =
        socket.write_all(format!("strongroom-control-2\n{}\n", canaries.join("\n")).as_bytes());
    let mut heard = Vec::new();
    let _until_closed = socket.read_to_end(&mut heard);
    home.ear.hears("the control socket", heard);
    for words in [
        &["stats", "--json"][..],
        &["verify"],
        &["audit", "show"],
        &["audit", "verify"],
        &["policy", "show"],
    ] {
        home.on_store(words, "");
    }
    drop(stdin);
    let ended = session.wait_with_output().unwrap();
    home.ear.hears("stderr of the session", &ended.stderr);

    // Files with secrets in them and, where a name can be one, in their names.
    let from = home.path("from");
    fs::create_dir_all(from.join("d")).unwrap();
    for (n, secret) in canaries.iter().enumerate() {
        fs::write(
            from.join(format!("d/i{n}.md")),
            format!("use {secret} here\n"),
        )
        .unwrap();
        if !secret.contains('/') && secret.len() < 200 {
            fs::write(from.join(format!("{secret}.md")), "x\n").unwrap();
        }
    }
    let (_, said) = home.on_store(
        &["import", "--from", "from", "--tenant", "in", "--json"],
        "",
    );
    assert!(said.contains("50"), "{said}");
    home.on_store(&["import", "--from", "from", "--tenant", "in2"], "");
    fs::remove_dir_all(&from).unwrap();

    for tenant in ["old", "new", "in"] {
        let to = format!("out-{tenant}");
        assert_eq!(
            home.on_store(&["export", "--to", &to, "--tenant", tenant], "")
                .0,
            0
        );
        let tar = format!("{tenant}.tar");
        assert_eq!(
            home.on_store(&["export", "--tar", &tar, "--tenant", tenant], "")
                .0,
            0
        );
    }
    for secret in canaries.iter().take(10) {
        let path = format!("/memories/{secret}");
        home.on_store(&["hold", "add", &path, "--reason", "legal"], "");
        home.on_store(&["audit", "show", "--path", &path], "");
    }
    let joined = canaries.join("\n");
    let (redacted, out) = home.run(&["redact"], &joined);
    assert_eq!(
        (redacted, out.matches("[REDACTED:").count() * 2 >= CANARIES),
        (0, true),
        "{out}"
    );
    let texts: String = canaries
        .iter()
        .map(|c| format!("{}\n", json!({"text": c})))
        .collect();
    assert_eq!(home.run(&["redact", "--json-lines"], &texts).0, 0);
    home.run(&["redact", "--json-lines"], &joined);
    for words in [
        &["rescan", "--all-tenants"][..],
        &["expire"],
        &["verify", "--json"],
        &["stats"],
        &["tenant", "list"],
        &["audit", "show", "--json"],
        &["audit", "export", "--all", "audit.jsonl"],
        &["checkpoint"],
        &["backup", "--to", "records", "--keys", "keys"],
    ] {
        let (code, _) = home.on_store(words, "");
        assert_eq!(code, 0, "{words:?}");
    }
    assert_eq!(home.run(&["audit", "check", "audit.jsonl"], "").0, 0);

    // A store that is damaged says what, not with which content.
    let store = home.path("s");
    let size = |file: &PathBuf| fs::metadata(store.join(file)).map_or(0, |m| m.len());
    let largest = store_kit::files_below(&store)
        .into_iter()
        .max_by_key(size)
        .unwrap();
    let mut bytes = fs::read(store.join(&largest)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().for_each(|b| *b ^= 0x55);
    fs::write(store.join(&largest), bytes).unwrap();
    home.on_store(&["verify"], "");
    let salvage = ["export", "--to", "salvaged", "--salvage", "--tenant", "new"];
    home.on_store(&salvage, "");
    // A socket is no file to read.
    let _gone = fs::remove_file(home.path("s/control"));
    home.ear
        .searches("everything that is left", home.dir.path());
    assert!(
        home.ear.heard > 100_000,
        "{} bytes were heard",
        home.ear.heard
    );
}

/// All kinds of calls around some of the canaries, and the first kinds around all.
#[cfg(any(feature = "mcp", feature = "serve"))]
fn some_calls() -> Vec<Value> {
    let of = |(n, secret): (usize, &String)| {
        let kinds = if n.is_multiple_of(5) { usize::MAX } else { 3 };
        calls(secret, n).into_iter().take(kinds).collect::<Vec<_>>()
    };
    canaries().iter().enumerate().flat_map(of).collect()
}

#[test]
#[cfg(feature = "serve")]
fn no_canary_leaves_the_server() {
    let mut home = Home::new();
    let init = ["init", "--generate-key", "k", "--policy", "strict"];
    assert_eq!(home.run(&[&init[..], &["--store", "s"]].concat(), "").0, 0);
    let new = ["token", "create", "--label", "x", "--tenants", "t"];
    let token = home.on_store(&new, "").1.trim().to_owned();
    let mut server = home
        .command(&[&["serve"], ON_STORE].concat())
        .stderr(fs::File::create(home.path("log")).unwrap())
        .spawn()
        .unwrap();
    // Its first line says that it listens; a poll, because a file cannot be waited for.
    while !fs::read_to_string(home.path("log")).unwrap().contains('\n') {
        assert!(server.try_wait().unwrap().is_none(), "the server ended");
        std::thread::yield_now();
    }
    let send = |home: &mut Home, path: &str, token: &str, more: &str, body: &str| {
        let mut connection = UnixStream::connect(home.path("s/http.sock")).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{more}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        home.ear.hears("an answer of the server", &answer);
        String::from_utf8_lossy(&answer).contains("[REDACTED:")
    };
    let memory = "/v1/tenants/t/memory";
    let mut removed = 0;
    for call in some_calls() {
        removed += usize::from(send(&mut home, memory, &token, "", &call.to_string()));
    }
    assert!(removed >= CANARIES, "{removed}");
    for secret in canaries() {
        let elsewhere = format!("/v1/tenants/{secret}/memory");
        send(&mut home, &elsewhere, &token, "", "{}");
        send(&mut home, memory, &secret, "", "{}");
        let more = format!("Idempotency-Key: {secret}\r\nStrongroom-Session: {secret}\r\n");
        send(&mut home, memory, &token, &more, &secret);
    }
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let ended = server.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    home.ear.hears("stdout of the server", &ended.stdout);
    home.ear.searches("what the server left", home.dir.path());
}

#[test]
#[cfg(feature = "mcp")]
fn no_canary_leaves_an_mcp_session() {
    let mut home = Home::new();
    let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let mut lines = vec![
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    for (n, input) in some_calls().into_iter().enumerate() {
        let params = json!({ "name": "memory", "arguments": input });
        lines.push(
            json!({ "jsonrpc": "2.0", "id": n + 1, "method": "tools/call", "params": params }),
        );
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (_, said) = home.on_store(&["mcp", "--create", "--tenant", "t"], &input);
    assert!(said.matches("[REDACTED:").count() >= CANARIES, "{said}");
    home.ear.searches("what the session left", home.dir.path());
}

/// With every canary in its memory, stored and removed, and cores allowed by the shell.
#[test]
fn no_canary_leaves_a_session_that_crashes() {
    let home = Home::new();
    let mut command = Command::new("sh");
    let words = [&["exec", "--create", "--tenant", "t"], ON_STORE].concat();
    command
        .args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_strongroom"))
        .args(words)
        .current_dir(home.dir.path())
        .env("TMPDIR", home.path("tmp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut session = command.spawn().unwrap();
    let mut stdin = session.stdin.take().unwrap();
    let mut stdout = BufReader::new(session.stdout.take().unwrap());
    for (n, secret) in canaries().iter().enumerate() {
        writeln!(stdin, "{}", calls(secret, n)[0]).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("removed by policy"), "{answer}");
    }
    kill_process(Pid::from_child(&session), Signal::ABORT).unwrap();
    let status = session.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!status.core_dumped());
    let _gone = fs::remove_file(home.path("s/control"));
    // The key that the session made is a file here, and no canary.
    home.ear.searches("what the crash left", home.dir.path());
}

#[test]
fn a_panic_of_the_command_tells_nothing() {
    let mut ear = Ear::new();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "panics_as_the_command_would",
            "--nocapture",
            "--ignored",
        ])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "full")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // The place in the source is all that it tells.
    assert!(
        said.contains("an internal check failed at ") && said.contains("tests/canary.rs:"),
        "{said}"
    );
    assert!(!said.contains("tripped over"), "{said}");
    ear.hears("stdout of a panic", &output.stdout);
    ear.hears("stderr of a panic", &output.stderr);
}

#[test]
#[ignore = "run as a child by the test above"]
fn panics_as_the_command_would() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    strongroom::cli::report_panics_without_data();
    let ended = std::panic::catch_unwind(|| panic!("tripped over {}", canaries().join(" ")));
    assert!(ended.is_err());
}
