//! What is in the memory of the command's process stays there: no core, no swap, no other process.
#![cfg(all(feature = "cli", target_os = "linux"))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_strongroom");
const CREATE: &str = r#"{"command":"create","path":"/memories/a.md","file_text":"one\n"}"#;

/// A session with a store of its own, or any line in, line out command.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    /// `before` is put before the program's name: a command that runs it in another way.
    fn start(home: &TempDir, before: &[&str], words: &str) -> Self {
        let all: Vec<&str> = before
            .iter()
            .copied()
            .chain([PROGRAM])
            .chain(words.split_whitespace())
            .collect();
        let mut command = Command::new(all[0]);
        command
            .args(&all[1..])
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn exec(home: &TempDir, before: &[&str]) -> Self {
        let words = "exec --create --store s --key-file k --tenant t";
        Self::start(home, before, words)
    }

    fn call(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer
    }

    fn status(&self, name: &str) -> String {
        let path = format!("/proc/{}/status", self.child.id());
        field(&fs::read_to_string(path).unwrap(), name)
    }

    /// Ends it in order. Returns what it said on stderr.
    fn end(self) -> String {
        drop(self.stdin);
        let done = self.child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    }
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

/// Whether this process is above the limit of locked memory, in the system's own name space.
fn may_lock() -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = u64::from_str_radix(&field(&status, "CapEff"), 16).unwrap();
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    let own = users.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"];
    own && effective & CAP_IPC_LOCK != 0
}

fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

#[test]
fn a_crash_leaves_no_core_where_another_program_leaves_one() {
    let home = tempfile::tempdir().unwrap();
    let allowed = "ulimit -c unlimited 2>/dev/null; ";
    let other = Command::new("sh")
        .args(["-c", &format!("{allowed} kill -ABRT $$")])
        .current_dir(home.path())
        .status()
        .unwrap();
    if !other.core_dumped() {
        eprintln!("this system writes no cores at all, so the rest shows little");
    }
    let before = fs::read_dir(home.path()).unwrap().count();
    let run = format!("{allowed} exec \"$0\" \"$@\"");
    let mut session = Session::exec(&home, &["sh", "-c", &run]);
    assert!(session.call(CREATE).contains("successfully"));
    kill_process(Pid::from_child(&session.child), Signal::ABORT).unwrap();
    let status = session.child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!status.core_dumped());
    // The store and its key file.
    let after = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(after, before + 2);
}

#[test]
fn every_page_is_locked_where_the_system_allows_it() {
    let home = tempfile::tempdir().unwrap();
    let mut session = Session::exec(&home, &[]);
    assert!(session.call(CREATE).contains("successfully"));
    let (locked, all) = (session.status("VmLck"), session.status("VmSize"));
    let said = session.end();
    if may_lock() {
        let kib = |text: &str| text.trim_end_matches(" kB").parse::<u64>().unwrap();
        // What is mapped for devices and guards is never locked.
        assert!(kib(&locked) * 2 > kib(&all), "{locked} of {all}");
        assert!(!said.contains("swap"), "{said}");
    } else {
        eprintln!("this process may not lock its memory: {locked} are locked");
    }
}

/// A limit would make allocations fail later, so nothing is locked under one.
#[test]
fn where_the_system_refuses_there_is_one_warning_and_all_works() {
    let home = tempfile::tempdir().unwrap();
    let without = [
        "setpriv",
        "--bounding-set=-ipc_lock",
        "--inh-caps=-ipc_lock",
        "prlimit",
        "--memlock=1048576:1048576",
    ];
    let before = if may_lock() {
        &without[..]
    } else {
        &without[3..]
    };
    let can_be_refused = Command::new(before[0])
        .args(&before[1..])
        .arg("true")
        .output()
        .is_ok_and(|done| done.status.success());
    if !can_be_refused {
        eprintln!("there is no setpriv and prlimit here, or they may not");
        return;
    }
    let mut session = Session::exec(&home, before);
    for number in 0..20 {
        let text = "a line of a file\\n".repeat(5_000);
        let path = format!("/memories/{number}.md");
        let call = format!(r#"{{"command":"create","path":"{path}","file_text":"{text}"}}"#);
        let answer = session.call(&call);
        assert!(answer.contains("successfully"), "{answer}");
    }
    assert_eq!(session.status("VmLck"), "0 kB");
    let limits = fs::read_to_string(format!("/proc/{}/limits", session.child.id())).unwrap();
    let limit = limits
        .lines()
        .find(|line| line.contains("locked memory"))
        .unwrap();
    assert!(limit.contains("1048576"), "as it was: {limit}");
    let said = session.end();
    let warnings = said.matches("warning: the system does not let").count();
    assert_eq!(warnings, usize::from(has_swap()), "{said}");
}

/// The files under /proc of a process that may not be dumped belong to root.
#[test]
fn another_process_of_the_same_user_may_not_look_into_it() {
    let home = tempfile::tempdir().unwrap();
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let owner = |before: &[&str]| {
        let mut session = Session::start(&home, before, "redact --json-lines");
        let answer = session.call(r#"{"text":"x"}"#);
        let environ = format!("/proc/{}/environ", session.child.id());
        let owner = fs::metadata(environ).unwrap().uid();
        session.end();
        (answer, owner)
    };
    let is_root = rustix::process::geteuid().is_root();
    let may_change = is_root
        && Command::new(nobody[0])
            .args(&nobody[1..])
            .args([PROGRAM, "--version"])
            .output()
            .is_ok_and(|done| done.status.success());
    if is_root && !may_change {
        eprintln!("no process of another user can be started here");
        return;
    }
    let before = if is_root { &nobody[..] } else { &[] };
    let (answer, owner) = owner(before);
    assert!(answer.contains("x"), "{answer}");
    assert_eq!(owner, 0);
}
