//! `strongroom expire`, `hold`, and what the commands say of the clock, as a process.
//!
//! The binary reads the real clock. So each store is made through the library first, with a
//! clock that stands in the past or in the future.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use strongroom::clock::{Clock, ManualClock, SystemClock, UnixMillis};
use strongroom::key::KeySource;
use strongroom::{Vault, policy};
use tempfile::TempDir;

const DAY: UnixMillis = 86_400_000;
const RETENTION: &str = "[retention]\nexpire_after_last_access = \"90d\"\n";
const CONFIRM: &str = "strongroom expire --confirm-clock";

/// A directory with a store `s` and its key file `k`.
struct Home(TempDir);

impl Home {
    /// A store whose clock stands at `now`, filled by `fill`.
    fn at(now: UnixMillis, fill: impl FnOnce(&Vault, &ManualClock)) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let clock = Arc::new(ManualClock::at(now));
        strongroom::generate_key_file(home.path("k")).unwrap();
        let vault = Vault::builder()
            .path(home.path("s"))
            .key_source(KeySource::KeyFile(home.path("k")))
            .clock(clock.clone())
            .create(true)
            .policy(policy::load(RETENTION, "test").unwrap())
            .open()
            .unwrap();
        fill(&vault, &clock);
        vault.close().unwrap();
        home
    }

    /// Two tenants with a file each that was read 100 days ago, `b` with one from 10 days ago.
    fn with_old_files() -> Self {
        let now = SystemClock.now();
        Self::at(now - 100 * DAY, |vault, clock| {
            create(vault, "a", "/memories/d/old.md", "12345\n");
            create(vault, "b", "/memories/old.md", "123\n");
            clock.set(now - 10 * DAY);
            create(vault, "b", "/memories/new.md", "1\n");
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
        command.args(words).current_dir(self.0.path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        command
    }

    /// With `--store s --key-file k` added.
    fn words(&self, words: &[&str]) -> Output {
        let words = [words, &["--store", "s", "--key-file", "k"]].concat();
        self.command(&words).output().unwrap()
    }

    fn run(&self, words: &str) -> Output {
        self.words(&words.split_whitespace().collect::<Vec<_>>())
    }

    fn exec(&self, tenant: &str, input: &str) -> Output {
        let words = [
            "exec",
            "--store",
            "s",
            "--key-file",
            "k",
            "--tenant",
            tenant,
        ];
        let mut child = self
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    fn views(&self, tenant: &str, path: &str) -> bool {
        let call = json!({ "command": "view", "path": path });
        let done = self.exec(tenant, &format!("{call}\n"));
        assert_eq!(code(&done), 0, "{done:?}");
        !out(&done).contains("\"is_error\":true")
    }

    fn files(&self) -> u64 {
        json_of(&self.run("stats --json"))["files"]
            .as_u64()
            .unwrap()
    }
}

fn create(vault: &Vault, tenant: &str, path: &str, text: &str) {
    let reply = vault.tenant(tenant).unwrap().create(path, text).unwrap();
    assert!(!reply.is_error, "{:?}", reply.as_text());
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

/// The moment as the command writes it.
fn utc(millis: UnixMillis) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap();
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}

fn fails(output: &Output, expected: i32, what: &str) {
    assert_eq!(code(output), expected, "{output:?}");
    let lines: Vec<&str> = err(output).lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(lines[0].starts_with("strongroom: failed to "), "{output:?}");
    assert!(lines[0].contains(what), "{output:?}");
    assert!(lines[1].ends_with('.'), "{output:?}");
}

#[test]
fn a_sweep_prints_what_went_and_what_is_next() {
    let home = Home::with_old_files();
    let dry = home.run("expire --dry-run");
    assert_eq!(code(&dry), 0, "{dry:?}");
    let table = "TENANT  FILES  BYTES  DIRECTORIES\n\
                 a           1      6            1\n\
                 b           1      4            0\n";
    let paths = "TENANT  PATH\na       /memories/d/old.md\nb       /memories/old.md\n";
    let text = out(&dry);
    assert!(
        text.starts_with(&format!("{table}\n{paths}\nNext expiry: ")),
        "{text}"
    );
    assert!(text.ends_with("Z\nA dry run: nothing changed.\n"), "{text}");
    let json = json_of(&home.run("expire --dry-run --json"));
    assert_eq!(json["dry_run"], true);
    assert_eq!(json["tenants"][0]["paths"], json!(["/memories/d/old.md"]));
    assert_eq!(home.files(), 3, "a dry run takes nothing");

    let done = home.run("expire --all-tenants");
    assert_eq!((code(&done), err(&done)), (0, ""), "{done:?}");
    assert!(
        out(&done).starts_with(&format!("{table}Next expiry: ")),
        "{done:?}"
    );
    assert_eq!(home.files(), 1);
    let again = home.run("expire --json");
    let json = json_of(&again);
    assert_eq!(json["tenants"], json!([]));
    assert_eq!(json["clock"], json!({ "state": "believed" }));
    assert_eq!(
        (&json["confirmed"], &json["damaged"]),
        (&Value::Null, &json!([]))
    );
    let next: jiff::Timestamp = json["next"].as_str().unwrap().parse().unwrap();
    let days = (next.as_millisecond() as u64 - SystemClock.now()) / DAY;
    assert!((79..=80).contains(&days), "80 days are left: {json}");
    let text = home.run("expire");
    assert!(
        out(&text).starts_with("Nothing is expired.\nNext expiry: 2"),
        "{text:?}"
    );
    assert_eq!(code(&home.run("verify")), 0);
}

#[test]
fn one_tenant_can_be_swept_alone() {
    let home = Home::with_old_files();
    let done = home.run("expire --tenant a --json");
    let tenants = json_of(&done)["tenants"].clone();
    assert_eq!(tenants.as_array().unwrap().len(), 1, "{done:?}");
    assert_eq!(tenants[0]["tenant"], "a");
    assert_eq!(home.files(), 2);
    fails(&home.run("expire --tenant nobody"), 4, "nobody");
    assert_eq!(code(&home.run("expire --tenant a/")), 2);
    assert_eq!(code(&home.run("expire --tenant a --all-tenants")), 2);
    assert_eq!(code(&home.run("expire --dry-run --confirm-clock")), 2);
}

#[test]
fn expired_files_do_not_exist_before_the_sweep_either() {
    let home = Home::with_old_files();
    assert!(!home.views("b", "/memories/old.md"));
    assert!(home.views("b", "/memories/new.md"));
}

/// A lost key file and an altered directory: both are named, and whatever comes before and
/// after them is swept although damage stops all writes of an open store.
#[test]
fn damaged_tenants_do_not_keep_the_others_from_being_swept() {
    let now = SystemClock.now();
    let mut keys = Vec::new();
    let home = Home::at(now - 100 * DAY, |vault, _| {
        for tenant in ["a", "c", "d", "e", "f"] {
            create(vault, tenant, "/memories/old.md", "x\n");
        }
        create(
            vault,
            "hurt",
            &format!("/memories/{}", "long".repeat(60)),
            "x\n",
        );
        create(vault, "lost", "/memories/old.md", "x\n");
    });
    for shard in fs::read_dir(home.path("s/keys")).unwrap() {
        for file in fs::read_dir(shard.unwrap().path()).unwrap() {
            keys.push(file.unwrap().path());
        }
    }
    keys.sort();
    // Whichever tenant this is: its file cannot be swept, and it is not the one hurt below.
    let lost = lose_a_key(&home, &keys);
    alter_longest_entry(&home);

    let done = home.run("expire --json");
    fails(&done, 5, "2 tenants are damaged");
    let report = json_of(&done);
    let damaged: Vec<&str> = report["damaged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["tenant"].as_str().unwrap())
        .collect();
    assert_eq!(damaged.len(), 2, "{report}");
    assert!(damaged.contains(&"hurt"), "{report}");
    let swept: Vec<&str> = report["tenants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["tenant"].as_str().unwrap())
        .collect();
    let mut expected = vec!["a", "c", "d", "e", "f", "lost"];
    expected.retain(|name| *name != lost);
    assert_eq!(swept, expected, "{report}");
    let text = home.run("expire");
    assert!(
        out(&text).contains("TENANT") && out(&text).contains("DAMAGE"),
        "{text:?}"
    );
    assert_eq!(code(&home.run("expire --tenant hurt")), 5);
    assert_eq!(code(&home.run(&format!("expire --tenant {lost}"))), 5);
    fails(&home.run("hold list --all-tenants"), 5, "damaged: ");
}

/// Removes the key file of some tenant other than `hurt`; returns its name.
fn lose_a_key(home: &Home, keys: &[PathBuf]) -> String {
    let names = |home: &Home| -> Vec<String> {
        let listed = json_of(&home.run("tenant list --json"));
        let name = |one: &Value| one["tenant"].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(name).collect()
    };
    let before = names(home);
    for key in keys {
        let bytes = fs::read(key).unwrap();
        fs::remove_file(key).unwrap();
        let after = names(home);
        let lost = before.iter().find(|name| !after.contains(name)).unwrap();
        if lost != "hurt" {
            return lost.clone();
        }
        fs::write(key, bytes).unwrap();
    }
    panic!("all keys belong to one tenant");
}

/// Flips a bit in the longest directory entry (its key starts with 3, see docs/FORMAT.md).
fn alter_longest_entry(home: &Home) {
    let db = sled::Config::new()
        .path(home.path("s/gen-000001"))
        .open()
        .unwrap();
    let (key, mut value) = db
        .scan_prefix([3])
        .map(Result::unwrap)
        .max_by_key(|(_, value)| value.len())
        .unwrap();
    let last = value.len() - 1;
    value[last] ^= 1;
    db.insert(key, value).unwrap();
    db.flush().unwrap();
}

#[test]
fn a_clock_that_went_back_deletes_nothing_until_it_is_confirmed() {
    let now = SystemClock.now();
    let home = Home::at(now - 100 * DAY, |vault, clock| {
        create(vault, "default", "/memories/old.md", "x\n");
        clock.set(now + 2 * DAY);
        create(vault, "default", "/memories/new.md", "x\n");
    });
    let refused = home.run("expire");
    fails(&refused, 1, "the clock is not believed: it shows 2");
    assert_eq!(out(&refused), "");
    assert!(err(&refused).contains(&utc(now + 2 * DAY)), "{refused:?}");
    assert!(
        err(&refused).contains("more than 5 minutes back"),
        "{refused:?}"
    );
    assert!(err(&refused).contains("Nothing was deleted"), "{refused:?}");
    assert!(err(&refused).contains(CONFIRM), "{refused:?}");
    let json = json_of(&home.run("expire --json"));
    assert_eq!(json["clock"]["state"], "behind");
    assert_eq!(json["clock"]["store"], utc(now + 2 * DAY));
    assert_eq!(json["tenants"], json!([]));

    let confirmed = home.run("expire --confirm-clock");
    assert_eq!(
        (code(&confirmed), err(&confirmed)),
        (0, ""),
        "{confirmed:?}"
    );
    assert!(out(&confirmed).starts_with("The clock is believed from here on: it is 2"));
    assert!(out(&confirmed).contains("default      1"), "{confirmed:?}");
    let again = home.run("expire --confirm-clock");
    assert!(err(&again).contains("believed already"), "{again:?}");
    assert_eq!(home.files(), 1);
}

#[test]
fn every_command_warns_once_of_a_clock_that_is_not_believed() {
    let now = SystemClock.now();
    let home = Home::at(now - 500 * DAY, |vault, _| {
        create(vault, "default", "/memories/old.md", "x\n");
    });
    fails(&home.run("expire --dry-run"), 1, "more than 400 days ahead");
    for words in [
        "stats",
        "tenant list",
        "policy show",
        "policy set default --dry-run",
        "key list",
        "verify",
        "verify --read-only",
        "rescan --dry-run",
        "hold list",
    ] {
        let done = home.run(words);
        assert_eq!(code(&done), 0, "{words}: {done:?}");
        let lines: Vec<&str> = err(&done).lines().collect();
        assert_eq!(lines.len(), 1, "{words}: {done:?}");
        assert!(
            lines[0].starts_with("strongroom: warning: the clock"),
            "{words}"
        );
        assert!(
            lines[0].contains(&utc(now - 500 * DAY)),
            "{words}: {done:?}"
        );
        assert!(lines[0].contains(CONFIRM), "{words}");
    }
    let view = "{\"command\":\"view\",\"path\":\"/memories/old.md\"}\n";
    let served = home.exec("default", &view.repeat(3));
    assert_eq!(err(&served).lines().count(), 1, "{served:?}");
    assert_eq!(
        out(&served).matches("line numbers").count(),
        3,
        "{served:?}"
    );
    let stats = json_of(&home.run("stats --json"));
    assert_eq!(stats["clock"]["state"], "ahead");
    assert_eq!(stats["clock"]["store"], utc(now - 500 * DAY));

    let confirmed = home.run("expire --confirm-clock --json");
    let report = json_of(&confirmed);
    assert!(report["confirmed"].is_string(), "{report}");
    assert_eq!(report["tenants"][0]["files"], 1);
    assert_eq!(err(&home.run("stats")), "");
}

#[test]
fn stats_show_the_bounds_and_the_clock() {
    let home = Home::with_old_files();
    let before = json_of(&home.run("stats --json"));
    let now = SystemClock.now();
    let at = |key: &str| -> u64 {
        let time: jiff::Timestamp = before[key].as_str().unwrap().parse().unwrap();
        time.as_millisecond() as u64
    };
    assert_eq!((now - at("no_access_before")) / DAY, 100, "{before}");
    assert_eq!((now - at("no_expiry_before")) / DAY, 10, "{before}");
    assert_eq!(before["clock"], json!({ "state": "believed" }));
    let report = json_of(&home.run("expire --json"));
    let after = json_of(&home.run("stats --json"));
    assert_eq!(after["no_expiry_before"], report["next"]);
    let text = home.run("stats");
    assert!(out(&text).contains("no expiry before"), "{text:?}");
    assert!(
        out(&text)
            .lines()
            .any(|line| line.starts_with("clock ") && line.ends_with(" believed"))
    );
    let empty = Home::at(now, |_, _| {});
    assert_eq!(
        json_of(&empty.run("stats --json"))["no_access_before"],
        Value::Null
    );
}

#[test]
fn a_hold_keeps_a_file_until_it_is_removed() {
    let now = SystemClock.now();
    // The hold must be set before the file expires: the clock goes on to 60 days ago.
    let home = Home::at(now - 60 * DAY, |vault, _| {
        create(vault, "a/b", "/memories/case/old.md", "x\n");
    });
    let hold = |words: &[&str]| home.words(&[words, &["--tenant", "a/b"]].concat());
    let added = hold(&[
        "hold",
        "add",
        "/memories//case",
        "--reason",
        "case 7, see Dana",
    ]);
    assert_eq!((code(&added), err(&added)), (0, ""), "{added:?}");
    assert_eq!(
        out(&added),
        "Held for a/b: /memories/case, until it is removed\n"
    );
    let json = hold(&[
        "hold",
        "add",
        "/memories/case/old.md",
        "--reason",
        "x",
        "--until",
        "30d",
        "--json",
    ]);
    assert!(json_of(&json)["until"].is_string(), "{json:?}");

    let call = r#"{"command":"delete","path":"/memories/case/old.md"}"#;
    let refused = home.exec("a/b", call);
    assert!(out(&refused).contains("hold"), "{refused:?}");
    assert!(out(&refused).contains("\"is_error\":true"), "{refused:?}");
    assert_eq!(
        json_of(&home.run("expire --dry-run --json"))["next"],
        Value::Null
    );

    let listed = json_of(&home.run("hold list --all-tenants --json"));
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed[0]["path"], "/memories/case");
    assert_eq!(listed[0]["tenant"], "a/b");
    assert_eq!(listed[0]["reason"], "case 7, see Dana");
    assert_eq!(listed[0]["until"], Value::Null);
    let text = hold(&["hold", "list"]);
    assert!(out(&text).starts_with("TENANT  PATH"), "{text:?}");
    assert!(out(&text).contains("case 7, see Dana\n"), "{text:?}");

    let removed = hold(&["hold", "remove", "/memories/case"]);
    assert_eq!(code(&removed), 0, "{removed:?}");
    assert!(out(&removed).starts_with("No longer held for a/b: /memories/case\n"));
    fails(
        &hold(&["hold", "remove", "/memories/case"]),
        4,
        "There is no hold on",
    );
    assert_eq!(
        code(&hold(&[
            "hold",
            "remove",
            "/memories/case/old.md",
            "--json"
        ])),
        0
    );
    assert_eq!(out(&home.run("hold list --all-tenants --json")), "[]\n");
    let next = json_of(&home.run("expire --json"))["next"].clone();
    assert!(next.is_string(), "it expires again");
}

#[test]
fn a_hold_that_cannot_be_is_refused() {
    let home = Home::with_old_files();
    let add = |path: &str, reason: &str, until: &str| {
        home.words(&[
            "hold", "add", path, "--tenant", "b", "--reason", reason, "--until", until,
        ])
    };
    fails(&add("/memories/typo.md", "x", "1d"), 4, "does not exist");
    fails(&add("/memories/old.md", "x", "1d"), 4, "does not exist");
    fails(&add("/etc/passwd", "x", "1d"), 3, "use the path");
    fails(&add("/memories/new.md", "", "1d"), 2, "reason");
    fails(&add("/memories/new.md", "a\nb", "1d"), 2, "reason");
    fails(
        &add("/memories/new.md", &"x".repeat(1_025), "1d"),
        3,
        "too long",
    );
    fails(
        &add("/memories/new.md", "x", "3M"),
        2,
        "a month has no fixed length",
    );
    fails(&add("/memories/new.md", "x", "2020-01-31"), 2, "has passed");
    fails(
        &add("/memories/new.md", "x", "2020-01-31T10:00"),
        2,
        "offset",
    );
    assert_eq!(out(&home.run("hold list --tenant b --json")), "[]\n");
    let nobody = home.run("hold add /memories --reason x --tenant nobody");
    fails(&nobody, 4, "nobody");
    fails(&home.run("hold list --tenant nobody"), 4, "nobody");
    assert_eq!(code(&home.run("hold add /memories/new.md --tenant b")), 2);
    assert_eq!(
        json_of(&home.run("tenant list --json"))
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let day = add("/memories/new.md", "x", "2099-12-31");
    assert!(
        out(&day).ends_with(", until 2100-01-01T00:00:00Z\n"),
        "{day:?}"
    );
}

/// The command line of the systemd unit does its work, with this machine's paths in it.
#[test]
fn the_systemd_unit_starts_a_sweep() {
    let home = Home::with_old_files();
    let unit = include_str!("../contrib/systemd/strongroom-expire.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let here = |text: &str| {
        text.replace("/var/lib/strongroom/store", "s")
            .replace("/usr/bin/cat %d/store.key", "cat k")
    };
    // systemd splits at spaces and keeps what is in double quotes.
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 1 {
            words.push(here(part));
        } else {
            words.extend(part.split_whitespace().map(here));
        }
    }
    assert_eq!(words[0], "/usr/local/bin/strongroom");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let done = home.command(&words).output().unwrap();
    assert_eq!((code(&done), err(&done)), (0, ""), "{done:?}");
    assert_eq!(home.files(), 1);
}

#[test]
fn stats_paint_what_lies_where_how_old_it_is_and_when_it_goes() {
    let now = SystemClock.now();
    let home = Home::at(now - 100 * DAY, |vault, clock| {
        create(vault, "a", "/memories/old/gone.md", "x\n");
        create(vault, "a", "/memories/held.md", "x\n");
        let held = vault.tenant("a").unwrap();
        assert!(
            !held
                .add_hold("/memories/held.md", "a case", None)
                .unwrap()
                .is_error
        );
        clock.set(now - 2 * DAY);
        create(vault, "a", "/memories/d/new.md", "four\n");
        create(vault, "b", "/memories/d/e/new.md", "four\n");
    });
    let all = json_of(&home.run("stats --json"));
    assert_eq!(
        all["directories"],
        json!([
            { "path": "/memories/d", "files": 2, "bytes": 10 },
            { "path": "/memories", "files": 1, "bytes": 2 },
        ])
    );
    assert_eq!(all["held"], json!({ "files": 1, "bytes": 2 }));
    assert_eq!(all["never"], json!({ "files": 0, "bytes": 0 }));
    assert_eq!(
        all["last_access"][1],
        json!({ "under_days": 7, "files": 2, "bytes": 10 })
    );
    let files = |bands: &Value| -> u64 {
        let bands = bands.as_array().unwrap();
        bands
            .iter()
            .map(|band| band["files"].as_u64().unwrap())
            .sum()
    };
    assert_eq!((files(&all["last_access"]), files(&all["expires"])), (3, 2));
    let number = |key: &str| all[key].as_u64().unwrap();
    assert!(number("live_bytes") > 0 && number("disk_bytes") > 0);
    assert_eq!(
        number("dead_bytes"),
        number("disk_bytes").saturating_sub(number("live_bytes"))
    );
    assert_eq!(all["damaged"], json!([]));
    assert_eq!(
        all["last_runs"],
        json!({ "expire": null, "verify": null, "checkpoint": null, "backup": null })
    );

    let one = json_of(&home.run("stats --json --tenant b"));
    assert_eq!((&one["files"], &one["bytes"]), (&json!(1), &json!(5)));
    assert!(
        one.get("last_runs").is_none() && one.get("live_bytes").is_none(),
        "{one}"
    );
    fails(
        &home.run("stats --tenant nobody"),
        4,
        "find the tenant nobody",
    );

    assert_eq!(code(&home.run("expire")), 0);
    assert_eq!(code(&home.run("verify")), 0);
    let text = home.run("stats");
    let text = out(&text);
    let line = |start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start} in {text}"))
    };
    assert!(line("DIRECTORY").ends_with("FILES  BYTES"), "{text}");
    assert!(line("/memories/d").ends_with(&"#".repeat(30)), "{text}");
    assert!(
        line("/memories  ").ends_with(&format!("  {}", "#".repeat(15))),
        "{text}"
    );
    assert!(line("under 7 days").ends_with('#'), "{text}");
    assert!(line("held").ends_with('#'), "{text}");
    assert!(
        line("expire ").ends_with('Z') && line("verify ").ends_with('Z'),
        "{text}"
    );
    assert!(line("checkpoint").ends_with("never"), "{text}");
}

/// The unit and the timer are what systemd takes for such.
#[test]
fn systemd_accepts_the_unit_and_the_timer() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/systemd");
    let files = ["strongroom-expire.service", "strongroom-expire.timer"];
    let checked = Command::new("systemd-analyze")
        .arg("verify")
        .args(files.map(|file| directory.join(file)))
        .output();
    let Ok(checked) = checked else {
        eprintln!("skipped: there is no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr);
    // That the program is not installed here is no fault of the unit's.
    let faults: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("strongroom-expire") && !line.contains("is not executable"))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}

/// Times are moments, whatever the zone in which the machine shows them.
#[test]
fn a_time_zone_changes_nothing() {
    let now = SystemClock.now();
    let home = Home::at(now - 91 * DAY, |vault, clock| {
        create(vault, "default", "/memories/old.md", "x\n");
        clock.set(now - 90 * DAY + DAY / 4);
        create(vault, "default", "/memories/nearly.md", "x\n");
    });
    for (zone, files) in [
        ("Pacific/Kiritimati", 1),
        ("Pacific/Pago_Pago", 0),
        ("XXX+24", 0),
        ("XXX-24", 0),
        (":/nonsense", 0),
    ] {
        let run = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let on_store = ["--store", "s", "--key-file", "k"];
            let mut command = home.command(&[&words[..], &on_store].concat());
            command.env("TZ", zone).output().unwrap()
        };
        let dry = run("expire --all-tenants --dry-run --json");
        let swept = run("expire --all-tenants --json");
        let (dry, swept) = (json_of(&dry), json_of(&swept));
        assert_eq!(dry["tenants"], swept["tenants"], "{zone}");
        assert_eq!(swept["clock"]["state"], "believed", "{zone}");
        assert_eq!(swept["next"], utc(now + DAY / 4), "{zone}");
        let gone: u64 = swept["tenants"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tenant| tenant["files"].as_u64().unwrap())
            .sum();
        assert_eq!(gone, files, "{zone}");
    }
    assert_eq!(home.files(), 1);
}
