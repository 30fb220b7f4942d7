//! `backup`, `verify-backup`, `restore` and `upgrade`: alone, and while another process holds the
//! store.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;
const CREATE: &str = r#"{"command":"create","path":"/memories/a.md","file_text":"one\n"}"#;
const DELETE: &str = r#"{"command":"delete","path":"/memories/a.md"}"#;
const ON_STORE: &str = "--store s --key-file k";

/// A directory with a store `s` of two tenants, `a/b` and `c`, and its key file `k`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.good("init --store s --generate-key k");
        for tenant in ["a/b", "c"] {
            home.call(tenant, CREATE);
        }
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

    fn call(&self, tenant: &str, line: &str) -> String {
        let answer = self.run(&format!("exec {ON_STORE} --tenant {tenant}"), line);
        assert_eq!(code(&answer), 0, "{answer:?}");
        String::from_utf8(answer.stdout).unwrap()
    }

    fn good(&self, words: &str) -> String {
        let output = self.run(words, "");
        assert_eq!(code(&output), 0, "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.good(&format!("{words} --json"))).unwrap()
    }

    fn bad(&self, words: &str, expected: i32, what: &str) {
        let output = self.run(words, "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), expected, "{words}: {output:?}");
        assert!(text.contains(what), "{words}: {text}");
        assert_eq!(text.lines().count(), 2, "{words}: {text}");
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

/// An `exec` that holds the store.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(home: &Home) -> Self {
        let mut child = home
            .strongroom(&format!("exec {ON_STORE} --tenant c"))
            .spawn()
            .unwrap();
        let mut session = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        assert!(session.call(VIEW).contains("a.md"));
        session
    }

    fn call(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer
    }

    fn end(self) {
        drop(self.stdin);
        let ended = self.child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
}

#[test]
fn a_backup_is_made_checked_and_restored() {
    let home = Home::new();
    let made = home.json(&format!("backup --to b --keys bk {ON_STORE}"));
    assert_eq!(made["tenants"], 2);
    let checked = home.json("verify-backup b");
    assert_eq!(
        (&checked["kind"], &checked["id"]),
        (&json!("records"), &made["id"])
    );
    assert_eq!(checked["records"], made["records"]);
    assert_eq!(home.json("verify-backup bk")["kind"], "keys");
    let text = home.good("verify-backup b");
    assert!(text.contains("whole, and as it was written"), "{text}");
    let restored = home.json("restore --from b --keys bk --store t");
    assert_eq!(
        (&restored["tenants"], &restored["commit"]),
        (&json!(2), &made["commit"])
    );
    home.good("verify --store t --key-file k");
    for words in ["backup --to b", "backup --to x --keys bk"] {
        home.bad(&format!("{words} {ON_STORE}"), 2, "exists");
    }
    home.bad("restore --from b --keys bk --store t", 2, "not empty");
    home.bad("restore --from none --keys bk --store u", 4, "not found");
    home.bad("restore --from bk --keys bk --store u", 2, "holds keys");
    assert!(!home.path("u").exists() && !home.path("x").exists());
}

#[test]
fn a_damaged_backup_has_exit_code_5() {
    let home = Home::new();
    home.good(&format!("backup --to b --keys bk {ON_STORE}"));
    let mut bytes = fs::read(home.path("b")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(home.path("bad"), &bytes).unwrap();
    home.bad("verify-backup bad", 5, "altered");
    home.bad("restore --from bad --keys bk --store t", 5, "altered");
    assert!(!home.path("t").exists());
}

#[test]
fn while_another_process_holds_the_store_it_makes_the_backup() {
    let home = Home::new();
    let mut session = Session::start(&home);
    let made = home.json(&format!("backup --to b --keys bk {ON_STORE}"));
    assert_eq!(home.json("verify-backup b")["id"], made["id"]);
    assert!(session.call(DELETE).contains("deleted"));
    let brought = home.json(&format!("restore --tenant c --from b {ON_STORE}"));
    assert_eq!(
        (&brought["stored"], &brought["complete"]),
        (&json!(1), &json!(true))
    );
    assert!(session.call(VIEW).contains("a.md"));
    // A whole store is made beside it without asking anybody.
    home.good("restore --from b --keys bk --store t");
    session.end();
    home.good("verify --store t --key-file k");
}

#[test]
fn one_tenant_is_brought_back() {
    let home = Home::new();
    home.good(&format!("backup --to b --keys bk {ON_STORE}"));
    let text = home.good(&format!(
        "restore --tenant a/b --into other --from b {ON_STORE}"
    ));
    assert!(text.contains("/memories/a.md  stored"), "{text}");
    assert!(home.call("other", VIEW).contains("a.md"));
    let kept = home.json(&format!(
        "restore --tenant a/b --from b --keys bk {ON_STORE}"
    ));
    assert_eq!((&kept["stored"], &kept["exists"]), (&json!(0), &json!(1)));
    let replaced = home.json(&format!(
        "restore --tenant a/b --overwrite --from b {ON_STORE}"
    ));
    assert_eq!(replaced["stored"], 1);
    home.bad(
        &format!("restore --tenant nobody --from b {ON_STORE}"),
        4,
        "none of this name",
    );
    home.good(&format!("tenant erase a/b --yes {ON_STORE}"));
    home.bad(
        &format!("restore --tenant a/b --from b --keys bk {ON_STORE}"),
        3,
        "erased",
    );
}

#[test]
fn erased_tenants_stay_erased() {
    let home = Home::new();
    home.good(&format!("backup --to b --keys bk {ON_STORE}"));
    let certificate = home.good(&format!("tenant erase a/b --yes --json {ON_STORE}"));
    fs::write(home.path("certificate"), certificate).unwrap();
    for (to, words) in [
        ("t", "--erasures certificate".to_owned()),
        ("u", "--replaces s --key-file k".to_owned()),
    ] {
        let restored = home.json(&format!("restore --from b --keys bk --store {to} {words}"));
        assert_eq!(restored["erased"], 1, "{to}");
        home.bad(
            &format!("verify --read-only --store {to} --key-file k"),
            1,
            "restored",
        );
        home.good(&format!("verify --store {to} --key-file k"));
        let list = home.json(&format!("tenant list --store {to} --key-file k"));
        let live = |row: &&Value| row["state"] == "live";
        let rows = list.as_array().unwrap();
        assert_eq!(rows.iter().filter(live).count(), 1, "{list}");
        home.good(&format!(
            "verify-erasure certificate --store {to} --key-file k"
        ));
    }
    home.bad(
        "restore --from b --keys bk --erasures k --store v",
        2,
        "no certificate",
    );
}

#[test]
fn there_is_nothing_to_upgrade() {
    let home = Home::new();
    let before = fs::read(home.path("s/keyring.a")).unwrap();
    let text = home.good(&format!("upgrade {ON_STORE}"));
    assert!(text.contains("nothing to do"), "{text}");
    let json = home.json(&format!("upgrade {ON_STORE}"));
    assert_eq!(
        (&json["format"], &json["changed"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(fs::read(home.path("s/keyring.a")).unwrap(), before);
    // What a newer build wrote says so, and is not touched.
    for name in ["keyring.a", "keyring.b"] {
        let mut newer = before.clone();
        (newer[8], newer[10]) = (2, !2);
        fs::write(home.path("s").join(name), newer).unwrap();
    }
    home.bad(&format!("upgrade {ON_STORE}"), 7, "newer");
    home.bad(&format!("backup --to b {ON_STORE}"), 7, "newer");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

#[test]
fn a_loss_is_accepted_on_demand_only() {
    let home = Home::new();
    let generation = home.path("s/gen-000001");
    copy_all(&generation, &home.path("snapshot"));
    home.call("c", DELETE);
    fs::remove_dir_all(&generation).unwrap();
    copy_all(&home.path("snapshot"), &generation);
    home.bad(&format!("verify {ON_STORE}"), 5, "--accept-loss");
    let both = home.run(&format!("verify --accept-loss --read-only {ON_STORE}"), "");
    assert_eq!(code(&both), 2, "{both:?}");
    let accepted = home.run(&format!("verify --accept-loss {ON_STORE}"), "");
    assert_eq!(code(&accepted), 0, "{accepted:?}");
    let said = String::from_utf8_lossy(&accepted.stderr);
    assert!(said.contains("era 1"), "{said}");
    home.good(&format!("verify {ON_STORE}"));
    assert!(home.call("c", VIEW).contains("a.md"));
    let session = Session::start(&home);
    home.bad(
        &format!("verify --accept-loss {ON_STORE}"),
        6,
        "accept-loss",
    );
    session.end();
}
