//! `strongroom audit` and `checkpoint` as a process: what an auditor sees, and which damage shows.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const POLICY: &str = "[audit]\nenabled = true\nreads = \"durable\"\n";
const STORE: [&str; 4] = ["--store", "s", "--key-file", "k"];
const SECRET_LINE: &str =
    r#"{"command":"create","path":"/memories/d/a.md","file_text":"password: hunter2-Quagga\n"}"#;
const RENAME: &str =
    r#"{"command":"rename","old_path":"/memories/d/a.md","new_path":"/memories/e/b.md"}"#;
const REFUSED: &str = r#"{"command":"delete","path":"/memories/missing.md"}"#;
const VIEW: &str = r#"{"command":"view","path":"/memories"}"#;

/// A store `s`, its key `k`, and two tenants: `a/b` with five entries, `c` with one. The
/// store's own chain has two entries, its making and a checkpoint.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self::with_policy(POLICY);
        home.checkpoint();
        home
    }

    fn with_policy(policy: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::write(home.path("p.toml"), policy).unwrap();
        let init = [
            "init",
            "--policy",
            "./p.toml",
            "--store",
            "s",
            "--generate-key",
            "k",
        ];
        ended(&home.run(&init, ""), 0);
        let input = [SECRET_LINE, RENAME, REFUSED].join("\n");
        let by_dr_x = [
            "exec",
            "--tenant",
            "a/b",
            "--actor",
            "dr \"x\"",
            "--session",
            "visit-7",
        ];
        ended(&home.on_store_with(&by_dr_x, &input), 0);
        let by_nobody = ["exec", "--tenant", "a/b"];
        ended(&home.on_store_with(&by_nobody, &[VIEW, VIEW].join("\n")), 0);
        ended(
            &home.on_store_with(&["exec", "--tenant", "c"], SECRET_LINE),
            0,
        );
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        let mut child = command
            .args(words)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        let _written = writer.join().unwrap();
        output
    }

    fn on_store(&self, words: &[&str]) -> Output {
        self.on_store_with(words, "")
    }

    fn on_store_with(&self, words: &[&str], input: &str) -> Output {
        self.run(&[words, &STORE].concat(), input)
    }

    /// What `audit show --json` prints with these filters.
    fn shown(&self, filters: &[&str]) -> Vec<Value> {
        let output = self.on_store(&[&["audit", "show", "--json"], filters].concat());
        ended(&output, 0);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The exported lines, line feeds included.
    fn exported(&self, chains: &[&str]) -> Vec<String> {
        let output = self.on_store(&[&["audit", "export", "-"], chains].concat());
        ended(&output, 0);
        out(&output)
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect()
    }

    /// Runs `audit check` over these lines.
    fn check(&self, lines: &[String]) -> Output {
        self.run(&["audit", "check", "-"], &lines.concat())
    }

    fn checkpoint(&self) -> String {
        let output = self.on_store(&["checkpoint"]);
        ended(&output, 0);
        out(&output).trim_end().to_owned()
    }
}

fn ended(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Ended with this code and said on stderr, in two lines, what failed and what to do.
fn assert_failed(output: &Output, code: i32, what: &str) {
    ended(output, code);
    let lines: Vec<&str> = err(output).lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(lines[0].starts_with("strongroom: failed to "), "{output:?}");
    assert!(lines[0].contains(what), "{output:?}");
    assert!(lines[1].ends_with('.'), "{output:?}");
}

fn column<'a>(entries: &'a [Value], name: &str) -> Vec<&'a str> {
    let text = |entry: &'a Value| entry[name].as_str().unwrap_or("-");
    entries.iter().map(text).collect()
}

#[test]
fn show_says_who_did_what_and_how_it_ended() {
    let home = Home::new();
    let entries = home.shown(&["--tenant", "a/b"]);
    assert_eq!(
        column(&entries, "command"),
        ["create", "rename", "delete", "view", "view"]
    );
    assert_eq!(
        column(&entries, "outcome"),
        ["ok", "ok", "refused", "ok", "ok"]
    );
    assert_eq!(
        column(&entries, "actor"),
        ["dr \"x\"", "dr \"x\"", "dr \"x\"", "-", "-"]
    );
    assert_eq!(column(&entries, "session")[0], "visit-7");
    assert_eq!(entries[0]["rules"], serde_json::json!({ "password": 1 }));
    assert_eq!(entries[1]["to"], "/memories/e/b.md");

    let output = home.on_store(&["audit", "show", "--tenant", "a/b"]);
    ended(&output, 0);
    let lines: Vec<&str> = out(&output).lines().collect();
    assert_eq!(lines.len(), 6, "{output:?}");
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(
        head,
        [
            "TIME", "TENANT", "ACTOR", "COMMAND", "PATH", "OUTCOME", "RULES", "BYTES", "DETAIL"
        ]
    );
    assert!(lines[1].contains("password 1"), "{output:?}");
    assert!(lines[2].contains("/memories/d/a.md -> /memories/e/b.md"));
    assert!(!out(&output).contains("hunter2"), "{output:?}");
}

#[test]
fn all_filters_must_fit() {
    let home = Home::new();
    let count = |filters: &[&str]| home.shown(filters).len();
    assert_eq!(count(&[]), 8);
    assert_eq!(
        column(&home.shown(&["--store-events"]), "command"),
        ["init", "checkpoint"]
    );
    for (filters, expected) in [
        (&["--tenant", "c"][..], 1),
        (&["--actor", "dr \"x\""], 3),
        (&["--session", "visit-7", "--command", "rename"], 1),
        (&["--session", "visit-8"], 0),
        (&["--path", "/memories/d"], 3),
        (&["--path", "/memories/e/b.md"], 1),
        (&["--path", "/memories/"], 6),
        (&["--path", "/memories/miss"], 0),
        (&["--since", "1h", "--tenant", "a/b"], 5),
        (&["--until", "1h"], 0),
        (&["--since", "2020-01-01", "--until", "2020-12-31"], 0),
        (&["--since", "2020-01-01T00:00:00Z", "--tenant", "c"], 1),
        (&["--since", "2199-01-01"], 0),
    ] {
        assert_eq!(count(filters), expected, "{filters:?}");
    }
}

#[test]
fn wrong_words_say_what_to_write() {
    let home = Home::new();
    let show = |filters: &[&str]| home.on_store(&[&["audit", "show"], filters].concat());
    assert_failed(&show(&["--since", "yesterday"]), 2, "read --since");
    assert_failed(&show(&["--until", "2026-02-30"]), 2, "no such day");
    assert_failed(&show(&["--tenant", "nobody"]), 4, "the tenant nobody");
    ended(&show(&["--tenant", "c", "--store-events"]), 2);
    ended(&home.on_store(&["audit", "export", "-"]), 2);
    let export = home.on_store(&["audit", "export", "--tenant", "nobody", "x"]);
    assert_failed(&export, 4, "the tenant nobody");
    assert!(!home.path("x").exists());
    let missing = home.run(&["audit", "check", "nothing"], "");
    assert_failed(&missing, 4, "read nothing");
    let line = home.run(&["audit", "check", "-", "--checkpoint", "x"], "");
    assert_failed(&line, 2, "--checkpoint");
    ended(&home.on_store(&["exec", "--session", "s"]), 2);
    ended(&home.on_store(&["exec", "--actor", ""]), 2);
    ended(&home.on_store(&["exec", "--actor", "a\u{1b}[2J"]), 2);
    ended(&home.on_store(&["exec", "--actor", &"a".repeat(129)]), 2);
}

#[test]
fn verify_ends_each_chain_where_the_export_does() {
    let home = Home::new();
    let output = home.on_store(&["audit", "verify", "--json"]);
    ended(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["problems"], serde_json::json!([]));
    let chains = report["chains"].as_array().unwrap();
    assert_eq!(column(chains, "tenant"), ["-", "a/b", "c"]);
    let exported = home.exported(&["--all"]);
    let checked = home.run(&["audit", "check", "-", "--json"], &exported.concat());
    ended(&checked, 0);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let mut ends = [chains, checked["chains"].as_array().unwrap()]
        .map(|chains| chains.iter().map(|c| c["hash"].clone()).collect::<Vec<_>>());
    ends.iter_mut()
        .for_each(|hashes| hashes.sort_by_key(Value::to_string));
    assert_eq!(ends[0], ends[1]);
    assert_eq!(report["entries"], exported.len());
}

#[test]
fn an_export_is_a_new_private_file_without_a_plain_path_or_secret() {
    let home = Home::new();
    let export = ["audit", "export", "--tenant", "a/b", "log.jsonl"];
    let output = home.on_store(&export);
    ended(&output, 0);
    let file = home.path("log.jsonl");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 5);
    for hidden in ["/memories", "b.md", "hunter2", "Quagga"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    let checked = home.run(&["audit", "check", "log.jsonl"], "");
    ended(&checked, 0);
    assert_eq!(out(&checked), out(&output));
    assert_failed(&home.on_store(&export), 2, "log.jsonl");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// What may have happened to an exported file, by name.
fn damaged(lines: &[String]) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.to_vec();
        change(&mut lines);
        all.push((what, lines));
    };
    for at in 0..lines.len() {
        if at + 1 < lines.len() {
            add(format!("altered {at}"), &|lines| {
                lines[at] = lines[at].replace("\"time\":1", "\"time\":2");
            });
            add(format!("swapped {at}"), &|lines| lines.swap(at, at + 1));
        }
        if at > 0 && at + 1 < lines.len() {
            add(format!("dropped {at}"), &|lines| drop(lines.remove(at)));
        }
        add(format!("repeated {at}"), &|lines| {
            lines.insert(at, lines[at].clone());
        });
        add(format!("cut {at}"), &|lines| {
            let half = lines[at].len() / 2;
            lines[at].truncate(half);
        });
        add(format!("renumbered {at}"), &|lines| {
            lines[at] = lines[at].replace("\"seq\":", "\"seq\":1");
        });
        add(format!("blank before {at}"), &|lines| {
            lines.insert(at, "\n".to_owned());
        });
        add(format!("another field {at}"), &|lines| {
            lines[at] = lines[at].replacen('{', "{\"x\":1,", 1);
        });
    }
    add("no line feed at the end".to_owned(), &|lines| {
        lines.last_mut().unwrap().pop();
    });
    all
}

#[test]
fn an_exported_file_that_was_damaged_does_not_pass() {
    let home = Home::new();
    let lines = home.exported(&["--tenant", "a/b"]);
    ended(&home.check(&lines), 0);
    for (what, lines) in damaged(&lines) {
        let output = home.check(&lines);
        assert_eq!(output.status.code(), Some(5), "{what}: {output:?}");
        assert_failed(&output, 5, "check the file: line ");
    }
    // Chains of other tenants stay whole when one is left out, and in any order.
    let all = home.exported(&["--all"]);
    let (own, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|line| line.contains(r#""tenant":"00000000"#));
    assert_eq!((own.len(), others.len()), (2, 6));
    ended(&home.check(&[others, own].concat()), 0);
}

/// The check in docs/AUDIT.md, run as it stands there.
#[test]
fn the_documented_check_finds_the_same_damage() {
    let docs = include_str!("../docs/AUDIT.md");
    let (_, script) = docs.split_once("```python\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let home = Home::new();
    fs::write(home.path("check.py"), script).unwrap();
    let python = |lines: &[String]| {
        fs::write(home.path("log"), lines.concat()).unwrap();
        Command::new("python3")
            .args(["check.py", "log"])
            .current_dir(home.0.path())
            .output()
    };
    let lines = home.exported(&["--all"]);
    let Ok(whole) = python(&lines) else {
        return; // There is no python3 here.
    };
    ended(&whole, 0);
    let checked = home.check(&lines);
    for line in out(&checked).lines().skip(1) {
        let hash = line.split_whitespace().last().unwrap();
        assert!(out(&whole).contains(hash), "{whole:?}");
    }
    let lines = home.exported(&["--tenant", "a/b"]);
    for (what, lines) in damaged(&lines) {
        // Fields that strongroom does not know, in the last entry, are its to refuse.
        let is_blind = what == format!("another field {}", lines.len() - 1);
        let output = python(&lines).unwrap();
        assert_eq!(output.status.success(), is_blind, "{what}: {output:?}");
    }
}

#[test]
fn a_checkpoint_shows_that_the_whole_directory_was_put_back() {
    let home = Home::new();
    copy(&home.path("s"), &home.path("old"));
    let line = home.checkpoint();
    let verify = ["verify", "--quick", "--checkpoint", &line];
    let output = home.on_store(&verify);
    ended(&output, 0);
    assert!(out(&output).contains("entry is there"), "{output:?}");
    let exported = home.exported(&["--store-events"]);
    let check = ["audit", "check", "-", "--checkpoint", &line];
    ended(&home.run(&check, &exported.concat()), 0);
    let tenants = home.exported(&["--tenant", "c"]);
    assert_failed(&home.run(&check, &tenants.concat()), 5, "checkpoint");

    fs::remove_dir_all(home.path("s")).unwrap();
    fs::rename(home.path("old"), home.path("s")).unwrap();
    ended(&home.on_store(&["verify", "--quick"]), 0);
    assert_failed(&home.on_store(&verify), 5, "checkpoint");
    let json = home.on_store(&[&verify[..], &["--json"]].concat());
    ended(&json, 5);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["checkpoint"], false);
    // Another one is there again, and the old one never comes back by it.
    let newer = home.checkpoint();
    assert_ne!(newer, line);
    ended(&home.on_store(&["verify", "--checkpoint", &newer]), 0);
    assert_failed(&home.on_store(&verify), 5, "checkpoint");
    let nonsense = home.on_store(&["verify", "--checkpoint", "x"]);
    assert_failed(&nonsense, 2, "--checkpoint");
}

#[test]
fn without_an_audit_log_there_is_no_checkpoint() {
    let home = Home::with_policy("[audit]\nenabled = false\n");
    assert_failed(&home.on_store(&["checkpoint"]), 3, "keeps no audit log");
    assert!(home.shown(&[]).is_empty());
    ended(&home.on_store(&["audit", "verify"]), 0);
}

#[test]
fn looking_at_the_log_changes_nothing_in_it() {
    let home = Home::new();
    let before = home.exported(&["--all"]);
    home.shown(&[]);
    ended(&home.on_store(&["audit", "verify"]), 0);
    ended(&home.on_store(&["audit", "export", "--all", "x"]), 0);
    assert_eq!(home.exported(&["--all"]), before);
    assert_eq!(fs::read_to_string(home.path("x")).unwrap(), before.concat());
}

#[test]
fn a_tenant_that_cannot_be_read_is_named_and_the_others_are_shown() {
    let home = Home::new();
    let mut files = Vec::new();
    for dir in fs::read_dir(home.path("s/keys")).unwrap() {
        for file in fs::read_dir(dir.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    assert_eq!(files.len(), 2);
    fs::write(&files[0], b"x").unwrap();
    for command in [&["audit", "verify"][..], &["audit", "show"]] {
        let output = home.on_store(command);
        assert_failed(&output, 5, "damaged: ");
        assert!(out(&output).contains("DAMAGED"), "{output:?}");
        assert!(out(&output).contains("key file"), "{output:?}");
    }
    let output = home.on_store(&["audit", "export", "--all", "rest"]);
    assert_failed(&output, 5, "damaged: ");
    ended(&home.run(&["audit", "check", "rest"], ""), 0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Every command, and what it leaves in the log.
enum Leaves {
    /// An entry in the store's own chain, by this name.
    InStore(&'static str),
    /// One in the tenant's.
    InTenant(&'static str),
    /// None: it only looks, or needs no store.
    Nothing,
}

use Leaves::{InStore, InTenant, Nothing};

/// A command, the words with which it is tried on a store with a tenant `a/b`, its input.
type Tried = (&'static str, &'static str, &'static str, Leaves);

const FILE_IN: &str = r#"{"command":"create","path":"/memories/x.md","file_text":"x\n"}"#;

const ALL_COMMANDS: &[Tried] = &[
    ("init", "", "", InStore("init")),
    ("exec", "exec --tenant a/b", FILE_IN, InTenant("create")),
    ("verify", "verify", "", InStore("verify")),
    ("audit show", "audit show", "", Nothing),
    ("audit verify", "audit verify", "", Nothing),
    ("audit export", "audit export - --all", "", Nothing),
    ("audit check", "", "", Nothing),
    ("checkpoint", "checkpoint", "", InStore("checkpoint")),
    ("redact", "", "", Nothing),
    ("policy show", "policy show", "", Nothing),
    ("policy check", "", "", Nothing),
    (
        "policy set",
        "policy set ./p2.toml",
        "",
        InStore("policy set"),
    ),
    ("rescan", "rescan --tenant a/b", "", InTenant("rescan")),
    ("expire", "expire", "", InStore("expire")),
    (
        "hold add",
        "hold add /memories/x.md --reason case --tenant a/b",
        "",
        InTenant("hold add"),
    ),
    ("hold list", "hold list --all-tenants", "", Nothing),
    (
        "hold remove",
        "hold remove /memories/x.md --tenant a/b",
        "",
        InTenant("hold remove"),
    ),
    (
        "export",
        "export --to out --tenant a/b --actor auditor",
        "",
        InTenant("export"),
    ),
    (
        "import",
        "import --from in --tenant a/b --actor clerk --session s1",
        "",
        InTenant("import"),
    ),
    ("stats", "stats", "", Nothing),
    ("tenant list", "tenant list", "", Nothing),
    ("key list", "key list", "", Nothing),
    (
        "key add",
        "key add --generate-key k2 --label x",
        "",
        InStore("key add"),
    ),
    (
        "key change",
        "key change --slot 2 --generate-key k3",
        "",
        InStore("key change"),
    ),
    ("key remove", "key remove 3", "", InStore("key remove")),
    ("key rotate", "key rotate", "", InStore("key rotate")),
    (
        "token create",
        "token create --label agents --tenants a/*",
        "",
        InStore("token create"),
    ),
    ("token list", "token list", "", Nothing),
    (
        "token revoke",
        "token revoke agents",
        "",
        InStore("token revoke"),
    ),
    ("compact", "compact", "", InStore("compact")),
    ("upgrade", "upgrade", "", Nothing),
    (
        "backup",
        "backup --to backup --keys backup.keys",
        "",
        InStore("backup"),
    ),
    ("verify-backup", "", "", Nothing),
    (
        "restore",
        "restore --tenant a/b --from backup",
        "",
        InStore("restore"),
    ),
    (
        "tenant erase",
        "tenant erase old/t --yes",
        "",
        InStore("tenant erase"),
    ),
    (
        "tenant certificate",
        "tenant certificate old/t",
        "",
        Nothing,
    ),
    ("verify-erasure", "", "", Nothing),
    // What comes in by these leaves what it leaves by `exec`.
    ("mcp", "", "", Nothing),
    ("serve", "", "", Nothing),
    ("completions", "", "", Nothing),
];

/// The names of all commands, as the help lists them.
fn all_commands(home: &Home) -> Vec<String> {
    let listed = |words: &[&str]| -> Vec<String> {
        let help = home.run(&[words, &["--help"]].concat(), "");
        let text = out(&help).to_owned();
        let Some((_, rest)) = text.split_once("\nCommands:\n") else {
            return Vec::new();
        };
        let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        rest.lines()
            .take_while(|line| !line.is_empty())
            .filter(is_name)
            .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
            .collect()
    };
    let mut all = Vec::new();
    for name in listed(&[]) {
        let below = listed(&[&name]);
        if below.is_empty() {
            all.push(name);
            continue;
        }
        all.extend(below.iter().map(|sub| format!("{name} {sub}")));
    }
    all
}

#[test]
fn every_command_leaves_its_entry() {
    let home = Home::with_policy(&format!("{POLICY}[redaction]\nrule_packs = []\n"));
    let mut named: Vec<&str> = ALL_COMMANDS.iter().map(|(name, ..)| *name).collect();
    named.sort_unstable();
    let mut all = all_commands(&home);
    all.sort_unstable();
    assert_eq!(named, all, "say of each command what it leaves in the log");

    let plain = r#"{"command":"create","path":"/memories/p.md","file_text":"the password is hunter2-Quagga\n"}"#;
    for tenant in ["a/b", "old/t"] {
        ended(&home.on_store_with(&["exec", "--tenant", tenant], plain), 0);
    }
    fs::write(home.path("p2.toml"), POLICY).unwrap();
    fs::create_dir(home.path("in")).unwrap();
    fs::write(home.path("in/fine.md"), "fine\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", home.path("in/link.md")).unwrap();
    let count = |chain: &[&str]| home.shown(chain).len();
    let total = || count(&["--store-events"]) + count(&["--tenant", "a/b"]);
    for (name, words, input, leaves) in ALL_COMMANDS {
        let before = total();
        if !words.is_empty() {
            let words: Vec<&str> = words.split(' ').collect();
            let done = home.on_store_with(&words, input);
            let code = done.status.code().unwrap();
            assert!(
                code == 0 || (*name == "import" && code == 3),
                "{name}: {done:?}"
            );
        }
        let (chain, command): (&[&str], _) = match leaves {
            InStore(command) => (&["--store-events"], command),
            InTenant(command) => (&["--tenant", "a/b"], command),
            Nothing => {
                assert_eq!(total(), before, "{name}");
                continue;
            }
        };
        let entries = home.shown(chain);
        assert!(
            column(&entries, "command").contains(command),
            "{name}: {entries:?}"
        );
        assert!(words.is_empty() || total() > before, "{name}");
    }
    let entries = home.shown(&["--tenant", "a/b"]);
    let of = |command: &str| -> Vec<&Value> {
        entries
            .iter()
            .filter(|entry| entry["command"] == command)
            .collect()
    };
    // One for each file of the import, refused ones too.
    let imported: Vec<_> = of("import")
        .iter()
        .map(|entry| {
            (
                entry["path"].as_str().unwrap(),
                entry["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        imported,
        [
            ("/memories/fine.md", "ok"),
            ("/memories/link.md", "refused")
        ]
    );
    for entry in of("import") {
        assert_eq!(
            (&entry["actor"], &entry["session"]),
            (&"clerk".into(), &"s1".into())
        );
    }
    let export = of("export")[0];
    assert_eq!(export["actor"], "auditor");
    assert!(
        export["detail"].as_str().unwrap().ends_with(" files"),
        "{export}"
    );
    assert!(export["bytes"].as_u64().unwrap() > 0, "{export}");
    let store = home.shown(&["--store-events"]);
    assert_eq!(store[0]["command"], "init");
    let set = store
        .iter()
        .find(|entry| entry["command"] == "policy set")
        .unwrap();
    let shown = home.on_store(&["policy", "show"]);
    let digest = Sha256::digest(&shown.stdout);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(set["detail"], format!("policy {digest}"));
}

#[test]
fn every_command_has_help_with_an_example() {
    let home = Home::with_policy(POLICY);
    let all = all_commands(&home);
    assert!(all.len() >= ALL_COMMANDS.len(), "{all:?}");
    for name in all {
        let words: Vec<&str> = name.split(' ').chain(["--help"]).collect();
        let help = home.run(&words, "");
        ended(&help, 0);
        let example = format!("strongroom {name}");
        let (_, examples) = out(&help).split_once("\nExample:\n  ").unwrap_or_default();
        assert!(examples.contains(&example), "{name}: {help:?}");
    }
}
