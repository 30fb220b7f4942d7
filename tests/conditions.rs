//! Real conditions of a machine: a full disk, a read-only one, another user, no more open
//! files, a file size limit. Each gives an error of its own kind, and loses nothing.
//!
//! What a machine does not allow is skipped, and said.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod support;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use strongroom::{Code, Error, StoreError, Vault};

use support::{assert_whole, plain_policy};

/// Set for a child: what it is to do, and the home of its store.
const TASK: &str = "STRONGROOM_TEST_TASK";
const HOME: &str = "STRONGROOM_TEST_HOME";

fn open(home: &Path, read_only: bool) -> Result<Vault, Error> {
    Vault::builder()
        .path(home.join("store"))
        .key_file(home.join("key"))
        .policy(plain_policy())
        .create(!read_only)
        .read_only(read_only)
        .open()
}

/// A home with a key and a store of 20 files, closed in order.
fn filled(home: &Path) {
    strongroom::generate_key_file(home.join("key")).unwrap();
    let vault = open(home, false).unwrap();
    let tenant = vault.tenant("one").unwrap();
    for number in 0..20 {
        let reply = tenant.create(&path(number), &text(number)).unwrap();
        assert!(!reply.is_error);
    }
    vault.close().unwrap();
}

fn path(number: u64) -> String {
    format!("/memories/d{}/{number}.md", number % 3)
}

fn text(number: u64) -> String {
    format!("file {number}\n").repeat(400)
}

/// The first `count` files are there, and all verifies.
fn assert_filled(home: &Path, count: u64, when: &str) {
    let vault = open(home, false).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert_readable(&vault, count, when);
    assert_whole(&vault, when);
    vault.close().unwrap();
}

fn assert_readable(vault: &Vault, count: u64, when: &str) {
    let tenant = vault.tenant("one").unwrap();
    for number in 0..count {
        let reply = tenant.view(&path(number), None).unwrap();
        let shown = reply.as_text().unwrap();
        assert!(
            !reply.is_error && shown.contains(&format!("   400\tfile {number}")),
            "{when}: file {number}: {shown:.100}"
        );
    }
}

/// Runs this test binary again as a child, with the command that `wrap` makes.
fn child(task: &str, home: &Path, wrap: impl FnOnce(&Path) -> Command) -> (bool, String) {
    let output = wrap(&std::env::current_exe().unwrap())
        .env(TASK, task)
        .env(HOME, home)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

const ENTRY: [&str; 4] = ["child_entry", "--exact", "--nocapture", "--test-threads=1"];

/// Lines `ok WHAT` and `error CODE TEXT` on standard error, whatever happens.
#[test]
fn child_entry() {
    let (Ok(task), Ok(home)) = (std::env::var(TASK), std::env::var(HOME)) else {
        return;
    };
    let home = PathBuf::from(home);
    let vault = match open(&home, false) {
        Ok(vault) => vault,
        Err(error) => return say_error(&error),
    };
    say("ok open");
    let done = match task.as_str() {
        "write" => write_some(&vault),
        "crash" => {
            let _written = write_some(&vault);
            std::process::exit(0); // Without closing.
        }
        _ => panic!("an unknown task"),
    };
    if let Err(error) = done {
        say_error(&error);
        match vault
            .tenant("one")
            .and_then(|tenant| tenant.view("/memories", None))
        {
            Ok(_) => say("ok read"),
            Err(error) => say_error(&error),
        }
    }
    if let Err(error) = vault.close() {
        say_error(&error);
    }
}

/// Writes files 20 to 60 and says each.
fn write_some(vault: &Vault) -> Result<(), Error> {
    let tenant = vault.tenant("one")?;
    for number in 20..60 {
        let reply = tenant.create(&path(number), &text(number))?;
        // From an earlier child.
        let is_there = reply.as_text().unwrap().contains("already exists");
        assert!(!reply.is_error || is_there, "{:?}", reply.as_text());
        say(&format!("ok {number}"));
    }
    Ok(())
}

fn say(line: &str) {
    use std::io::Write;
    let _written = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

fn say_error(error: &Error) {
    say(&format!("error {} {error}", error.code().as_str()));
}

/// How many files the child knows to be stored.
fn acknowledged(said: &str) -> u64 {
    said.lines()
        .filter_map(|line| line.strip_prefix("ok ")?.parse::<u64>().ok())
        .max()
        .map_or(20, |last| last + 1)
}

fn errors(said: &str) -> Vec<&str> {
    said.lines()
        .filter(|line| line.starts_with("error "))
        .collect()
}

/// A mount that goes with this value.
struct Mount(PathBuf);

impl Mount {
    fn new(at: &Path, arguments: &[&str]) -> Option<Self> {
        let ran = Command::new("mount").args(arguments).arg(at).output();
        match ran {
            Ok(output) if output.status.success() => Some(Self(at.to_path_buf())),
            _ => {
                println!("skipped: this machine does not let the test mount anything");
                None
            }
        }
    }

    fn again(&self, options: &str) {
        let ran = Command::new("mount")
            .args(["-o", options])
            .arg(&self.0)
            .status();
        assert!(ran.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// What makes room must be possible where there is none for writes.
#[test]
fn on_a_full_disk_something_can_be_deleted_and_erased() {
    let home = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(home.path(), &["-t", "tmpfs", "-o", "size=24m", "tmpfs"]) else {
        return;
    };
    filled(home.path());
    let vault = open(home.path(), false).unwrap();
    let other = vault.tenant("two").unwrap();
    assert!(!other.create("/memories/a.md", "a\n").unwrap().is_error);
    let tenant = vault.tenant("one").unwrap();
    let mut count = 20;
    let error = loop {
        match tenant.create(&path(count), &text(count)) {
            Ok(reply) => assert!(!reply.is_error),
            Err(error) => break error,
        }
        count += 1;
        assert!(count < 20_000, "the disk never gets full");
    };
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    assert!(!tenant.delete(&path(3)).unwrap().is_error);
    assert!(!tenant.delete("/memories/d1").unwrap().is_error);
    let erased = vault.erase_tenant("two", |_, _| ()).unwrap();
    assert!(erased.deleted.is_some());
    // Nothing else got through meanwhile.
    let error = tenant.create(&path(count), &text(count)).unwrap_err();
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    assert_whole(&vault, "full disk");
    vault.close().unwrap();
    let vault = open(home.path(), false).unwrap();
    let tenant = vault.tenant("one").unwrap();
    for gone in [path(3), path(1)] {
        assert!(tenant.view(&gone, None).unwrap().is_error, "{gone}");
    }
    assert!(!tenant.view(&path(2), None).unwrap().is_error);
    assert_whole(&vault, "opened again");
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(home.path(), &["-t", "tmpfs", "-o", "size=16m", "tmpfs"]) else {
        return;
    };
    filled(home.path());
    let vault = open(home.path(), false).unwrap();
    let tenant = vault.tenant("one").unwrap();
    let mut count = 20;
    let error = loop {
        match tenant.create(&path(count), &text(count)) {
            Ok(reply) => assert!(!reply.is_error),
            Err(error) => break error,
        }
        count += 1;
        assert!(count < 20_000, "the disk never gets full");
    };
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    assert_readable(&vault, count, "full disk");
    assert!(
        tenant.view(&path(count), None).unwrap().is_error,
        "a refused write is there"
    );
    // The same handle goes on once there is room.
    mount.again("remount,size=64m");
    for number in count..count + 20 {
        assert!(
            !tenant
                .create(&path(number), &text(number))
                .unwrap()
                .is_error
        );
    }
    count += 20;
    vault.close().unwrap();
    assert_filled(home.path(), count, "after the full disk");

    // Not a byte left: what opens reads, what does not open says why.
    let ballast = home.path().join("ballast");
    mount.again("remount,size=96m");
    fill(&ballast);
    match open(home.path(), false) {
        Ok(vault) => {
            assert_readable(&vault, count, "no byte left");
            let error = vault
                .tenant("one")
                .unwrap()
                .create("/memories/x", "x\n")
                .unwrap_err();
            assert_eq!(error.code(), Code::NoSpace, "{error}");
            let _closed = vault.close();
        }
        Err(error) => assert_eq!(error.code(), Code::NoSpace, "{error}"),
    }
    unfill(&ballast);
    assert_filled(home.path(), count, "after no byte was left");

    // The same after a crash, when opening wants to copy the engine's files first.
    let (_, said) = child("crash", home.path(), |binary| {
        let mut command = Command::new(binary);
        command.args(ENTRY);
        command
    });
    assert!(errors(&said).is_empty(), "{said}");
    fill(&ballast);
    match open(home.path(), false) {
        Ok(vault) => {
            assert_readable(&vault, count, "no byte left after a crash");
            let _closed = vault.close();
        }
        Err(error) => assert_eq!(error.code(), Code::NoSpace, "{error}"),
    }
    unfill(&ballast);
    assert_filled(home.path(), count.max(60), "after a crash without room");
}

#[test]
fn a_full_disk_puts_rotations_erasures_and_compaction_off_and_harms_nothing() {
    let home = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(home.path(), &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) else {
        return;
    };
    filled(home.path());
    let vault = open(home.path(), false).unwrap();
    let ballast = home.path().join("ballast");
    fill(&ballast);
    let none = |_: u64, _: u64| ();
    let codes = [
        vault.rotate_keys(None, |_, _, _| ()).map(drop),
        vault.rotate_master(None, false, none).map(drop),
        vault.erase_tenant("one", none).map(drop),
        vault.compact(none).map(drop),
    ];
    for done in codes {
        assert_eq!(done.unwrap_err().code(), Code::NoSpace);
    }
    assert_readable(&vault, 20, "no byte left");
    unfill(&ballast);
    // The same handle goes on once there is room.
    vault.rotate_keys(None, |_, _, _| ()).unwrap();
    vault.rotate_master(None, false, none).unwrap();
    vault.compact(none).unwrap();
    vault.close().unwrap();
    fill(&ballast);
    let builder = Vault::builder()
        .path(home.path().join("store"))
        .key_file(home.path().join("key"));
    let error = builder.rotate_full(None, false, none).unwrap_err();
    assert_eq!(error.code(), Code::NoSpace, "{error}");
    unfill(&ballast);
    assert_filled(home.path(), 20, "after no byte was left");
    builder.rotate_full(None, false, none).unwrap();
    assert_filled(home.path(), 20, "with every key new");
}

/// Writes until the disk is full.
fn fill(ballast: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(ballast).unwrap();
    for bytes in [1 << 20, 1 << 12, 1] {
        let block = vec![7; bytes];
        loop {
            match file.write(&block) {
                Ok(written) if written > 0 => {}
                _ => break,
            }
        }
    }
}

/// Gives the room back at once: another test's child that is just being started may still hold
/// the file open, and would keep what is only removed.
fn unfill(ballast: &Path) {
    fs::write(ballast, "").unwrap();
    fs::remove_file(ballast).unwrap();
}

#[test]
fn a_read_only_disk_is_named() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let source = home.path().to_str().unwrap().to_owned();
    let Some(mount) = Mount::new(home.path(), &["--bind", &source]) else {
        return;
    };
    mount.again("remount,bind,ro");
    for read_only in [false, true] {
        match open(home.path(), read_only) {
            // Where the engine opens without writing.
            Ok(vault) => {
                assert_readable(&vault, 20, "read-only disk");
                let error = vault
                    .tenant("one")
                    .unwrap()
                    .create("/memories/x", "x\n")
                    .unwrap_err();
                assert_ne!(error.code(), Code::Integrity, "{error}");
            }
            Err(Error::Store(StoreError::Io(kind))) => {
                assert_eq!(kind, ErrorKind::ReadOnlyFilesystem);
                println!("read-only disk, opened with read_only({read_only}): refused");
            }
            Err(error) => panic!("{error}"),
        }
    }
    drop(mount);
    assert_filled(home.path(), 20, "after the read-only disk");
}

/// A child has copies of all open files, and with them their locks, from `fork` to `exec`.
/// A store that was closed meanwhile must open again all the same. (sled also lets go of
/// its own lock only when the last of its threads ends, which may be after `close`.)
#[test]
fn a_closed_store_opens_again_at_once_in_a_process_that_starts_others() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _ran = Command::new("true").status();
                }
            });
        }
        let mut failures = Vec::new();
        for number in 0..150 {
            match open(home.path(), false) {
                Ok(vault) => {
                    let tenant = vault.tenant("one").unwrap();
                    let path = format!("/memories/again/{number}.md");
                    assert!(!tenant.create(&path, "again\n").unwrap().is_error);
                    vault.close().unwrap();
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(
            failures.is_empty(),
            "{} failures, {}",
            failures.len(),
            failures[0]
        );
    });
}

#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    filled(home.path());
    let binary = home.path().join("binary");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    for has_key in [false, true] {
        if has_key {
            std::os::unix::fs::chown(home.path().join("key"), Some(65_534), Some(65_534)).unwrap();
        }
        let (_, said) = child("write", home.path(), |_| {
            let mut command = Command::new(&binary);
            command.args(ENTRY).uid(65_534).gid(65_534);
            command
        });
        let errors = errors(&said);
        assert_eq!(errors.len(), 1, "{said}");
        let is_clear = errors[0].to_lowercase().contains("permission denied");
        assert!(is_clear, "has key: {has_key}: {}", errors[0]);
    }
    std::os::unix::fs::chown(home.path().join("key"), Some(0), Some(0)).unwrap();
    assert_filled(home.path(), 20, "after another user");
}

/// Runs the child under limits of the shell's `ulimit`, and checks what it left.
fn limited(home: &Path, limit: &str, is_right: impl Fn(&str) -> bool) -> (bool, u64) {
    let (_, said) = child("write", home, |binary| {
        let mut command = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit {limit} && exec \"$0\" \"$@\"");
        command.arg("-c").arg(script).arg(binary).args(ENTRY);
        command
    });
    let when = format!("ulimit {limit}");
    for error in errors(&said) {
        assert!(is_right(error), "{when}: {error}\n{said}");
    }
    let count = acknowledged(&said);
    let has_started = said.contains("ok open") || !errors(&said).is_empty();
    assert_filled(home, count, &when);
    (has_started && !errors(&said).is_empty(), count)
}

#[test]
fn too_few_open_files_is_no_damage() {
    let mut refused = 0;
    for crashed in [false, true] {
        for files in 6..=17 {
            let home = tempfile::tempdir().unwrap();
            filled(home.path());
            if crashed {
                child("crash", home.path(), |binary| {
                    let mut command = Command::new(binary);
                    command.args(ENTRY);
                    command
                });
            }
            let (was_refused, _) = limited(home.path(), &format!("-n {files}"), |error| {
                !error.starts_with("error integrity") && !error.starts_with("error not_found")
            });
            refused += u64::from(was_refused);
        }
    }
    println!("{refused} of 24 runs were short of open files");
    assert!(refused > 2);
}

#[test]
fn a_file_size_limit_is_no_damage() {
    let mut refused = 0;
    for kilobytes in [520, 600, 800, 1_000, 1_100, 1_400, 1_600] {
        let home = tempfile::tempdir().unwrap();
        filled(home.path());
        // In blocks of 512 bytes.
        let limit = format!("-f {}", kilobytes * 2);
        let (was_refused, count) = limited(home.path(), &limit, |error| {
            !error.starts_with("error integrity")
        });
        println!("{kilobytes} KiB: {} more files", count - 20);
        refused += u64::from(was_refused);
    }
    println!("{refused} of 7 runs met the limit");
    assert!(refused > 0);
}
