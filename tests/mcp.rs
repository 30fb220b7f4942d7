//! `strongroom mcp`, line by line. The official client's session is tests/mcp/check.
#![cfg(feature = "mcp")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

fn command(home: &TempDir, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
    command
        .args(words.split_whitespace())
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
        command.env_remove(name);
    }
    command
}

fn mcp(home: &TempDir, words: &str) -> Command {
    command(home, &format!("mcp --store s --key-file k {words}"))
}

fn hello() -> [Value; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let about =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ]
}

fn call(id: i64, input: &Value) -> Value {
    let params = json!({ "name": "memory", "arguments": input });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn create(path: &str) -> Value {
    json!({ "command": "create", "path": path, "file_text": "one\n" })
}

/// A client that asks and waits.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: i64,
}

impl Client {
    fn new(home: &TempDir, words: &str) -> Self {
        let mut child = mcp(home, words).spawn().unwrap();
        let mut client = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 1,
        };
        for message in hello() {
            writeln!(client.stdin, "{message}").unwrap();
        }
        assert_eq!(client.read()["result"]["serverInfo"]["name"], "strongroom");
        client
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect(&line)
    }

    /// Text and whether it is an error.
    fn call(&mut self, input: &Value) -> (String, bool) {
        writeln!(self.stdin, "{}", call(self.next, input)).unwrap();
        let answer = self.read();
        assert_eq!(answer["id"], self.next);
        self.next += 1;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        (text.to_owned(), result["isError"] == true)
    }
}

/// All lines at once, then the end of the input.
fn at_once(home: &TempDir, words: &str, lines: &[Value]) -> (Output, Vec<Value>) {
    let mut child = mcp(home, words).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout.clone()).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let answers = answers.collect();
    (done, answers)
}

#[test]
fn every_call_before_the_end_of_the_input_is_answered_in_its_order() {
    let home = tempfile::tempdir().unwrap();
    let mut lines = hello().to_vec();
    lines.push(call(1, &create("/memories/a.md")));
    for id in 2..40 {
        let (line, text) = (id - 1, format!("{id}\n"));
        lines.push(call(
            id,
            &json!({ "command": "insert", "path": "/memories/a.md", "insert_line": line, "insert_text": text }),
        ));
    }
    let (done, answers) = at_once(&home, "--tenant a --create", &lines);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(answers.len(), 40);
    assert!(
        answers
            .iter()
            .all(|answer| answer["result"]["isError"] != true)
    );
    let (done, answers) = at_once(&home, "--tenant a", &[]);
    assert!(done.status.success() && answers.is_empty(), "{done:?}");
}

#[test]
fn several_clients_use_one_store_and_go_on_when_its_holder_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let mut holder = Client::new(&home, "--tenant a --create --actor first");
    let mut other = Client::new(&home, "--tenant a --actor second");
    assert!(!holder.call(&create("/memories/a.md")).1);
    assert_eq!(
        other.call(&create("/memories/a.md")),
        ("Error: File /memories/a.md already exists".to_owned(), true)
    );
    assert!(!other.call(&create("/memories/b.md")).1);
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    let view = json!({ "command": "view", "path": "/memories" });
    let (text, is_error) = other.call(&view);
    assert!(
        !is_error && text.contains("a.md") && text.contains("b.md"),
        "{text}"
    );
    assert!(!other.call(&create("/memories/c.md")).1);
    drop(other.stdin);
    assert!(other.child.wait().unwrap().success());
}

#[test]
fn a_reader_is_refused_all_but_view() {
    let home = tempfile::tempdir().unwrap();
    drop(Client::new(&home, "--tenant a --create"));
    let mut reader = Client::new(&home, "--tenant a --read-only");
    let (text, is_error) = reader.call(&create("/memories/a.md"));
    assert!(is_error && text.contains("can only be read"), "{text}");
    let view = json!({ "command": "view", "path": "/memories" });
    assert!(!reader.call(&view).1);
    drop(reader.stdin);
    assert!(reader.child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_served_is_said_in_two_lines() {
    let home = tempfile::tempdir().unwrap();
    let made = command(&home, "init --store s --generate-key k")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::copy(home.path().join("k"), home.path().join("other")).unwrap();
    for (words, code) in [
        ("mcp --store s --key-file k", 2),
        ("mcp --store s --key-file k --tenant a//b", 2),
        ("mcp --store none --key-file k --tenant a", 4),
        ("mcp --store s --key-file none --tenant a", 7),
        ("mcp --store s --key-file none --tenant a --create", 7),
    ] {
        let refused = command(&home, words).output().unwrap();
        assert_eq!(refused.status.code(), Some(code), "{words}: {refused:?}");
        assert!(refused.stdout.is_empty());
        if code != 2 {
            let lines = refused.stderr.iter().filter(|byte| **byte == b'\n');
            assert_eq!(lines.count(), 2, "{words}: {refused:?}");
        }
    }
}
