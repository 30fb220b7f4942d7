//! Handles that share a store across processes: `strongroom::attach`, with `strongroom exec` as
//! the other process.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use strongroom::attach::{Attached, Failure, Memory, Options, Role};
use strongroom::key::KeySource;
use strongroom::wire::Content;
use strongroom::{Code, Vault, generate_key_file, policy};
use tempfile::TempDir;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and what follows it";
const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;
const HOLDER: Role = Role::Holder { is_serving: true };

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.options().create(true).open().unwrap().close().unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn options(&self) -> Options {
        Options::new(self.path("s")).key(KeySource::KeyFile(self.path("k")))
    }

    fn attach(&self) -> Attached {
        self.options().open().unwrap()
    }

    /// A process that holds the store, or works through the one that does. Started while
    /// another is about to open the store, it finds it locked and nobody to talk to yet.
    fn exec(&self) -> Exec {
        loop {
            let mut exec = Exec::spawn(self, "");
            if exec.call(VIEW).contains("/memories") {
                return exec;
            }
            assert_eq!(exec.child.wait().unwrap().code(), Some(6));
        }
    }
}

struct Exec {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Exec {
    fn spawn(home: &Home, more: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_strongroom"))
            .args("exec --store s --key-file k --tenant a/b".split(' '))
            .args(more.split_whitespace())
            .current_dir(home.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn call(&mut self, line: &str) -> String {
        // It may have ended by itself.
        let _written = writeln!(self.stdin.as_mut().unwrap(), "{line}");
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer
    }

    fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn memory(store: &Attached) -> Memory {
    store.tenant("a/b", Some("test"), None).unwrap()
}

fn create(path: &str, text: &str) -> String {
    json!({"command": "create", "path": path, "file_text": text}).to_string()
}

fn insert(path: &str, text: &str) -> String {
    json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": text}).to_string()
}

/// What the model reads of an answer that must not be a failure of the store.
fn text(memory: &Memory, input: &str) -> String {
    let answer = memory.execute(input);
    assert!(answer.failure.is_none(), "{:?}", answer.failure);
    answer.reply.as_text().unwrap().to_owned()
}

fn code<T>(opened: Result<T, Failure>) -> Code {
    opened.err().expect("refused").code
}

#[test]
fn handles_of_one_process_share_the_store_and_the_last_one_closes_it() {
    let home = Home::new();
    let first = home.attach();
    fs::create_dir(home.path("d")).unwrap();
    let other_name = Options::new(home.path("d/../s")).key(KeySource::KeyFile(home.path("k")));
    let second = other_name.open().unwrap();
    assert_eq!((first.role(), second.role()), (HOLDER, HOLDER));
    text(&memory(&first), &create("/memories/a.md", "one\n"));
    let of_first = memory(&first);
    first.close().unwrap();
    assert_eq!(of_first.execute(VIEW).failure.unwrap().code, Code::Other);
    assert_eq!(first.role(), Role::Detached);
    first.close().unwrap();
    let of_second = memory(&second);
    assert!(text(&of_second, VIEW).contains("/memories/a.md"));
    drop(second);
    // A tenant's handle keeps the store open by itself.
    assert!(text(&of_second, VIEW).contains("/memories/a.md"));
    assert!(home.path("s/control").exists());
    drop(of_second);
    assert!(!home.path("s/control").exists());
    let mut exec = Exec::spawn(&home, "--no-control");
    assert!(exec.call(VIEW).contains("/memories/a.md"));
}

#[test]
fn another_key_opens_no_second_handle_and_no_way_through_the_holder() {
    let home = Home::new();
    generate_key_file(home.path("other")).unwrap();
    let wrong = || Options::new(home.path("s")).key(KeySource::KeyFile(home.path("other")));
    let here = home.attach();
    assert_eq!(code(wrong().open()), Code::Key);
    here.close().unwrap();
    let exec = home.exec();
    assert_eq!(code(wrong().open()), Code::Key);
    exec.end();
    assert_eq!(code(wrong().create(true).open()), Code::Key);
}

#[test]
fn a_store_is_made_with_its_key_and_a_lost_key_is_no_reason_for_a_new_one() {
    let home = Home(tempfile::tempdir().unwrap());
    assert_eq!(code(home.options().open()), Code::NotFound);
    let made = home.options().create(true).open().unwrap();
    assert_eq!(made.new_key_file(), Some(home.path("k").as_path()));
    made.close().unwrap();
    let again = home.options().create(true).open().unwrap();
    assert_eq!(again.new_key_file(), None);
    again.close().unwrap();
    fs::remove_file(home.path("k")).unwrap();
    assert_eq!(code(home.options().create(true).open()), Code::Key);
    assert!(!home.path("k").exists());
}

#[test]
fn a_guest_gets_what_the_holder_would() {
    let home = Home::new();
    let calls = [
        create("/memories/a.md", "one\ntwo\n"),
        create("/memories/a.md", "again\n"),
        create("/memories/c.md", "the password is Xk29-hunter2-pw\n"),
        insert("/memories/a.md", "zero"),
        json!({"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2"})
            .to_string(),
        json!({"command": "view", "path": "/memories/a.md", "view_range": [2, 2]}).to_string(),
        json!({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})
            .to_string(),
        json!({"command": "delete", "path": "/memories/none.md"}).to_string(),
        json!({"command": "view", "path": "/etc/passwd"}).to_string(),
        json!({"type": "tool_use", "id": "toolu_1", "name": "memory",
            "input": {"command": "view", "path": "/memories/b.md"}})
        .to_string(),
        "no json\nat all".to_owned(),
        VIEW.to_owned(),
    ];
    let run = |memory: &Memory| {
        let mut answers: Vec<String> = calls
            .iter()
            .map(|call| memory.execute(call).to_json())
            .collect();
        let put = memory.put_bytes("/memories/p.png", PNG);
        answers.push(put.to_json());
        let seen = memory.execute(r#"{"command":"view","path":"/memories/p.png"}"#);
        assert!(matches!(&seen.reply.content, Content::Image { data, .. } if data == PNG));
        answers.push(seen.to_json());
        answers.push(memory.clear().to_json());
        answers.push(memory.execute(VIEW).to_json());
        answers
    };
    let here = home.attach();
    let alone = run(&memory(&here));
    here.close().unwrap();
    let exec = home.exec();
    let guest = home.attach();
    assert_eq!(guest.role(), Role::Guest);
    assert!(guest.vault().unwrap().is_none());
    assert_eq!(run(&memory(&guest)), alone);
    let others = guest.tenant("c", None, None).unwrap();
    assert!(!text(&others, VIEW).contains(".md"));
    assert_eq!(code(guest.tenant("../x", None, None)), Code::Usage);
    exec.end();
}

#[test]
fn a_guest_outlives_its_holder_and_serves_the_next_one() {
    let home = Home::new();
    let exec = home.exec();
    let store = home.attach();
    let memory = memory(&store);
    text(&memory, &create("/memories/a.md", "one\n"));
    exec.end();
    text(&memory, &insert("/memories/a.md", "two\n"));
    assert_eq!(store.role(), HOLDER);
    let mut guest = home.exec();
    assert!(
        guest
            .call(&insert("/memories/a.md", "three\n"))
            .contains("edited")
    );
    drop(store);
    drop(memory);
    guest.end();

    let killed = home.exec();
    let store = home.attach();
    let memory = store.tenant("a/b", None, None).unwrap();
    assert_eq!(store.role(), Role::Guest);
    killed.kill();
    assert_eq!(
        text(
            &memory,
            r#"{"command":"view","path":"/memories/a.md","view_range":[1,3]}"#
        ),
        "Here's the content of /memories/a.md with line numbers:\n     1\tthree\n     2\ttwo\n     3\tone"
    );
}

/// Holders come and go in order under two threads of a guest: each line that was acknowledged
/// is there once, and nothing is left to guess.
#[test]
fn holders_that_end_in_order_lose_and_repeat_nothing() {
    let home = Home::new();
    let first = home.exec();
    let store = home.attach();
    text(&memory(&store), &create("/memories/a.md", ""));
    let is_over = AtomicBool::new(false);
    let written = AtomicUsize::new(0);
    let mut holder = Some(first);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (store, is_over, written) = (&store, &is_over, &written);
            scope.spawn(move || {
                let memory = memory(store);
                for line in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    text(
                        &memory,
                        &insert("/memories/a.md", &format!("{writer}-{line}\n")),
                    );
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..6 {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 10 {
                thread::yield_now();
            }
            // The guest may become the holder in between; then this one is its guest.
            if let Some(holder) = holder.take() {
                holder.end();
            }
            holder = Some(home.exec());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drop(holder);
    let seen = text(
        &memory(&store),
        r#"{"command":"view","path":"/memories/a.md"}"#,
    );
    let mut lines: Vec<&str> = seen
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(lines.len(), written.load(Ordering::Relaxed));
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), written.load(Ordering::Relaxed));
}

#[test]
fn two_processes_that_write_one_file_lose_no_line() {
    let home = Home::new();
    let mut exec = home.exec();
    let store = home.attach();
    let guest = memory(&store);
    text(&guest, &create("/memories/a.md", ""));
    thread::scope(|scope| {
        scope.spawn(|| {
            for line in 0..150 {
                text(
                    &guest,
                    &insert("/memories/a.md", &format!("guest {line}\n")),
                );
            }
        });
        for line in 0..150 {
            let done = exec.call(&insert("/memories/a.md", &format!("holder {line}\n")));
            assert!(done.contains("has been edited"), "{done}");
        }
    });
    let seen = text(&guest, r#"{"command":"view","path":"/memories/a.md"}"#);
    assert_eq!(seen.lines().count(), 301);
    for line in 0..150 {
        for writer in ["guest", "holder"] {
            let line = format!("\t{writer} {line}");
            assert_eq!(seen.lines().filter(|seen| seen.ends_with(&line)).count(), 1);
        }
    }
}

#[test]
fn more_threads_than_connections_all_get_their_answers() {
    let home = Home::new();
    let exec = home.exec();
    let store = home.attach();
    thread::scope(|scope| {
        for thread in 0..24 {
            let store = &store;
            scope.spawn(move || {
                let memory = store.tenant(&format!("t/{thread}"), None, None).unwrap();
                for file in 0..4 {
                    let path = format!("/memories/{file}.md");
                    assert!(text(&memory, &create(&path, "x\n")).contains("success"));
                }
                assert!(text(&memory, VIEW).contains("/memories/3.md"));
            });
        }
    });
    assert_eq!(store.role(), Role::Guest);
    exec.end();
}

#[test]
fn whoever_serves_nothing_leaves_others_locked_out_until_it_ends() {
    let home = Home::new();
    let quiet = home.options().serve(false).open().unwrap();
    assert_eq!(quiet.role(), Role::Holder { is_serving: false });
    let mut locked = Exec::spawn(&home, "");
    assert_eq!(locked.child.wait().unwrap().code(), Some(6));
    // One handle that asks for it is enough.
    let serving = home.attach();
    assert_eq!(quiet.role(), HOLDER);
    home.exec().end();
    drop(quiet);
    drop(serving);
    let mut exec = Exec::spawn(&home, "--no-control");
    exec.call(VIEW);
    assert_eq!(code(home.options().open()), Code::Locked);
}

/// A holder that takes a call and ends without a word, as one that is killed in the middle.
struct DyingHolder {
    _lock: File,
    calls: thread::JoinHandle<Vec<Value>>,
}

impl DyingHolder {
    fn start(home: &Home, connections: usize) -> Self {
        let lock = File::options()
            .write(true)
            .open(home.path("s/LOCK"))
            .unwrap();
        lock.try_lock().unwrap();
        let listener = UnixListener::bind(home.path("s/control")).unwrap();
        // What it has of the store's keys, to answer with.
        let copy = home.path("copy");
        let copied = Command::new("cp")
            .arg("-r")
            .args([home.path("s"), copy.clone()])
            .status();
        assert!(copied.unwrap().success());
        let vault = Vault::builder().path(&copy).key_file(home.path("k")).open();
        let vault = vault.unwrap();
        let calls = thread::spawn(move || {
            let mut calls = Vec::new();
            for _ in 0..connections {
                let (mut connection, _) = listener.accept().unwrap();
                connection.write_all(b"strongroom-control-2\n").unwrap();
                connection.write_all(&[7; 32]).unwrap();
                let mut length = [0; 4];
                connection.read_exact(&mut length).unwrap();
                let mut rest = vec![0; 64 + u32::from_be_bytes(length) as usize];
                connection.read_exact(&mut rest).unwrap();
                connection.write_all(b"p\0\0\0\x20").unwrap();
                let asked = [[7; 32].as_slice(), rest.get(32..).unwrap()].concat();
                connection.write_all(&vault.answer_proof(&asked)).unwrap();
                connection.write_all(b"o\0\0\0\x06ready\n").unwrap();
                let mut line = String::new();
                BufReader::new(connection).read_line(&mut line).unwrap();
                calls.push(serde_json::from_str(&line).unwrap_or_default());
            }
            calls
        });
        Self { _lock: lock, calls }
    }

    /// What was asked of it. Afterwards nobody holds the store.
    fn end(self) -> Vec<Value> {
        self.calls.join().unwrap()
    }
}

#[test]
fn a_write_whose_holder_died_is_not_repeated_and_says_so() {
    let home = Home::new();
    let holder = DyingHolder::start(&home, 1);
    let store = home.attach();
    let memory = memory(&store);
    let block = json!({"type": "tool_use", "id": "toolu_9", "name": "memory",
        "input": {"command": "create", "path": "/memories/a.md", "file_text": "one\n"}});
    let answer = memory.execute(&block.to_string());
    assert_eq!(answer.tool_use_id.as_deref(), Some("toolu_9"));
    assert!(answer.reply.is_error);
    let said = answer.reply.as_text().unwrap();
    assert!(
        said.contains("unknown whether") && said.contains("view the path again"),
        "{said}"
    );
    assert!(answer.failure.is_some());
    assert_eq!(holder.end().len(), 1);
    assert_eq!(text(&memory, VIEW).lines().count(), 2);
    assert_eq!(store.role(), HOLDER);
}

#[test]
fn a_view_whose_holder_died_is_asked_again() {
    let home = Home::new();
    let holder = DyingHolder::start(&home, 2);
    let store = home.attach();
    let memory = memory(&store);
    thread::scope(|scope| {
        let viewing = scope.spawn(|| text(&memory, VIEW));
        let calls = holder.end();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0], calls[1]);
        assert_eq!(viewing.join().unwrap().lines().count(), 2);
    });
}

#[test]
fn a_guest_is_named_in_the_audit_log() {
    let home = Home(tempfile::tempdir().unwrap());
    let audited = policy::load_named_or_path("strict").unwrap();
    let made = home.options().create(true).policy(audited).open().unwrap();
    made.close().unwrap();
    let exec = home.exec();
    let store = home.attach();
    let memory = store.tenant("a/b", Some("nurse-7"), Some("s-42")).unwrap();
    text(&memory, &create("/memories/a.md", "one\n"));
    let shown = Command::new(env!("CARGO_BIN_EXE_strongroom"))
        .args("audit show --json --store s --key-file k --tenant a/b".split(' '))
        .current_dir(home.0.path())
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("nurse-7") && shown.contains("s-42"),
        "{shown}"
    );
    exec.end();
}

#[test]
fn what_is_held_stays_when_all_is_cleared_and_the_reply_says_so() {
    let home = Home::new();
    let store = home.attach();
    let memory = memory(&store);
    for path in ["/memories/a.md", "/memories/.b", "/memories/d/e/held.md"] {
        text(&memory, &create(path, "x\n"));
    }
    let vault = store.vault().unwrap().unwrap();
    let tenant = vault.tenant("a/b").unwrap();
    tenant
        .add_hold("/memories/d/e/held.md", "case 7", None)
        .unwrap();
    let cleared = memory.clear();
    assert!(cleared.reply.is_error && cleared.failure.is_none());
    let said = cleared.reply.as_text().unwrap();
    assert!(
        said.contains("1 of the entries of /memories stay") && said.contains("hold"),
        "{said}"
    );
    let left = text(&memory, VIEW);
    assert!(left.ends_with("/memories/d/e/"), "{left}");
    assert!(!left.contains("a.md"), "{left}");
    tenant.remove_hold("/memories/d/e/held.md").unwrap();
    assert_eq!(
        memory.clear().reply.as_text(),
        Some("All memory was cleared")
    );
}
