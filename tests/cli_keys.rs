//! `key rotate`, `key change`, `tenant erase` and its certificates, `compact`: alone, and while
//! another process holds the store.
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
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;
const CREATE: &str = r#"{"command":"create","path":"/memories/a.md","file_text":"one\n"}"#;

/// A directory with a store `s` of two tenants, `a/b` and `c`, and its key file `k`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.good("init --store s --generate-key k");
        for tenant in ["a/b", "c"] {
            let filled = home.run(
                &format!("exec --store s --key-file k --tenant {tenant}"),
                CREATE,
            );
            assert_eq!(code(&filled), 0, "{filled:?}");
        }
        home
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

    fn is_whole(&self, key: &str) {
        self.good(&format!("verify --store s --key-file {key}"));
        let view = self.run(&format!("exec --store s --key-file {key} --tenant c"), VIEW);
        assert!(
            String::from_utf8_lossy(&view.stdout).contains("a.md"),
            "{view:?}"
        );
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
            .strongroom("exec --store s --key-file k --tenant c")
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
fn record_keys_are_rotated_for_one_tenant_or_all() {
    let home = Home::new();
    let rotated = home.json("key rotate --store s --key-file k");
    assert_eq!(
        rotated,
        serde_json::json!([{"tenant":"a/b","epoch":2},{"tenant":"c","epoch":2}])
    );
    let text = home.good("key rotate --store s --key-file k --tenant c");
    assert_eq!(text, "c: record key 3\n");
    home.bad(
        "key rotate --store s --key-file k --tenant nobody",
        4,
        "tenant list",
    );
    home.bad(
        "key rotate --store s --key-file k --drop-other-slots",
        2,
        "--master",
    );
    home.is_whole("k");
}

#[test]
fn the_master_key_and_every_key_are_rotated_and_a_new_key_takes_over() {
    let home = Home::new();
    home.good("key add --store s --key-file k --generate-key spare");
    for kind in ["--master", "--full"] {
        home.bad(
            &format!("key rotate {kind} --store s --key-file k"),
            7,
            "--drop-other-slots",
        );
    }
    let rotated = home.json("key rotate --master --drop-other-slots --store s --key-file k");
    assert_eq!(
        rotated,
        serde_json::json!({"kept":[1],"dropped":[2],"key_file":null})
    );
    home.bad("stats --store s --key-file spare", 7, "use the key");
    home.is_whole("k");
    let text = home.good("key rotate --full --store s --key-file k --generate-key next");
    assert!(
        text.contains("Every key") && text.contains("backup"),
        "{text}"
    );
    home.bad("stats --store s --key-file k", 7, "use the key");
    home.is_whole("next");
    let text = home.good("key rotate --master --store s --key-file next --generate-key last");
    assert!(text.contains("master key"), "{text}");
    home.is_whole("last");
}

#[test]
fn a_key_is_changed_and_the_text_says_what_that_does_not_do() {
    let home = Home::new();
    let text = home.good("key change --store s --key-file k --generate-key next");
    assert!(text.contains("older copy"), "{text}");
    home.bad("stats --store s --key-file k", 7, "use the key");
    home.bad(
        "key change --store s --key-file next --slot 9 --generate-key other",
        4,
        "key list",
    );
    let other = home.good("key add --store s --key-file next --generate-key spare");
    assert!(other.contains("slot 3"), "{other}");
    home.good("key change --store s --key-file next --slot 3 --generate-key spare2");
    home.bad("stats --store s --key-file spare", 7, "use the key");
    home.is_whole("spare2");
    home.is_whole("next");
}

#[test]
fn a_tenant_is_erased_and_its_certificate_holds() {
    let home = Home::new();
    home.bad("tenant erase a/b --store s --key-file k", 2, "--yes");
    home.bad(
        "tenant erase nobody --yes --store s --key-file k",
        4,
        "tenant list",
    );
    home.good("hold add /memories/a.md --reason x --store s --key-file k --tenant a/b");
    home.bad(
        "tenant erase a/b --yes --store s --key-file k",
        3,
        "hold list",
    );
    home.good("hold remove /memories/a.md --store s --key-file k --tenant a/b");
    let certificate = home.good("tenant erase a/b --yes --store s --key-file k");
    let parsed: Value = serde_json::from_str(&certificate).unwrap();
    assert_eq!(
        (&parsed["tenant"], &parsed["state"]),
        (&"a/b".into(), &"purged".into())
    );
    assert!(parsed["not_covered"].as_array().unwrap().len() > 2);
    fs::write(home.0.path().join("cert"), &certificate).unwrap();
    let checked = home.json("verify-erasure cert --store s --key-file k");
    assert_eq!(
        (&checked["holds"], &checked["state"]),
        (&true.into(), &"purged".into())
    );
    let id = parsed["tenant_id"].as_str().unwrap();
    let again = home.good("tenant certificate a/b --store s --key-file k");
    assert_eq!(again, certificate);
    assert!(
        home.good(&format!("tenant certificate {id} --store s --key-file k"))
            .contains(id)
    );
    home.bad(
        "tenant certificate nobody --store s --key-file k",
        4,
        "tenant list",
    );

    let listed = home.json("tenant list --store s --key-file k");
    assert_eq!(listed[0]["state"], "live");
    assert_eq!(
        (&listed[1]["tenant_id"], &listed[1]["state"]),
        (&id.into(), &"purged".into())
    );
    assert!(
        home.good("tenant list --store s --key-file k")
            .contains("erased, purged")
    );
    let stats = home.json("stats --store s --key-file k");
    assert_eq!(
        (&stats["erased_tenants"], &stats["erased_and_purged"]),
        (&1.into(), &1.into())
    );

    fs::write(
        home.0.path().join("cert"),
        certificate.replace("purged", "gone!!"),
    )
    .unwrap();
    let output = home.run("verify-erasure cert --store s --key-file k", "");
    assert_eq!(code(&output), 5, "{output:?}");
    home.bad(
        "verify-erasure nothing --store s --key-file k",
        4,
        "certificate",
    );
    home.is_whole("k");
}

#[test]
fn while_another_process_holds_the_store_all_but_a_full_rotation_is_done_there() {
    let home = Home::new();
    let mut session = Session::start(&home);
    assert_eq!(
        home.json("key rotate --store s --key-file k")
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        home.json("key rotate --master --store s --key-file k")["kept"][0],
        1
    );
    home.bad("tenant erase a/b --store s --key-file k", 2, "--yes");
    let certificate = home.good("tenant erase a/b --yes --store s --key-file k");
    fs::write(home.0.path().join("cert"), certificate).unwrap();
    assert_eq!(
        home.json("verify-erasure cert --store s --key-file k")["holds"],
        true
    );
    home.bad("key rotate --full --store s --key-file k", 6, "process");
    assert!(
        home.good("compact --store s --key-file k")
            .contains("bytes before")
    );
    home.good("key change --store s --key-file k --generate-key next");
    home.good("key add --store s --key-file next --generate-key spare");
    // Whose slot is meant is not known there.
    home.bad(
        "key change --store s --key-file spare --generate-key x",
        6,
        "--slot",
    );
    home.bad(
        "key rotate --master --store s --key-file spare",
        6,
        "process",
    );
    assert!(session.call(VIEW).contains("a.md"));
    session.end();
    home.is_whole("next");
    home.is_whole("spare");
}
