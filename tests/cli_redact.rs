//! `strongroom redact`, `rescan` and `policy check` as a process. All secrets here are made up,
//! and built from parts so that no scanner finds them in this file.
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
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use strongroom::policy;
use tempfile::TempDir;

/// A GitHub personal access token that never was one.
fn token() -> String {
    [
        "gh",
        "p_",
        "Zx81Qm4Rt7",
        "Yv2Kd9Lw3P",
        "b6Nc5Hs0Jf",
        "8GaXoe",
    ]
    .concat()
}

/// A card number that card schemes give out for tests.
fn card() -> String {
    ["4111", "1111", "1111", "1111"].join(" ")
}

const UNSCANNED: &str = "[redaction]\nrule_packs = []\n[redaction.actions]\n";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a store that scanned nothing yet and has one file with a token for each tenant,
    /// now under the default policy.
    fn with_stale(tenants: &[&str]) -> Self {
        let home = Self::new();
        home.write("none.toml", UNSCANNED);
        home.ok("init --store s --generate-key k --policy none.toml", "");
        for tenant in tenants {
            home.create(tenant, "/memories/a.md", &format!("use {}\n", token()));
        }
        home.ok("policy set default --store s --key-file k", "");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn create(&self, tenant: &str, path: &str, text: &str) {
        let call = json!({"command": "create", "path": path, "file_text": text});
        let words = format!("exec --store s --key-file k --tenant {tenant}");
        assert!(out(&self.ok(&words, &call.to_string())).contains("successfully"));
    }

    fn view(&self, tenant: &str, path: &str) -> String {
        let call = json!({"command": "view", "path": path});
        let words = format!("exec --store s --key-file k --tenant {tenant} --read-only");
        out(&self.ok(&words, &call.to_string())).to_owned()
    }

    fn command(&self, words: &str) -> Command {
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

    fn run(&self, words: &str, input: impl AsRef<[u8]>) -> Output {
        let mut child = self.command(words).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // The child may end without having read it.
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _written = writer.join().unwrap();
        output
    }

    fn ok(&self, words: &str, input: &str) -> Output {
        let output = self.run(words, input);
        assert_eq!(code(&output), 0, "{words}: {output:?}");
        output
    }

    /// `rescan` on the store, with these words.
    fn rescan(&self, words: &str) -> Output {
        self.run(&format!("rescan --store s --key-file k {words}"), "")
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

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Nobody who sees what the command said has the value, or a good part of it.
fn assert_silent(output: &Output, value: &str) {
    let half = &value[value.len() / 2..];
    for said in [out(output), err(output)] {
        assert!(!said.contains(half), "{output:?}");
    }
}

#[test]
fn a_text_comes_back_without_its_secrets_and_otherwise_as_it_was() {
    let home = Home::new();
    let (before, after) = ("# Café\r\n\n\tuse ", " to push\nno newline at the end");
    let text = format!("{before}{}{after}", token());
    let done = home.ok("redact", &text);
    assert_silent(&done, &token());
    let expected = format!("{before}[REDACTED:github-personal-token]{after}");
    assert_eq!(out(&done), expected);
    assert_eq!(
        err(&done),
        "strongroom: removed 1 value: github-personal-token 1\n"
    );
    home.write("notes.md", &text);
    assert_eq!(out(&home.ok("redact notes.md", "")), expected);

    let again = home.ok("redact", &expected);
    assert_eq!(
        (out(&again), err(&again)),
        (expected.as_str(), "strongroom: removed nothing\n")
    );
}

#[test]
fn findings_say_where_the_value_stood() {
    let home = Home::new();
    let text = format!("é\nuse {} twice {}\n", token(), token());
    let found = json_of(&home.ok("redact --json", &text));
    assert!(!found["text"].as_str().unwrap().contains(&token()));
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 2);
    for finding in findings {
        let at = |key: &str| usize::try_from(finding[key].as_u64().unwrap()).unwrap();
        assert_eq!(&text[at("start")..at("end")], token(), "bytes of the input");
        assert_eq!(at("line"), 2);
        assert_eq!(
            (&finding["rule"], &finding["class"], &finding["action"]),
            (
                &"github-personal-token".into(),
                &"secret".into(),
                &"label".into()
            )
        );
        assert_eq!(finding.as_object().unwrap().len(), 6);
    }
}

#[test]
fn the_named_policy_decides() {
    let home = Home::new();
    let text = format!(
        "mail bob.miller@corp-mail.net\ncard {}\nMRN: 00482913\n",
        card()
    );
    for (policy, gone) in [
        ("default", &[][..]),
        ("strict", &["bob.miller"]),
        ("hipaa", &["bob.miller", "00482913"]),
        ("pci", &["bob.miller", "1111"]),
    ] {
        let done = home.ok(&format!("redact --policy {policy}"), &text);
        for value in ["bob.miller", "1111", "00482913"] {
            let is_gone = !out(&done).contains(value);
            assert_eq!(is_gone, gone.contains(&value), "{policy}: {done:?}");
        }
    }
    home.write(
        "own.toml",
        "extends = [\"pci\"]\n[redaction.actions]\ncard-number = \"last4\"\n\
         [[redaction.rules]]\nid = \"badge\"\nclass = \"internal\"\nkeywords = [\"EMP-\"]\n\
         regex = 'EMP-[0-9]{6}'\nexamples = [\"EMP-123456\"]\n",
    );
    let done = home.ok(
        "redact --policy own.toml",
        &format!("EMP-777888 {}", card()),
    );
    assert_eq!(out(&done), "[REDACTED:badge] [REDACTED:card-number~1111]");
    let unknown = home.run("redact --policy hippa", "x");
    assert_eq!((code(&unknown), out(&unknown)), (3, ""));
    assert!(err(&unknown).contains("did you mean \"hipaa\"?"));
}

#[test]
fn what_a_rule_rejects_gives_no_text_but_exit_code_3() {
    let home = Home::new();
    let text = "first\ncvv: 908\n";
    let refused = home.run("redact --policy pci", text);
    assert_eq!((code(&refused), out(&refused)), (3, ""));
    assert!(
        err(&refused).starts_with(
            "strongroom: failed to redact the text: the rule card-security-code refuses what line 2 holds\n"
        ),
        "{refused:?}"
    );
    assert_silent(&refused, "908");
    let refused = home.run("redact --policy pci --json", text);
    assert_eq!(code(&refused), 3);
    assert_eq!(
        json_of(&refused),
        json!({
            "error": "the rule card-security-code refuses what line 2 holds",
            "rule": "card-security-code",
            "line": 2,
        })
    );
    assert_silent(&refused, "908");
}

#[test]
fn what_cannot_be_read_is_refused_whole() {
    let home = Home::new();
    let binary = home.run("redact", b"a\xff\xfeb");
    assert_eq!((code(&binary), out(&binary)), (1, ""));
    assert!(err(&binary).contains("it is not UTF-8"));
    let missing = home.run("redact gone.md", "");
    assert_eq!((code(&missing), out(&missing)), (4, ""));
    let large = home.run("redact", vec![b'a'; (16 << 20) + 1]);
    assert_eq!((code(&large), out(&large)), (3, ""));
    assert!(
        err(&large).contains("more than 16777216 bytes"),
        "{}",
        err(&large)
    );
    let both = home.run("redact --json --json-lines", "");
    assert_eq!(code(&both), 2);
}

#[test]
fn every_json_line_gets_one_answer_and_none_ends_the_run() {
    let home = Home::new();
    let secret = token();
    let input = format!(
        "{}\n\n{{\"text\":7}}\n{secret}\n{}\n{{\"text\":\"{secret}\"\n{}\n",
        json!({ "text": format!("a\nb {secret}") }),
        json!({ "text": "x\ny\ncvv: 908" }),
        json!({ "text": "", "other": 1 }),
    );
    let done = home.ok("redact --policy pci --json-lines", &input);
    assert_silent(&done, &secret);
    assert_silent(&done, "908");
    let lines: Vec<Value> = out(&done)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["findings"][0]["line"], 2);
    for bad in [1, 2, 4] {
        assert!(
            lines[bad]["error"]
                .as_str()
                .unwrap()
                .starts_with("the line is not a JSON object"),
            "{done:?}"
        );
    }
    assert_eq!(
        (&lines[3]["rule"], &lines[3]["line"]),
        (&"card-security-code".into(), &3.into())
    );
    assert_eq!(lines[5], json!({ "text": "", "findings": [] }));
    assert!(
        out(&done).starts_with("{\"text\":"),
        "the text comes first: {done:?}"
    );
}

#[test]
fn an_answer_is_there_before_the_next_line_is_sent() {
    let home = Home::new();
    let mut child = home.command("redact --json-lines").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for text in ["one", "two", "three"] {
        writeln!(stdin, "{}", json!({ "text": text })).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&answer).unwrap()["text"],
            text
        );
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn nothing_is_made_on_disk() {
    let home = Home::new();
    home.ok("redact", &token());
    assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0);
}

#[test]
fn a_rescan_brings_one_tenant_under_the_policy() {
    let home = Home::with_stale(&["default", "a/b"]);
    let dry = home.rescan("--dry-run");
    assert_eq!(code(&dry), 0, "{dry:?}");
    assert_eq!(
        out(&dry),
        "TENANT   STALE  CHANGED  VALUES  SKIPPED  NAMES\n\
         default      1        1       1        0      0\n\
         A dry run: nothing changed.\n"
    );
    assert_eq!(err(&dry), "", "no progress where there is no terminal");
    let done = home.rescan("--json");
    assert_eq!(
        json_of(&done),
        json!({
            "dry_run": false,
            "tenants": [{
                "tenant": "default", "stale": 1, "changed": 1, "values": 1,
                "skipped": [], "names": [],
            }],
            "damaged": [],
            "not_reached": [],
        })
    );
    let again = home.rescan("--tenant default");
    assert!(
        out(&again).contains("default      0        0       0"),
        "{again:?}"
    );
    // Under a policy that scans nothing, what is stored shows.
    home.ok("policy set none.toml --store s --key-file k", "");
    assert!(home.view("default", "/memories/a.md").contains("REDACTED"));
    assert!(home.view("a/b", "/memories/a.md").contains(&token()));
}

#[test]
fn a_rescan_of_all_tenants_names_each() {
    let home = Home::with_stale(&["a", "b", "c/d"]);
    let done = home.rescan("--all-tenants");
    assert_eq!(code(&done), 0, "{done:?}");
    let rows: Vec<Vec<&str>> = out(&done)
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |name| vec![name, "1", "1", "1", "0", "0"];
    assert_eq!(rows, [row("a"), row("b"), row("c/d")]);
    assert_silent(&done, &token());
}

#[test]
fn a_rescan_of_nobody_says_so() {
    let home = Home::with_stale(&["a"]);
    let nobody = home.rescan("");
    assert_eq!((code(&nobody), out(&nobody)), (4, ""), "{nobody:?}");
    assert!(err(&nobody).contains("find the tenant default"));
    assert_eq!(code(&home.rescan("--tenant a//b")), 2);
    assert_eq!(code(&home.rescan("--tenant a --all-tenants")), 2);
}

#[test]
fn names_that_hold_a_secret_are_reported_without_it() {
    let home = Home::new();
    home.write("none.toml", UNSCANNED);
    home.ok("init --store s --generate-key k --policy none.toml", "");
    home.create("default", &format!("/memories/d/{}.md", token()), "x\n");
    home.ok("policy set default --store s --key-file k", "");
    let done = home.rescan("");
    assert_eq!(code(&done), 0, "{done:?}");
    assert_silent(&done, &token());
    assert!(
        out(&done).contains("looks like a secret  /memories/d/[REDACTED:"),
        "{done:?}"
    );
    assert!(
        err(&done).contains("names that look like a secret: 1"),
        "{done:?}"
    );
    let names = &json_of(&home.rescan("--json"))["tenants"][0]["names"];
    assert!(
        names[0]
            .as_str()
            .unwrap()
            .starts_with("/memories/d/[REDACTED:")
    );
}

/// A lost key file and a content that was altered: both tenants are named, and what comes
/// after them is scanned although damage stops all writes of a running store.
#[test]
fn damaged_tenants_do_not_keep_the_others_from_being_done() {
    let home = Home::with_stale(&["a", "b", "c"]);
    let keys_before = key_files(&home);
    home.ok("policy set none.toml --store s --key-file k", "");
    home.create("lost", "/memories/a.md", "x\n");
    // Longer than everything else, so that its record is found by its length.
    home.create("a", "/memories/long.md", &"word ".repeat(2_000));
    home.ok("policy set default --store s --key-file k", "");
    for lost in key_files(&home) {
        if !keys_before.contains(&lost) {
            fs::remove_file(lost).unwrap();
        }
    }
    alter_longest_record(&home);

    let done = home.rescan("--all-tenants --json");
    assert_eq!(code(&done), 5, "{done:?}");
    let report = json_of(&done);
    let tenants: Vec<&str> = report["tenants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tenant| tenant["tenant"].as_str().unwrap())
        .collect();
    assert_eq!(tenants, ["b", "c"]);
    let damaged = report["damaged"].as_array().unwrap();
    assert_eq!(damaged.len(), 2, "{report}");
    assert!(damaged[0]["error"].as_str().unwrap().contains("key file"));
    assert_eq!(damaged[1]["tenant"], "a");
    assert!(
        err(&done)
            .starts_with("strongroom: failed to rescan the whole store: 2 tenants are damaged\n"),
        "{done:?}"
    );
    let text = home.rescan("--all-tenants");
    assert!(
        out(&text).contains("\nTENANT") && out(&text).contains("is damaged"),
        "{text:?}"
    );
    assert_eq!(code(&home.rescan("--tenant a")), 5);
    home.ok("policy set none.toml --store s --key-file k", "");
    for tenant in ["b", "c"] {
        assert!(
            home.view(tenant, "/memories/a.md").contains("REDACTED"),
            "{tenant}"
        );
    }
}

fn key_files(home: &Home) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for shard in fs::read_dir(home.path("s/keys")).unwrap() {
        for file in fs::read_dir(shard.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files
}

fn alter_longest_record(home: &Home) {
    let db = sled::Config::new()
        .path(home.path("s/gen-000001"))
        .open()
        .unwrap();
    let (key, mut value) = db
        .iter()
        .map(Result::unwrap)
        .max_by_key(|(_, value)| value.len())
        .unwrap();
    let last = value.len() - 1;
    value[last] ^= 1;
    db.insert(key, value).unwrap();
    db.flush().unwrap();
}

#[test]
fn a_policy_check_runs_every_example() {
    let home = Home::new();
    for (name, _) in policy::SHIPPED {
        let checked = home.ok(&format!("policy check {name} --json"), "");
        let engine = policy::load_named_or_path(name).unwrap().redaction.engine();
        let answer = json_of(&checked);
        assert_eq!(answer["ok"], true, "{name}");
        assert_eq!(answer["rules"], engine.unwrap().rules_len(), "{name}");
        assert!(
            answer["examples"].as_u64() > answer["rules"].as_u64(),
            "{name}"
        );
        assert_eq!(answer["fallen"], json!([]), "{name}");
    }
    home.write("none.toml", UNSCANNED);
    let none = home.ok("policy check none.toml", "");
    assert_eq!(out(&none), "ok: 0 rules, 0 examples\n");
    let own = "[[redaction.rules]]\nid = \"badge\"\nclass = \"internal\"\nkeywords = [\"EMP-\"]\n\
               regex = 'EMP-[0-9]{6}'\nexamples = [\"EMP-123456\", \"x EMP_123456\"]\n\
               negative_examples = [\"EMP-12\"]\n";
    let falls = format!("{UNSCANNED}{own}");
    home.write("own.toml", &falls);
    let fallen = home.run("policy check own.toml", "");
    assert_eq!((code(&fallen), out(&fallen)), (3, ""));
    assert!(
        err(&fallen).contains("own.toml:5:") && err(&fallen).contains("example 2 is not found"),
        "{fallen:?}"
    );
    home.write("own.toml", &falls.replace(", \"x EMP_123456\"", ""));
    let good = home.ok("policy check own.toml", "");
    assert_eq!(out(&good), "ok: 1 rule, 2 examples\n");
}

#[test]
fn an_allowed_example_is_no_reason_for_a_check_to_fail() {
    let home = Home::new();
    let allow = format!(
        "extends = [\"pci\"]\n[redaction]\nallow = [\"{}\"]\n",
        card()
    );
    home.write("p.toml", &allow);
    home.ok("policy check p.toml", "");
    let kept = home.ok("redact --policy p.toml", &format!("card {}", card()));
    assert!(out(&kept).ends_with(&card()), "{kept:?}");
}

#[test]
fn the_readme_shows_a_real_run() {
    let readme = include_str!("../README.md");
    let home = Home::new();
    let text = "The staging password is hunter2, ask Dana for the rest.";
    let done = home.ok("redact", &format!("{text}\n"));
    let shown = format!(
        "```sh\necho '{text}' | strongroom redact\n```\n\n```text\n{}{}```\n",
        out(&done),
        err(&done)
    );
    assert!(readme.contains(&shown), "put this into README.md:\n{shown}");
}
