//! The `strongroom` command as a process: what it prints, what it leaves on disk, how it ends.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;
const CREATE: &str = r#"{"command":"create","path":"/memories/a.md","file_text":"one\n"}"#;
const KEEP: &str = "Without this key nothing in the store can ever be read. Keep a copy elsewhere.";

/// A directory with a store `s` and its key file `k`, both possibly still to be made.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a store of one tenant, `a/b`, that holds one file.
    fn with_store() -> Self {
        let home = Self::new();
        let made = home.run("init --store s --generate-key k", "");
        assert_eq!(code(&made), 0, "{made:?}");
        let filled = home.run("exec --store s --key-file k --tenant a/b", CREATE);
        assert_eq!(code(&filled), 0, "{filled:?}");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, program: impl AsRef<OsStr>, words: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        command
    }

    fn strongroom(&self, words: &str) -> Command {
        self.command(env!("CARGO_BIN_EXE_strongroom"), words)
    }

    fn run(&self, words: &str, input: impl AsRef<[u8]>) -> Output {
        finish(self.strongroom(words), input.as_ref())
    }

    /// With `--store s --key-file k` added.
    fn on_store(&self, words: &str) -> Output {
        self.run(&format!("{words} --store s --key-file k"), "")
    }
}

/// Runs a command with this input to its end.
fn finish(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The child may end without having read it.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _written = writer.join().unwrap();
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Every line of the output as JSON.
fn results(output: &Output) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap();
    out(output).lines().map(line).collect()
}

/// Ended with this code, said nothing on stdout, and said on stderr what and what to do.
fn assert_failed(output: &Output, expected: i32, what: &str) {
    assert_eq!(code(output), expected, "{output:?}");
    assert_eq!(out(output), "");
    let lines: Vec<&str> = err(output).lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(lines[0].starts_with("strongroom: failed to "), "{output:?}");
    assert!(lines[0].contains(what), "{output:?}");
    assert!(lines[1].ends_with('.'), "{output:?}");
}

/// An `exec` that is kept open.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(home: &Home) -> Self {
        Self::start_with(home, "")
    }

    fn start_with(home: &Home, flags: &str) -> Self {
        let mut child = home
            .strongroom(&format!("exec --store s --key-file k {flags}"))
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    fn call(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer
    }
}

#[test]
fn init_makes_a_store_and_a_key_once() {
    let home = Home::new();
    let made = home.run("init --store s --generate-key k --policy strict", "");
    assert_eq!(code(&made), 0, "{made:?}");
    assert!(out(&made).contains(home.path("k").to_str().unwrap()));
    assert!(out(&made).lines().any(|line| line == KEEP));
    let again = home.run("init --store s --generate-key k2", "");
    assert_failed(&again, 2, "the directory is not empty");
    assert!(
        !home.path("k2").exists(),
        "no key for a store that is not made"
    );
    assert_failed(
        &home.run("init --store s2 --generate-key k", ""),
        7,
        "exists already",
    );
    assert!(!home.path("s2").exists());
    assert!(out(&home.on_store("policy show")).contains("max_files = 2000"));
}

#[test]
fn init_refuses_before_it_writes_a_key() {
    let home = Home::new();
    for (words, expected, what) in [
        (
            "init --store s --generate-key k --policy ./none.toml",
            3,
            "cannot be read",
        ),
        (
            "init --store none/s --generate-key k",
            4,
            "there is no directory none",
        ),
        ("init --store s --generate-key s/k", 7, "inside the store"),
        ("init --store s --key-file k", 7, "cannot open k"),
        ("init --store s", 7, "find the key"),
    ] {
        assert_failed(&home.run(words, ""), expected, what);
        assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn a_key_that_was_written_before_a_failure_is_named() {
    if !Path::new("/proc/self").exists() {
        return; // Needs a directory where even root can make nothing.
    }
    let home = Home::new();
    let failed = home.run("init --store /proc/strongroom-test --generate-key k", "");
    assert_failed(&failed, 1, "use the store's files");
    let key = home.path("k");
    let named = format!("The new key file {} was written before that", key.display());
    assert!(err(&failed).contains(&named), "{failed:?}");
    assert!(key.exists());
}

#[test]
fn init_prints_json() {
    let home = Home::new();
    let made = home.run("init --store s --generate-key k --json", "");
    assert_eq!(json(&made)["key_file"], home.path("k").to_str().unwrap());
    assert!(err(&made).contains(KEEP));
}

#[test]
fn exec_answers_every_line_that_is_not_blank() {
    let home = Home::with_store();
    let mut input = Vec::new();
    let tool_use =
        format!(r#"{{"type":"tool_use","id":"toolu_1","name":"memory","input":{VIEW}}}"#);
    let huge = format!(
        r#"{{"type":"tool_use","id":"toolu_2","name":"memory","input":{{"command":"create","path":"/memories/h.md","file_text":"{}"}}}}"#,
        "x".repeat(3_000_000)
    );
    for line in [
        CREATE.as_bytes(),
        b"",
        b" \t\r",
        tool_use.as_bytes(),
        b"\xff\xfe",
        b"not json",
        huge.as_bytes(),
        br#"{"command":"view","path":"/memories/../x"}"#,
        br#"{"command":"view","path":"/memories/a.md"}"#,
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    input.pop();
    let done = home.run("exec --store s --key-file k --tenant other", &input);
    assert_eq!((code(&done), err(&done)), (0, ""));
    let results = results(&done);
    let content = |at: usize| results[at]["content"].as_str().unwrap();
    assert_eq!(results.len(), 7);
    assert_eq!(content(0), "File created successfully at: /memories/a.md");
    assert_eq!(results[0].get("tool_use_id"), None);
    assert_eq!(results[0].get("is_error"), None);
    assert_eq!(results[1]["tool_use_id"], "toolu_1");
    assert!(content(1).ends_with("\n4B\t/memories\n4B\t/memories/a.md"));
    assert_eq!(results[4]["tool_use_id"], "toolu_2");
    for at in [2, 3, 4, 5] {
        assert_eq!(results[at]["is_error"], true, "{at}");
        assert!(content(at).starts_with("Error: "), "{at}");
    }
    assert!(content(6).ends_with("     1\tone"));
}

#[test]
fn tenants_do_not_see_each_other() {
    let home = Home::with_store();
    let seen = |tenant: &str| {
        let done = home.run(
            &format!("exec --store s --key-file k --tenant {tenant}"),
            VIEW,
        );
        out(&done).contains("a.md")
    };
    assert!(seen("a/b"));
    assert!(!seen("a"));
    assert!(!seen("default"));
    let listed = json(&home.on_store("tenant list --json"));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["tenant"], "a/b");
    assert_eq!(listed[0]["bytes"], 4);
    let text = home.on_store("tenant list");
    assert!(out(&text).starts_with("TENANT  FILES  BYTES  CREATED "));
    assert!(out(&text).contains("\na/b         1      4  20"));
    assert_failed(
        &home.run("exec --store s --key-file k --tenant ../x", VIEW),
        2,
        "tenant's name",
    );
}

#[test]
fn a_read_only_exec_writes_nothing() {
    let home = Home::with_store();
    let before = fs::read(home.path("s/STATE")).unwrap();
    let input = format!("{CREATE}\n{CREATE}\n{VIEW}\n");
    let done = home.run("exec --store s --key-file k --tenant t --read-only", input);
    assert_eq!(code(&done), 0);
    let results = results(&done);
    assert_eq!(results[0]["is_error"], true);
    assert!(
        results[0]["content"]
            .as_str()
            .unwrap()
            .contains("only be read")
    );
    assert_eq!(results[2].get("is_error"), None);
    // Each kind of failure is told once, without data.
    assert_eq!(
        err(&done),
        "strongroom: failed to write: the store was opened read-only\n"
    );
    assert_eq!(fs::read(home.path("s/STATE")).unwrap(), before);
}

#[test]
fn create_makes_what_is_missing_once_and_never_a_second_key() {
    let home = Home::new();
    let words = "exec --create --store s --key-file k";
    let first = home.run(words, CREATE);
    assert_eq!(code(&first), 0, "{first:?}");
    assert!(err(&first).contains(KEEP));
    let key = fs::read(home.path("k")).unwrap();
    let second = home.run(words, VIEW);
    assert!(out(&second).contains("/memories/a.md"), "{second:?}");
    assert_eq!(err(&second), "");
    assert_eq!(fs::read(home.path("k")).unwrap(), key);

    fs::remove_file(home.path("k")).unwrap();
    assert_failed(&home.run(words, VIEW), 7, "cannot open k");
    assert!(!home.path("k").exists());
    // Damage is no reason either: what is left of the store still needs its key.
    fs::remove_file(home.path("s/keyring.a")).unwrap();
    fs::remove_file(home.path("s/keyring.b")).unwrap();
    fs::remove_file(home.path("s/STATE")).unwrap();
    assert_ne!(code(&home.run(words, VIEW)), 0);
    assert!(!home.path("k").exists());
}

#[test]
fn a_key_without_a_store_is_used_for_the_new_store() {
    let home = Home::with_store();
    fs::remove_dir_all(home.path("s")).unwrap();
    let key = fs::read(home.path("k")).unwrap();
    let made = home.run("exec --create --store s --key-file k", VIEW);
    assert_eq!(code(&made), 0, "{made:?}");
    assert!(err(&made).contains("created the store"));
    assert_eq!(fs::read(home.path("k")).unwrap(), key);
}

#[test]
fn a_closed_output_is_no_error() {
    let home = Home::with_store();
    let mut child = home
        .strongroom("exec --store s --key-file k")
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..20 {
        // Fails once the child has ended, which it may.
        let _written = writeln!(stdin, "{VIEW}");
    }
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((code(&ended), err(&ended)), (0, ""));

    for words in ["policy show --store s --key-file k", "completions bash"] {
        let mut child = home.strongroom(words).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((code(&ended), err(&ended)), (0, ""), "{words}");
    }
}

#[test]
fn a_full_disk_under_the_output_has_a_code_of_its_own() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return; // Linux only.
    };
    let home = Home::with_store();
    let mut command = home.strongroom("exec --store s --key-file k");
    command.stdout(full);
    assert_failed(&finish(command, VIEW.as_bytes()), 8, "no space left");
}

#[test]
fn without_a_control_socket_a_second_process_is_told_at_once_and_a_kill_frees_the_store() {
    let home = Home::with_store();
    let mut session = Session::start_with(&home, "--no-control");
    assert!(session.call(CREATE).contains("successfully"));
    let locked = home.run("exec --store s --key-file k", VIEW);
    assert_failed(
        &locked,
        6,
        &format!("locked by process {}", session.child.id()),
    );
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    let next = home.run("exec --store s --key-file k", VIEW);
    assert!(out(&next).contains("/memories/a.md"), "{next:?}");
}

#[test]
fn signals_close_the_store_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::with_store();
        let mut session = Session::start(&home);
        assert!(session.call(CREATE).contains("successfully"));
        let before = fs::read(home.path("s/STATE")).unwrap();
        kill_process(Pid::from_child(&session.child), signal).unwrap();
        let status = session.child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
        let after = fs::read(home.path("s/STATE")).unwrap();
        assert!(before != after, "marked as closed");
        assert_eq!(code(&home.on_store("verify")), 0);
    }
}

#[test]
fn a_crash_would_leave_no_core() {
    let home = Home::with_store();
    let mut session = Session::start(&home);
    session.call(VIEW);
    let Ok(limits) = fs::read_to_string(format!("/proc/{}/limits", session.child.id())) else {
        return; // Linux only.
    };
    let core = limits
        .lines()
        .find(|line| line.contains("core file"))
        .unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    drop(session.stdin);
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn nothing_is_readable_by_others_whatever_the_umask() {
    let home = Home::new();
    let bin = env!("CARGO_BIN_EXE_strongroom");
    let script = format!(
        "umask 000; {bin} init --store s --generate-key k && \
         {bin} exec --store s --key-file k && {bin} key add --generate-key k2 --store s --key-file k"
    );
    let mut command = home.command("sh", "-c");
    command.arg(script);
    let big = format!(
        r#"{{"command":"create","path":"/memories/d/big.md","file_text":"{}"}}"#,
        "some words\\n".repeat(20_000)
    );
    let done = finish(command, format!("{CREATE}\n{big}\n").as_bytes());
    assert_eq!(code(&done), 0, "{done:?}");
    let files = check_modes(home.0.path());
    assert!(files >= 8, "{files}");
}

/// Checks all that is below a directory, and counts the files.
fn check_modes(directory: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            files += check_modes(&path);
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
            files += 1;
        }
    }
    files
}

#[test]
fn verify_and_stats_show_totals() {
    let home = Home::with_store();
    let full = home.on_store("verify");
    assert_eq!(code(&full), 0, "{full:?}");
    assert_eq!(
        out(&full),
        "tenants      1\ndirectories  1\nfiles        1\nbytes        4\nproblems     0\n"
    );
    let quick = home.on_store("verify --quick --read-only --json");
    assert_eq!(json(&quick)["quick"], true);
    assert_eq!(json(&quick)["files"], 1);
    assert_eq!(json(&quick)["problems"], Value::Array(Vec::new()));
    let stats = json(&home.on_store("stats --json"));
    assert_eq!((&stats["files"], &stats["bytes"]), (&1.into(), &4.into()));
    let text = home.on_store("stats");
    assert!(out(&text).contains("pending removals"));
}

#[test]
fn damage_ends_with_its_own_code_and_a_list() {
    let home = Home::with_store();
    for folder in fs::read_dir(home.path("s/keys")).unwrap() {
        fs::remove_dir_all(folder.unwrap().path()).unwrap();
    }
    let found = home.on_store("verify");
    assert_eq!(code(&found), 5, "{found:?}");
    assert!(out(&found).contains("problems     1"), "{found:?}");
    assert!(out(&found).contains("its key file is missing"), "{found:?}");
    assert!(err(&found).starts_with("strongroom: failed to verify the store: 1 problem\n"));
    let as_json = home.on_store("verify --json");
    assert_eq!(code(&as_json), 5);
    assert_eq!(json(&as_json)["problems"].as_array().unwrap().len(), 1);
    assert_failed(
        &home.run("exec --store s --key-file k --tenant a/b", VIEW),
        7,
        "key file is missing",
    );

    fs::remove_file(home.path("s/STATE")).unwrap();
    assert_failed(&home.on_store("stats"), 5, "STATE file is missing");
}

#[test]
fn the_policy_that_is_set_binds_from_then_on() {
    let home = Home::with_store();
    fs::write(
        home.path("p.toml"),
        "schema = 1\n[paths]\nread_only = [\"/memories/**\"]\n",
    )
    .unwrap();
    let change = "paths.read_only: [\"/memories/policies/**\"] -> [\"/memories/**\"]\n".to_owned();
    let dry = home.on_store("policy set p.toml --dry-run");
    assert_eq!(out(&dry), change.clone() + "A dry run: nothing changed.\n");
    assert_eq!(out(&home.on_store("policy show --diff p.toml")), change);
    let set = home.on_store("policy set ./p.toml");
    assert_eq!(out(&set), change + "This policy is in force now.\n");
    assert_eq!(out(&home.on_store("policy show --diff p.toml")), "");
    let again = home.on_store("policy set p.toml --json");
    assert_eq!(json(&again)["set"], false);
    let refused = home.run("exec --store s --key-file k", CREATE);
    assert!(out(&refused).contains("it is read-only"), "{refused:?}");
    let shown = json(&home.on_store("policy show --json"));
    assert_eq!(shown["paths"]["read_only"][0], "/memories/**");
    let diff = json(&home.on_store("policy show --diff default --json"));
    assert_eq!(diff[0]["key"], "paths.read_only");
}

#[test]
fn a_policy_that_does_not_load_points_at_its_line() {
    let home = Home::with_store();
    fs::write(home.path("p.toml"), "schema = 1\n[limits]\nmax_filse = 1\n").unwrap();
    let checked = home.run("policy check p.toml", "");
    assert_failed(&checked, 3, "p.toml:3:1: unknown key");
    let as_json = home.run("policy check p.toml --json", "");
    assert_eq!(code(&as_json), 3);
    assert_eq!(
        (&json(&as_json)["ok"], &json(&as_json)["line"]),
        (&false.into(), &3.into())
    );
    assert_failed(&home.on_store("policy set p.toml"), 3, "p.toml:3:1");
    assert_failed(&home.run("policy check stric", ""), 3, "did you mean");
    assert!(out(&home.run("policy check strict", "")).starts_with("ok: "));
    assert_eq!(
        json(&home.run("policy check strict --json", ""))["ok"],
        true
    );
}

#[test]
fn keys_are_added_listed_and_removed() {
    let home = Home::with_store();
    let mut add = home.strongroom("key add --generate-key k2 --store s --key-file k");
    add.args(["--label", "in the safe"]);
    let added = finish(add, b"");
    assert!(out(&added).starts_with("Added key slot "), "{added:?}");
    let slots = json(&home.on_store("key list --json"));
    assert_eq!(slots.as_array().unwrap().len(), 2);
    assert_eq!(slots[1]["label"], "in the safe");
    assert!(out(&home.on_store("key list")).contains("  in the safe\n"));
    let first = slots[0]["id"].as_u64().unwrap();

    let with_new = |words: &str| home.run(&format!("{words} --store s --key-file k2"), "");
    let removed = with_new(&format!("key remove {first}"));
    assert_eq!(code(&removed), 0, "{removed:?}");
    assert!(out(&removed).contains("still opens any older copy"));
    assert_failed(&home.on_store("stats"), 7, "no key slot accepts it");
    assert_eq!(code(&with_new("stats")), 0);
    assert_failed(&with_new("key remove 99"), 4, "no key slot 99");
    let last = slots[1]["id"].as_u64().unwrap();
    assert_failed(&with_new(&format!("key remove {last}")), 7, "last key slot");
    // A store that does not open leaves no new key file behind.
    assert_failed(
        &home.on_store("key add --generate-key k3"),
        7,
        "no key slot accepts it",
    );
    assert!(!home.path("k3").exists());
}

#[test]
fn passphrase_files_and_key_commands_open_the_store_too() {
    let home = Home::with_store();
    let passphrase = home.path("pass phrase");
    fs::write(&passphrase, "correct horse\n").unwrap();
    fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
    let mut add = home.strongroom("key add --store s --key-file k");
    add.arg("--new-passphrase-file").arg(&passphrase);
    let added = finish(add, b"");
    assert_eq!(code(&added), 0, "{added:?}");
    let mut by_passphrase = home.strongroom("stats --store s --passphrase-file");
    by_passphrase.arg(&passphrase);
    let opened = finish(by_passphrase, b"");
    assert_eq!(code(&opened), 0, "{opened:?}");

    let made = home.run("init --store s2 --key-command", "");
    assert_eq!(code(&made), 2, "{made:?}");
    fs::copy(home.path("k"), home.path("key line")).unwrap();
    let by_command = |words: &str, text: &str| {
        let mut command = home.strongroom(words);
        command.arg("--key-command").arg(text);
        finish(command, b"")
    };
    let made = by_command("init --store s2", "cat 'key line'");
    assert_eq!(code(&made), 0, "{made:?}");
    let opened = by_command("stats --store s2", "  cat \"key line\" ");
    assert_eq!(code(&opened), 0, "{opened:?}");
    assert_failed(
        &by_command("stats --store s2", "cat 'k"),
        2,
        "a quote is not closed",
    );
    assert_failed(&by_command("stats --store s2", "false"), 7, "exit code 1");
}

#[test]
fn variables_name_store_and_key_and_flags_win() {
    let home = Home::with_store();
    let with = |variables: &[(&str, &str)], words: &str| {
        let mut command = home.strongroom(words);
        command.envs(variables.iter().copied());
        finish(command, b"")
    };
    let store = ("STRONGROOM_STORE", "s");
    let key = ("STRONGROOM_KEY_FILE", "k");
    let other = ("STRONGROOM_PASSPHRASE_FILE", "none");
    let command = ("STRONGROOM_KEY_COMMAND", "cat k");
    assert_eq!(code(&with(&[store, key], "stats")), 0);
    assert_eq!(code(&with(&[store, command], "stats")), 0);
    assert_failed(&with(&[store, key, other], "stats"), 2, "more than one of");
    assert_eq!(code(&with(&[store, other], "stats --key-file k")), 0);
    assert_failed(&with(&[store, other], "stats"), 7, "cannot open none");
    let both = home.run("stats --store s --key-file k --passphrase-file p", "");
    assert_eq!(code(&both), 2);
}

#[test]
fn every_exit_code_can_be_told_apart() {
    // 3, 5, 6 and 8 have tests of their own.
    let home = Home::with_store();
    fs::write(home.path("file"), "").unwrap();
    assert_failed(
        &home.run("stats --store file/s --key-file k", ""),
        1,
        "use the store's files",
    );
    for words in [
        "",
        "nonsense",
        "exec --key-file k",
        "exec --store s --create --read-only",
    ] {
        let wrong = home.run(words, "");
        assert_eq!((code(&wrong), out(&wrong)), (2, ""), "{words}");
    }
    assert_failed(
        &home.run("stats --store none --key-file k", ""),
        4,
        "there is none",
    );
    assert_failed(&home.run("stats --store s", ""), 7, "find the key");
    fs::set_permissions(home.path("k"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_failed(&home.on_store("stats"), 7, "mode 0644");
}

#[test]
fn help_and_completions_are_answers() {
    let home = Home::new();
    for words in [
        "--help",
        "init --help",
        "exec --help",
        "verify --help",
        "redact --help",
        "rescan --help",
        "stats --help",
        "tenant --help",
        "tenant list --help",
        "policy --help",
        "policy show --help",
        "policy check --help",
        "policy set --help",
        "key --help",
        "key list --help",
        "key add --help",
        "key remove --help",
        "completions --help",
    ] {
        let help = home.run(words, "");
        assert_eq!((code(&help), err(&help)), (0, ""), "{words}");
        assert!(out(&help).contains("\nExample:\n  "), "{words}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&format!("completions {shell}"), "");
        assert!(out(&script).contains("strongroom"), "{shell}");
    }
}

#[test]
fn the_python_example_runs_as_it_is() {
    let home = Home::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_strongroom"))
        .parent()
        .unwrap();
    let mut path = std::ffi::OsString::from(bin);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python_stdio.py");
    let mut command = home.command("python3", "");
    command
        .args([example, "./memory", "./memory.key"])
        .env("PATH", path);
    if Command::new("python3").arg("--version").output().is_err() {
        return; // No Python here.
    }
    let done = finish(command, b"");
    assert_eq!(code(&done), 0, "{done:?}");
    assert_eq!(results(&done)[1]["tool_use_id"], "toolu_02");
    assert!(out(&done).contains("Likes tea"));
}
