//! The control socket: while one process holds a store, the commands of others are done there.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail the test, and one says when it was skipped"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use strongroom::Vault;
use strongroom::clock::{Clock, ManualClock, SystemClock};
use tempfile::TempDir;

const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;
const CREATE: &str = r#"{"command":"create","path":"/memories/a.md","file_text":"one\n"}"#;
const ON_STORE: &str = "--store s --key-file k";
const GREETING: &[u8] = b"strongroom-control-2\n";
const OTHER_USER: u32 = 65_534;

/// A directory with a store `s` of one tenant, `a/b`, and its key file `k`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let made = home.run("init --store s --generate-key k", "");
        assert_eq!(code(&made), 0, "{made:?}");
        let filled = home.run(&format!("exec {ON_STORE} --tenant a/b"), CREATE);
        assert_eq!(code(&filled), 0, "{filled:?}");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn strongroom(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
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

    fn run(&self, words: &str, input: &str) -> Output {
        let mut child = self.strongroom(words).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The child may end without having read it.
        let _written = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    fn on_store(&self, words: &str) -> Output {
        self.run(&format!("{words} {ON_STORE}"), "")
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.path("s/control")).unwrap()
    }
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

fn assert_failed(output: &Output, expected: i32, what: &str) {
    assert_eq!((code(output), out(output)), (expected, ""), "{output:?}");
    assert!(err(output).contains(what), "{output:?}");
}

/// An `exec` that is kept open.
struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    /// Has answered a call, so it holds the store and serves its socket.
    fn start(home: &Home) -> Self {
        let mut session = Self::spawn(home.strongroom(&format!("exec {ON_STORE}")));
        session.answers();
        session
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    fn call(&mut self, line: &str) -> String {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer
    }

    fn answers(&mut self) {
        let answer = self.call(VIEW);
        assert!(answer.contains("/memories"), "{answer}");
    }

    fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

#[test]
fn commands_say_the_same_whoever_holds_the_store() {
    let home = Home::new();
    fs::write(home.path("p.toml"), "schema = 1\n[limits]\nmax_files = 7\n").unwrap();
    let commands = [
        "verify",
        "verify --quick --read-only --json",
        "tenant list",
        "tenant list --json",
        "policy show",
        "policy show --json --diff strict",
        "policy show --diff ./p.toml",
        "policy set p.toml --dry-run",
        "policy set none.toml",
        "key list",
        "key list --json",
        "key remove 99",
        "key add --label x --new-key-file none",
        "rescan --all-tenants --dry-run --json",
        "rescan --tenant nobody",
        "expire",
        "expire --dry-run --json",
        "hold list --all-tenants --json",
        "hold add /memories/a.md --reason r --tenant nobody",
        "audit show --json",
        "audit verify --json",
        "audit export --all -",
        "checkpoint",
        "export --tenant nobody --to out",
        "exec --tenant ../x",
        "stats --nonsense",
    ];
    let run = |words: &&str| {
        let done = home.on_store(words);
        // A path comes back in full from the holder, which works in another directory.
        let path = home.path("none").to_str().unwrap().to_owned();
        let text = err(&done).replace(&path, "none");
        (code(&done), out(&done).to_owned(), text)
    };
    let alone: Vec<_> = commands.iter().map(run).collect();
    assert!(alone.iter().any(|(code, ..)| *code == 3));
    assert!(alone.iter().any(|(code, ..)| *code == 4));
    let mut session = Session::start(&home);
    for (words, expected) in commands.iter().zip(&alone) {
        assert_eq!(&run(words), expected, "{words}");
        session.answers();
    }
    let stats = json(&home.on_store("stats --json"));
    assert_eq!((&stats["files"], &stats["bytes"]), (&1.into(), &4.into()));
    session.end();
    assert!(!home.path("s/control").exists());
}

#[test]
fn what_a_command_changes_binds_the_holder_at_once() {
    let home = Home::new();
    let mut session = Session::start(&home);
    fs::write(
        home.path("p.toml"),
        "schema = 1\n[paths]\nread_only = [\"/memories/**\"]\n",
    )
    .unwrap();
    let set = home.on_store("policy set ./p.toml");
    assert!(
        out(&set).ends_with("This policy is in force now.\n"),
        "{set:?}"
    );
    assert!(session.call(CREATE).contains("it is read-only"));

    let added = home.on_store("key add --generate-key k2 --label spare");
    let path = home.path("k2");
    let wrote = format!("Wrote its key to {}\n", path.display());
    assert!(out(&added).ends_with(&wrote), "{added:?}");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let slots = json(&home.run("key list --json --store s --key-file k2", ""));
    assert_eq!(slots[1]["label"], "spare");
    let removed = home.on_store(&format!("key remove {}", slots[1]["id"]));
    assert_eq!(code(&removed), 0, "{removed:?}");
    assert_failed(
        &home.run("stats --store s --key-file k2", ""),
        7,
        "no key slot accepts it",
    );
    session.answers();
}

#[test]
fn holds_exports_and_imports_go_by_way_of_the_holder() {
    let home = Home::new();
    let mut session = Session::start(&home);
    assert!(session.call(CREATE).contains("successfully"));
    let held = home.on_store("hold add /memories/a.md --reason case --until 2999-01-01");
    assert_eq!(code(&held), 0, "{held:?}");
    let delete = r#"{"command":"delete","path":"/memories/a.md"}"#;
    assert!(session.call(delete).contains("is_error"));
    assert_eq!(
        json(&home.on_store("hold list --json"))[0]["reason"],
        "case"
    );
    // Where the other process works, not where the holder does.
    fs::create_dir(home.path("below")).unwrap();
    let mut export = home.strongroom("export --to out --store ../s --key-file ../k");
    let exported = export.current_dir(home.path("below")).output().unwrap();
    assert_eq!(code(&exported), 0, "{exported:?}");
    assert_eq!(
        fs::read_to_string(home.path("below/out/a.md")).unwrap(),
        "one\n"
    );
    let imported = home.on_store("import --from below/out --tenant new");
    assert_eq!(code(&imported), 0, "{imported:?}");
    let seen = home.run(&format!("exec {ON_STORE} --tenant new --actor me"), VIEW);
    assert!(out(&seen).contains("/memories/a.md"), "{seen:?}");
    session.answers();
    session.end();
}

#[test]
fn a_second_exec_is_served_line_by_line() {
    let home = Home::new();
    let mut first = Session::start(&home);
    let mut second = Session::spawn(home.strongroom(&format!("exec {ON_STORE} --tenant a/b")));
    assert!(second.call(VIEW).contains("/memories/a.md"));
    assert!(first.call(CREATE).contains("successfully"));
    assert!(!second.call("not json").contains("successfully"));
    assert!(
        second
            .call(r#"{"command":"delete","path":"/memories/a.md"}"#)
            .contains("Success")
    );
    // Whose memory it is does not change with who holds the store.
    assert!(first.call(VIEW).contains("/memories/a.md"));
    second.end();
    first.answers();
    let created = home.run(&format!("exec --create {ON_STORE}"), VIEW);
    assert!(out(&created).contains("/memories/a.md"), "{created:?}");
    first.end();
}

#[test]
fn the_end_of_the_holder_lets_a_second_exec_end_in_order() {
    let home = Home::new();
    let first = Session::start(&home);
    let mut second = Session::spawn(home.strongroom(&format!("exec {ON_STORE}")));
    assert!(second.call(CREATE).contains("successfully"));
    first.end();
    assert!(second.child.wait().unwrap().success());
    let next = home.run(&format!("exec {ON_STORE}"), VIEW);
    assert!(out(&next).contains("/memories/a.md"), "{next:?}");
}

#[test]
fn a_second_exec_says_that_the_holder_was_killed() {
    let home = Home::new();
    let mut first = Session::start(&home);
    let mut second = Session::spawn(home.strongroom(&format!("exec {ON_STORE}")));
    second.answers();
    first.child.kill().unwrap();
    assert_eq!(second.child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    let stderr = second.child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(
        said.contains("the process that holds the store ended"),
        "{said}"
    );
}

#[test]
fn a_call_that_is_longer_than_a_frame_is_answered_whole() {
    let home = Home::new();
    let mut first = Session::start(&home);
    let text = "some words to keep\\n".repeat(9_000);
    let create =
        format!(r#"{{"command":"create","path":"/memories/long.md","file_text":"{text}"}}"#);
    let call = format!("{create}\n{{\"command\":\"view\",\"path\":\"/memories/long.md\"}}\n");
    let done = home.run(&format!("exec {ON_STORE}"), &call);
    assert_eq!((code(&done), out(&done).lines().count()), (0, 2));
    let view = r#"{"command":"view","path":"/memories/long.md"}"#;
    assert_eq!(
        first.call(view),
        format!("{}\n", out(&done).lines().nth(1).unwrap())
    );
}

#[test]
fn who_cannot_open_the_store_gets_nothing_from_its_holder() {
    let home = Home::new();
    let mut session = Session::start(&home);
    assert_eq!(
        code(&home.run("init --store other --generate-key wrong", "")),
        0
    );
    for words in [
        "stats",
        "policy set strict",
        "exec",
        "key add --generate-key k3",
    ] {
        let done = home.run(&format!("{words} --store s --key-file wrong"), VIEW);
        assert_failed(&done, 7, "no key slot accepts it");
        assert_failed(
            &home.run(&format!("{words} --store s"), VIEW),
            7,
            "find the key",
        );
    }
    assert!(!home.path("k3").exists());
    // And by hand, without the proof that the command makes.
    let mut connection = home.connect();
    skip_greeting(&mut connection);
    let request = br#"{"args":["stats","--json"],"cwd":"/"}"#;
    let mut sent = u32::try_from(request.len()).unwrap().to_be_bytes().to_vec();
    sent.extend_from_slice(&[0; 64]);
    sent.extend_from_slice(request);
    connection.write_all(&sent).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[0], b'e');
    assert_eq!(answer[answer.len() - 6..], [b'x', 0, 0, 0, 1, 7]);
    session.answers();
}

fn skip_greeting(connection: &mut UnixStream) {
    let mut greeting = vec![0; GREETING.len() + 32];
    connection.read_exact(&mut greeting).unwrap();
    assert!(greeting.starts_with(GREETING));
}

/// Whatever it says, a process that only has the lock and the socket is not believed and gets
/// no input.
#[test]
fn what_serves_the_socket_without_a_key_of_the_store_is_not_believed() {
    let says: [&[u8]; 5] = [
        b"x\0\0\0\x01\0",
        b"o\0\0\0\x05done\n",
        b"e\0\0\0\x05done\nx\0\0\0\x01\x05",
        &[b"p\0\0\0\x20".as_slice(), &[7; 32], b"x\0\0\0\x01\0"].concat(),
        b"p\0\0\0\0",
    ];
    let home = Home::new();
    let lock = fs::File::options()
        .write(true)
        .open(home.path("s/LOCK"))
        .unwrap();
    lock.try_lock().unwrap();
    let listener = UnixListener::bind(home.path("s/control")).unwrap();
    for words in ["tenant erase a/b --yes", "exec --tenant a/b"] {
        for said in says {
            let (done, got) = std::thread::scope(|scope| {
                let asked = scope.spawn(|| home.run(&format!("{words} {ON_STORE}"), VIEW));
                let (mut connection, _) = listener.accept().unwrap();
                connection.write_all(GREETING).unwrap();
                connection.write_all(&[9; 32]).unwrap();
                let mut length = [0; 4];
                connection.read_exact(&mut length).unwrap();
                let mut request = vec![0; 64 + u32::from_be_bytes(length) as usize];
                connection.read_exact(&mut request).unwrap();
                connection.write_all(said).unwrap();
                let mut rest = Vec::new();
                let _reset = connection.read_to_end(&mut rest);
                (asked.join().unwrap(), rest)
            });
            assert_eq!((code(&done), out(&done)), (6, ""), "{said:?}: {done:?}");
            assert!(err(&done).contains("has no key of it"), "{done:?}");
            assert!(got.is_empty(), "{got:?}");
        }
    }
}

#[test]
fn commands_that_need_this_process_are_refused_with_a_word() {
    let home = Home::new();
    let _session = Session::start(&home);
    for words in [
        "exec --read-only",
        "key add",
        "key add --new-key-command false",
        "export --tenant a/b --tar -",
        "import --tar -",
    ] {
        let refused = home.on_store(words);
        assert_failed(&refused, 6, "process");
        assert_eq!(err(&refused).lines().count(), 2, "{refused:?}");
    }
}

#[test]
fn hostile_connections_do_not_stop_the_holder() {
    let home = Home::new();
    let mut session = Session::start(&home);
    let idle: Vec<UnixStream> = (0..50).map(|_| home.connect()).collect();
    session.answers();
    assert_eq!(code(&home.on_store("stats")), 0);
    let long = [b'x'; 100_000];
    let half = [&8_u32.to_be_bytes(), [0; 64].as_slice(), b"{}"].concat();
    for bytes in [
        b"".as_slice(),
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 40],
        &long,
        &half,
    ] {
        let mut connection = home.connect();
        // The holder may close before all of it is written.
        let _written = connection.write_all(bytes);
        let _ended = connection.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _reset = connection.read_to_end(&mut answer);
        assert!(answer.len() <= GREETING.len() + 32);
        session.answers();
    }
    assert_eq!(code(&home.on_store("verify")), 0);
    drop(idle);
    // All places taken: the next is told that the store is locked, and the holder goes on.
    // A place is free again after a while, so it may take more than one attempt.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let _all: Vec<UnixStream> = (0..64).map(|_| home.connect()).collect();
        session.answers();
        let refused = home.on_store("stats");
        if code(&refused) == 6 {
            assert_failed(&refused, 6, "locked by process");
            break;
        }
        assert!(Instant::now() < until, "{refused:?}");
    }
    session.answers();
}

#[test]
fn a_request_that_never_ends_is_dropped_in_time() {
    let home = Home::new();
    let mut session = Session::start(&home);
    let started = Instant::now();
    let mut connection = home.connect();
    skip_greeting(&mut connection);
    connection.write_all(&100_u32.to_be_bytes()).unwrap();
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    assert!(started.elapsed() < Duration::from_secs(30));
    session.answers();
}

#[test]
fn a_killed_holder_leaves_a_store_that_opens() {
    let home = Home::new();
    let mut session = Session::start(&home);
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    assert!(home.path("s/control").exists(), "left behind");
    let verified = home.on_store("verify");
    assert_eq!(code(&verified), 0, "{verified:?}");
    // The next holder puts its own in that place.
    let mut next = Session::start(&home);
    assert_eq!(code(&home.on_store("stats")), 0);
    next.answers();
    next.end();
    assert!(!home.path("s/control").exists());
}

#[test]
fn a_signal_takes_the_socket_away() {
    let home = Home::new();
    let mut session = Session::start(&home);
    kill_process(Pid::from_child(&session.child), Signal::TERM).unwrap();
    assert_eq!(session.child.wait().unwrap().code(), None);
    assert!(!home.path("s/control").exists());
    assert_eq!(code(&home.on_store("stats")), 0);
}

#[test]
fn a_holder_without_a_socket_locks_others_out() {
    let home = Home::new();
    let vault = Vault::builder()
        .path(home.path("s"))
        .key_file(home.path("k"))
        .open()
        .unwrap();
    let locked = format!("locked by process {}", std::process::id());
    assert_failed(&home.on_store("stats"), 6, &locked);
    assert_failed(&home.run(&format!("exec {ON_STORE}"), VIEW), 6, &locked);
    // Something else in the socket's place is not taken for the holder.
    let listener = UnixListener::bind(home.path("s/control")).unwrap();
    let strange = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.write_all(&[b'?'; 53]).unwrap();
    });
    assert_failed(&home.on_store("stats"), 6, &locked);
    strange.join().unwrap();
    vault.close().unwrap();
    assert_eq!(code(&home.on_store("stats")), 0);
}

#[test]
fn a_long_path_is_served_too() {
    let home = Home::new();
    let deep = home.path(&"d".repeat(120));
    fs::create_dir(&deep).unwrap();
    fs::rename(home.path("s"), deep.join("s")).unwrap();
    let store = deep.join("s");
    let words = format!("--store {} --key-file k", store.display());
    let mut session = Session::spawn(home.strongroom(&format!("exec {words}")));
    session.answers();
    assert_eq!(mode(&store.join("control")), 0o600);
    let stats = home.run(&format!("stats {words}"), "");
    assert_eq!(code(&stats), 0, "{stats:?}");
    session.end();
}

#[test]
fn the_socket_is_for_its_user_only() {
    let home = Home::new();
    let mut session = Session::start(&home);
    let socket = home.path("s/control");
    assert!(
        fs::symlink_metadata(&socket)
            .unwrap()
            .file_type()
            .is_socket()
    );
    assert_eq!(mode(&socket), 0o600);

    // With the modes thrown open only the check of the peer is left.
    let key = home.path("other key");
    fs::copy(home.path("k"), &key).unwrap();
    if chown(&key, Some(OTHER_USER), None).is_err() {
        eprintln!("skipped: only root can run a command as another user");
        return;
    }
    for path in [home.0.path().to_path_buf(), home.path("s")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["s/control", "s/LOCK"] {
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o666)).unwrap();
    }
    for name in ["s/keyring.a", "s/keyring.b"] {
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    // Where the tests lie may be closed to other users.
    let program = home.path("strongroom");
    // By a process of its own: a file that any process still has open for writing cannot be
    // run, and the tests beside this one start processes that inherit what is open here.
    let copied = Command::new("cp")
        .args([
            env!("CARGO_BIN_EXE_strongroom").as_ref(),
            program.as_os_str(),
        ])
        .status()
        .unwrap();
    assert!(copied.success());
    let as_other = |user: u32| {
        let mut command = Command::new(&program);
        command
            .args(["stats", "--store", "s", "--key-file", "other key"])
            .current_dir(home.0.path())
            .uid(user)
            .output()
            .unwrap()
    };
    assert_failed(&as_other(OTHER_USER), 6, "locked by process");
    chown(&key, Some(0), None).unwrap();
    assert_eq!(code(&as_other(0)), 0);
    session.answers();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A holder that has seen damage takes no more writes, and the store is not the other process's
/// to open again: what was not reached is named, with the exit code of the damage.
#[test]
fn what_the_holder_could_not_reach_is_named_and_done_once_it_has_ended() {
    let home = Home(tempfile::tempdir().unwrap());
    strongroom::generate_key_file(home.path("k")).unwrap();
    let clock = Arc::new(ManualClock::at(SystemClock.now() - 100 * 86_400_000));
    let rules = "[retention]\nexpire_after_last_access = \"90d\"\n[redaction]\nrule_packs = []\n";
    let vault = Vault::builder()
        .path(home.path("s"))
        .key_file(home.path("k"))
        .clock(clock.clone())
        .policy(strongroom::policy::load(rules, "test").unwrap())
        .create(true)
        .open()
        .unwrap();
    let hurt = format!("/memories/{}", "long".repeat(60));
    let create = |name: &str, path: &str| {
        let made = vault
            .tenant(name)
            .unwrap()
            .create(path, "password: hunter2-Quagga\n");
        assert!(!made.unwrap().is_error);
    };
    // Swept first, since its file is the oldest.
    create("hurt", &hurt);
    clock.set(SystemClock.now() - 99 * 86_400_000);
    for name in ["b", "c", "d"] {
        create(name, "/memories/old.md");
    }
    clock.set(SystemClock.now() - 60 * 86_400_000);
    for name in ["x", "y", "z"] {
        create(name, "/memories/new.md");
    }
    // Nothing is due yet by the clock's account. From here on every file waits for a rescan.
    clock.set(SystemClock.now() - 50 * 86_400_000);
    let rules =
        strongroom::policy::load("[retention]\nexpire_after_last_access = \"90d\"\n", "test");
    vault.set_policy(&rules.unwrap()).unwrap();
    vault.close().unwrap();
    alter_longest_entry(&home);

    let holder = Session::start(&home);
    let done = home.on_store("expire --json");
    ended_in_damage(&done, "1 tenant is damaged, and 3 more not reached");
    let report = json(&done);
    assert_eq!(report["damaged"][0]["tenant"], "hurt", "{report}");
    let not_reached = report["not_reached"].as_array().unwrap();
    assert_eq!(not_reached.len(), 3, "{report}");
    assert_eq!(report["tenants"].as_array().unwrap().len(), 0, "{report}");
    assert!(err(&done).contains("End that process"), "{done:?}");
    holder.end();
    let direct = home.on_store("expire --json");
    ended_in_damage(&direct, "1 tenant is damaged");
    assert!(
        err(&direct).contains("The other tenants are done"),
        "{direct:?}"
    );
    let report = json(&direct);
    assert_eq!(report["tenants"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(report["not_reached"], serde_json::json!([]), "{report}");

    let holder = Session::start(&home);
    let done = home.on_store("rescan --all-tenants --json");
    ended_in_damage(&done, "1 tenant is damaged");
    let report = json(&done);
    let count = |key: &str| report[key].as_array().unwrap().len();
    assert_eq!(report["damaged"][0]["tenant"], "hurt", "{report}");
    assert_eq!((count("tenants"), count("not_reached")), (3, 3), "{report}");
    holder.end();
    let direct = home.on_store("rescan --all-tenants --json");
    ended_in_damage(&direct, "1 tenant is damaged");
    let report = json(&direct);
    assert_eq!(report["tenants"].as_array().unwrap().len(), 6, "{report}");
    assert_eq!(report["not_reached"], serde_json::json!([]), "{report}");
}

/// Flips a bit in the longest directory entry (its key starts with 3, see docs/FORMAT.md).
fn alter_longest_entry(home: &Home) {
    let db = sled::Config::new()
        .path(home.path("s/gen-000001"))
        .open()
        .unwrap();
    let longest = db.scan_prefix([3]).map(Result::unwrap);
    let (key, mut value) = longest.max_by_key(|(_, value)| value.len()).unwrap();
    let last = value.len() - 1;
    value[last] ^= 1;
    db.insert(key, value).unwrap();
    db.flush().unwrap();
}

/// A report on stdout, and on stderr, in two lines, what failed and what to do.
fn ended_in_damage(output: &Output, what: &str) {
    assert_eq!(code(output), 5, "{output:?}");
    let lines: Vec<&str> = err(output).lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(
        lines[0].starts_with("strongroom: failed to ") && lines[0].contains(what),
        "{output:?}"
    );
}
