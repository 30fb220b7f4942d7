//! Nothing that is a secret lies readable in a store's files or in any error or debug text.
//!
//! 500 markers go in as contents, names and tenants; the raw files are searched for each in
//! every common encoding, while the store is open, after deletes and after the close. The
//! random source is recorded, so the search covers every key that was ever drawn.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod store_kit;

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt::Debug;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{Arc, Mutex};

use base64ct::{Base64, Base64UrlUnpadded, Encoding};
use store_kit::needles::Needles;
use store_kit::{Rng, builder, copy_directory, files_below, png};
use strongroom::key::{KdfParams, KeyError, KeySource, OsRandom, Random};
use strongroom::wire::{self, Command, ViewRange};
use strongroom::{Depth, Error, Tenant, Vault, edit, policy};

const MARKERS: usize = 500;

/// Names the child process that runs under another umask.
const CHILD: &str = "STRONGROOM_SECRECY_CHILD";

/// Markers of at least 24 characters that stand in no file but those that a test writes.
fn markers() -> Vec<String> {
    let mut rng = Rng(0x5EC2);
    let marker = |_| format!("mark{:016x}{:06x}", rng.next(), rng.next() >> 40);
    (0..MARKERS).map(marker).collect()
}

/// A random source that remembers what it gave.
#[derive(Default)]
struct Recorder(Mutex<Vec<Vec<u8>>>);

impl Random for Recorder {
    fn fill(&self, out: &mut [u8]) -> Result<(), KeyError> {
        OsRandom.fill(out)?;
        self.0.lock().unwrap().push(out.to_vec());
        Ok(())
    }
}

#[test]
fn the_search_finds_each_form() {
    let home = tempfile::tempdir().unwrap();
    let secret = markers()[7].clone().into_bytes();
    let needles = Needles::new([secret.as_slice()]);
    let wrap = |start: &[u8]| [start, &secret, b" and more"].concat();
    let utf16 = |bytes: &[u8]| -> Vec<u8> { bytes.iter().flat_map(|byte| [*byte, 0]).collect() };
    let mut written = vec![wrap(b"x"), utf16(&wrap(b"x"))];
    for start in [&b""[..], b"a", b"ab", b"abc"] {
        written.push(Base64::encode_string(&wrap(start)).into_bytes());
    }
    for bytes in written {
        fs::write(home.path().join("f"), bytes).unwrap();
        assert_eq!(needles.found(home.path()), BTreeSet::from([0]));
    }
    fs::write(home.path().join("f"), b"nothing").unwrap();
    assert!(needles.found(home.path()).is_empty());
}

/// A store that holds all markers, some of them deleted again.
fn fill(vault: &Vault, markers: &[String]) {
    let mut rng = Rng(11);
    for (number, marker) in markers.iter().enumerate() {
        let mut tenant = "holder".to_owned();
        let mut path = format!("/memories/d{}/{number}.md", number % 7);
        let around = store_kit::text(&mut rng, number % 12);
        let mut text = match number % 5 {
            0 => format!("{marker}{around}"),
            1 => format!("{around}{marker}\n{around}"),
            2 => format!("{around}{marker}"),
            3 => format!("{marker}\n").repeat(1 + number),
            _ => around,
        };
        if number % 5 == 4 {
            match number % 3 {
                0 => path = format!("/memories/{marker}.md"),
                1 => path = format!("/memories/{marker}/note.md"),
                _ => tenant = format!("tenants/{marker}"),
            }
        }
        let handle = vault.tenant(&tenant).unwrap();
        if number % 31 == 0 {
            // An image is stored as it is, so its bytes may hold anything.
            path = format!("/memories/{number}.png");
            let image = [png(&mut rng, 300), marker.clone().into_bytes()].concat();
            assert!(!handle.put_bytes(&path, &image).unwrap().is_error);
            continue;
        }
        assert!(!handle.create(&path, &text).unwrap().is_error);
        if number % 4 == 0 && !text.is_empty() {
            text = format!("{marker} inserted\n");
            assert!(!handle.insert(&path, 0, &text).unwrap().is_error);
        }
    }
}

fn delete_some(vault: &Vault, markers: &[String]) {
    let holder = vault.tenant("holder").unwrap();
    for number in 0..3 {
        assert!(
            !holder
                .delete(&format!("/memories/d{number}"))
                .unwrap()
                .is_error
        );
    }
    for marker in markers {
        holder.delete(&format!("/memories/{marker}.md")).unwrap();
        holder
            .rename(&format!("/memories/{marker}"), "/memories/renamed")
            .unwrap();
        holder.delete("/memories/renamed").unwrap();
    }
}

#[test]
fn no_marker_and_no_key_lies_in_any_file() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("s");
    let key = home.path().join("k");
    strongroom::generate_key_file(&key).unwrap();
    let recorder = Arc::new(Recorder::default());
    let markers = markers();
    let of_markers = Needles::new(markers.iter().map(|marker| marker.as_bytes()));
    let expect_nothing = |moment: &str| {
        assert_eq!(of_markers.found(&store), BTreeSet::new(), "{moment}");
    };

    let vault = builder(&store, &key)
        .create(true)
        .random(recorder.clone())
        .open()
        .unwrap();
    let passphrase = format!("{} as a passphrase", markers[0]);
    let second = KeySource::Passphrase(passphrase.clone().into())
        .resolve(None)
        .unwrap();
    vault.add_key(&second, "second", KdfParams::FLOOR).unwrap();
    fill(&vault, &markers);
    expect_nothing("while the store is open");
    delete_some(&vault, &markers);
    expect_nothing("after deletes, while the store is open");
    assert!(vault.verify(Depth::Full).unwrap().problems.is_empty());
    vault.close().unwrap();
    expect_nothing("after the close");
    let vault = builder(&store, &key)
        .random(recorder.clone())
        .open()
        .unwrap();
    vault
        .tenant("holder")
        .unwrap()
        .create("/memories/z.md", &markers[1])
        .unwrap();
    expect_nothing("after it was opened again");

    // The key file's text and the key in it, and all that was ever drawn with a key's size.
    // Of those only the salts of the two slots may be there: they are no secret.
    let line = fs::read_to_string(&key).unwrap();
    let payload = line.trim().rsplit(' ').next().unwrap();
    let raw = Base64UrlUnpadded::decode_vec(payload).unwrap();
    let mut secrets = vec![
        payload.as_bytes().to_vec(),
        raw[..32].to_vec(),
        passphrase.into_bytes(),
    ];
    let own = secrets.len();
    let drawn = recorder.0.lock().unwrap();
    secrets.extend(drawn.iter().filter(|bytes| bytes.len() == 32).cloned());
    assert!(secrets.len() > own + 2 * 30, "{} keys", secrets.len());
    let of_keys = Needles::new(secrets.iter().map(Vec::as_slice));
    let found = of_keys.found(&store);
    assert!(found.iter().all(|number| *number >= own), "{found:?}");
    assert_eq!(
        found.len(),
        2,
        "the salts of two slots, and nothing else: {found:?}"
    );
    let keyring = fs::read(store.join("keyring.a")).unwrap();
    for (slot, number) in found.iter().enumerate() {
        let salt = 37 + slot * 262 + 94;
        assert_eq!(keyring[salt..salt + 32], secrets[*number][..]);
    }
    vault.close().unwrap();
    assert_eq!(of_keys.found(&store), found);
}

#[test]
fn modes_are_private_whatever_the_umask() {
    if std::env::var_os(CHILD).is_some() {
        return check_modes();
    }
    for umask in ["000", "022", "277"] {
        let status = Process::new("sh")
            .args(["-c", "umask $1; shift; exec \"$@\"", "sh", umask])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "modes_are_private_whatever_the_umask"])
            .env(CHILD, umask)
            .status()
            .unwrap();
        assert!(status.success(), "under umask {umask}");
    }
}

fn check_modes() {
    let umask = std::env::var(CHILD).unwrap();
    let home = tempfile::tempdir().unwrap();
    let [store, key] = ["s", "k"].map(|name| home.path().join(name));
    strongroom::generate_key_file(&key).unwrap();
    assert_eq!(mode(&key), 0o600);
    if umask == "000" {
        fs::write(home.path().join("probe"), b"").unwrap();
        assert_eq!(
            mode(&home.path().join("probe")),
            0o666,
            "the umask is not in force"
        );
    }
    let vault = builder(&store, &key).create(true).open().unwrap();
    assert_private(&store);
    for number in 0..20 {
        let tenant = vault.tenant(&format!("t/{number}")).unwrap();
        let text = store_kit::text(&mut Rng(number), 900);
        tenant.create("/memories/a.md", &text).unwrap();
        assert_private(&store);
    }
    let killed = home.path().join("killed");
    copy_directory(&store, &killed);
    vault.close().unwrap();
    assert_private(&store);
    builder(&store, &key).open().unwrap().close().unwrap();
    assert_private(&store);

    // After a kill the engine's files are copied; after damage the copy becomes the store.
    fs::set_permissions(&killed, fs::Permissions::from_mode(0o700)).unwrap();
    for directory in directories_below(&killed) {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    }
    builder(&killed, &key).open().unwrap().close().unwrap();
    assert_private(&killed);
    let vault = builder(&killed, &key).open().unwrap();
    vault
        .tenant("t/1")
        .unwrap()
        .create("/memories/b.md", "b\n")
        .unwrap();
    let again = home.path().join("again");
    copy_directory(&killed, &again);
    vault.close().unwrap();
    let db = again.join("gen-000001/db");
    let bytes = fs::read(&db).unwrap();
    fs::write(&db, &bytes[..bytes.len() / 3]).unwrap();
    fs::set_permissions(&again, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(builder(&again, &key).open().is_err());
    assert_eq!(mode(&again.join("gen-000001")), 0o700);
    for file in files_below(&again.join("gen-000001")) {
        assert_eq!(
            mode(&again.join("gen-000001").join(&file)),
            0o600,
            "{}",
            file.display()
        );
    }
}

fn assert_private(store: &Path) {
    assert_eq!(mode(store), 0o700);
    for directory in directories_below(store) {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }
    for file in files_below(store) {
        assert_eq!(mode(&store.join(&file)), 0o600, "{}", file.display());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn directories_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(directories_below(&entry.path()));
            found.push(entry.path());
        }
    }
    found
}

/// All texts that a program could log.
#[derive(Default)]
struct Said(Vec<String>);

impl Said {
    fn debug(&mut self, value: &impl Debug) {
        self.0.push(format!("{value:?} {value:#?}"));
    }

    fn error(&mut self, error: &Error) {
        self.debug(error);
        self.0.push(error.to_string());
        let mut source = error.source();
        while let Some(error) = source {
            self.0.push(format!("{error} {error:?}"));
            source = error.source();
        }
    }

    fn outcome<T: Debug>(&mut self, outcome: &Result<T, Error>) {
        match outcome {
            Ok(value) => self.debug(value),
            Err(error) => self.error(error),
        }
    }

    fn opened(&mut self, opened: Result<Vault, Error>) -> &'static str {
        let error = opened.err().unwrap();
        self.error(&error);
        error.code().as_str()
    }
}

/// Runs commands of every kind with `marker` as content, right ones and wrong ones.
fn say_all(tenant: &Tenant, marker: &str, said: &mut Said) {
    let text = format!("{marker}\nsecond {marker}\n");
    said.outcome(&tenant.create("/memories/a.md", &text));
    said.outcome(&tenant.create("/memories/a.md", &text));
    said.outcome(&tenant.create("/memories/a.md/below.md", &text));
    said.outcome(&tenant.create("/memories/big.md", &marker.repeat(20_000)));
    said.outcome(&tenant.create("/memories/long.md", &marker.repeat(2_000)));
    said.outcome(&tenant.view("/memories/a.md", None));
    said.outcome(&tenant.view("/memories/a.md", Some(ViewRange { start: 9, end: 3 })));
    said.outcome(&tenant.str_replace("/memories/a.md", marker, "x"));
    said.outcome(&tenant.str_replace("/memories/a.md", "none", marker));
    said.outcome(&tenant.str_replace("/memories/a.md", "", marker));
    said.outcome(&tenant.str_replace("/memories/none.md", marker, marker));
    said.outcome(&tenant.insert("/memories/a.md", 99, marker));
    said.outcome(&tenant.insert("/memories/a.md", 0, marker));
    said.outcome(&tenant.put_bytes("/memories/a.png", marker.as_bytes()));
    said.outcome(&tenant.put_bytes("/memories/b.png", &[0xFF, 0xFE]));
    let image = [png(&mut Rng(1), 50), marker.as_bytes().to_vec()].concat();
    said.outcome(&tenant.put_bytes("/memories/c.png", &image));
    said.outcome(&tenant.view("/memories/c.png", None));
    for json in [
        format!(r#"{{"command":"create","path":"/memories/j.md","file_text":"{marker}"}}"#),
        format!(r#"{{"command":"create","path":"/memories/j.md","file_text":"{marker}\ud800"}}"#),
        format!(r#"{{"command":"create","path":7,"file_text":"{marker}"}}"#),
        format!(r#"{{"command":"create","path":"/memories/j.md","file_text":["{marker}"]}}"#),
        format!(r#"{{"command":"{marker}","path":"/memories/j.md"}}"#),
        format!(r#"{{"{marker}":"{marker}"}}"#),
        format!(r#"{{"command":"view","path":"/memories/j.md","view_range":"{marker}"}}"#),
        format!(
            r#"{{"command":"insert","path":"/memories/a.md","insert_line":"{marker}","insert_text":"{marker}"}}"#
        ),
        format!(r#"{{"type":"tool_use","id":"toolu_1","name":"{marker}","input":{{}}}}"#),
        format!(r#"["{marker}"]"#),
        format!("\"{marker}"),
        format!("{marker} is no JSON"),
        format!(r#"{{"command":"create","file_text":"{marker}"#),
    ] {
        said.debug(&wire::parse(json.as_bytes()));
        let answer = tenant.execute(&json);
        said.debug(&answer);
        said.debug(&answer.reply);
    }
}

#[test]
fn no_error_and_no_debug_text_holds_a_content_or_a_key() {
    let home = tempfile::tempdir().unwrap();
    let [store, key, other] = ["s", "k", "other"].map(|name| home.path().join(name));
    strongroom::generate_key_file(&key).unwrap();
    strongroom::generate_key_file(&other).unwrap();
    let marker = &markers()[3];
    let secret_line = fs::read_to_string(&key).unwrap().trim().to_owned();
    let needles = Needles::new([marker.as_bytes(), secret_line.as_bytes()]);
    let mut said = Said::default();
    let mut codes = BTreeSet::new();

    codes.insert(said.opened(Vault::builder().path(&store).open()));
    codes.insert(said.opened(Vault::builder().key_file(&key).open()));
    codes.insert(said.opened(builder(&store, &key).open()));
    let vault = builder(&store, &key).create(true).open().unwrap();
    codes.insert(said.opened(builder(&store, &key).open()));
    let tenant = vault.tenant("one").unwrap();
    say_all(&tenant, marker, &mut said);
    for name in ["", "a b", &marker.repeat(9), "/x"] {
        said.error(&vault.tenant(name).err().unwrap());
    }
    let stats = vault.stats().unwrap();
    said.debug(&stats);
    said.debug(&vault.verify(Depth::Full).unwrap());
    said.debug(&vault.key_slots());
    said.debug(&vault.policy());
    said.outcome(&vault.remove_key(99));
    vault.close().unwrap();
    said.outcome(&tenant.view("/memories/a.md", None));

    let read_only = builder(&store, &key).read_only(true).open().unwrap();
    say_all(&read_only.tenant("one").unwrap(), marker, &mut said);
    drop(read_only);
    codes.insert(said.opened(builder(&store, &other).open()));

    // Each file of the store damaged in turn, and everything asked of what still opens.
    for file in files_below(&store) {
        for step in 0..6 {
            let damaged = tempfile::tempdir().unwrap();
            copy_directory(&store, damaged.path());
            let path = damaged.path().join(&file);
            let mut bytes = fs::read(&path).unwrap();
            let at = bytes.len() * step / 6;
            for byte in bytes.iter_mut().skip(at).take(600) {
                *byte ^= 0x55;
            }
            if step == 0 {
                bytes.clear();
            }
            fs::write(&path, bytes).unwrap();
            match builder(damaged.path(), &key).open() {
                Err(error) => {
                    codes.insert(error.code().as_str());
                    said.error(&error);
                }
                Ok(vault) => {
                    said.outcome(&vault.verify(Depth::Full));
                    said.outcome(&vault.stats());
                    match vault.tenant("one") {
                        Err(error) => said.error(&error),
                        Ok(tenant) => say_all(&tenant, marker, &mut said),
                    }
                }
            }
        }
    }
    let damaged = tempfile::tempdir().unwrap();
    copy_directory(&store, damaged.path());
    fs::remove_dir_all(damaged.path().join("keys")).unwrap();
    let vault = builder(damaged.path(), &key).open().unwrap();
    said.error(&vault.tenant("one").err().unwrap());
    said.outcome(&vault.verify(Depth::Full));
    drop(vault);

    // Secrets in the wrong place: a key line as a passphrase, as a path, inside a file.
    for source in [
        KeySource::Line(format!("{secret_line}x").into()),
        KeySource::Line(secret_line.to_uppercase().into()),
        KeySource::Passphrase(secret_line.clone().into()),
        KeySource::Passphrase(secret_line.repeat(30).into()),
        KeySource::Command {
            argv: vec![
                "sh".into(),
                "-c".into(),
                format!("echo {secret_line}x; exit 3"),
            ],
            timeout: std::time::Duration::from_secs(5),
        },
        KeySource::Command {
            argv: vec!["sh".into(), "-c".into(), format!("echo {secret_line} >&2")],
            timeout: std::time::Duration::from_secs(5),
        },
    ] {
        said.debug(&source);
        said.opened(Vault::builder().path(&store).key_source(source).open());
    }
    let text = format!("schema = 1\n[limits]\nmax_files = \"{marker}\"\n");
    said.error(
        &policy::load(&text.replace(marker, "x"), "test.toml")
            .err()
            .unwrap()
            .into(),
    );
    for command in [
        Command::Create {
            path: "/memories/a".into(),
            file_text: marker.clone(),
        },
        Command::Insert {
            path: "/memories/a".into(),
            insert_line: 1,
            insert_text: marker.clone(),
        },
        Command::StrReplace {
            path: "/memories/a".into(),
            old_str: marker.clone(),
            new_str: marker.clone(),
        },
    ] {
        said.debug(&command);
    }
    said.debug(
        &edit::view_file("/memories/a", marker, Some((7, 9)), 100)
            .err()
            .unwrap(),
    );

    let leaks: Vec<&String> = said
        .0
        .iter()
        .filter(|text| needles.found_in(text))
        .collect();
    assert!(
        leaks.is_empty(),
        "{} of {}: {leaks:#?}",
        leaks.len(),
        said.0.len()
    );
    assert!(said.0.len() > 200, "only {} texts", said.0.len());
    for code in ["key", "usage", "not_found", "locked", "integrity"] {
        assert!(codes.contains(code), "never provoked: {code}; {codes:?}");
    }
}
