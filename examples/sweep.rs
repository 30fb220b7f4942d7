//! Measures `expire` on a large store: `cargo run --release --example sweep [TENANTS [DIRECTORY]]`.
//!
//! Each store has TENANTS (1,000) tenants of 100 files, so 100,000 files. Printed is how long
//! one `expire` over all tenants takes on a store that was just opened, beside the same on a
//! store that holds the same expired files and nothing else; once with the expired files in
//! every tenant, once with all of them in 1 % of the tenants. Then half of all files are kept
//! by "never" or by a hold, under two rules of 7 d and 90 d: in directories of their own, and
//! mixed with the files that expire. Each figure is the median of three stores' first sweeps.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring program"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strongroom::clock::ManualClock;
use strongroom::{Vault, policy};

const DAY: u64 = 24 * 3_600 * 1_000;
/// 2026-01-01.
const START: u64 = 1_767_225_600_000;
/// When files are swept that were created at the start.
const SWEPT_AT: u64 = START + 100 * DAY;
/// When all files were made that are not expired then.
const FRESH_AT: u64 = SWEPT_AT - DAY;

const MONTH: &str = "[retention]\nexpire_after_last_access = \"30d\"\n";
const TWO_RULES: &str = r#"
[retention]
expire_after_last_access = "90d"
[[retention.rules]]
paths = ["/memories/sessions/**", "/memories/mixed/session-*"]
expire_after_last_access = "7d"
[[retention.rules]]
paths = ["/memories/keep/**", "/memories/mixed/keep-*"]
expire_after_last_access = "never"
"#;

/// A file of one tenant: its path, and whether it was made long ago.
type File = (String, bool);

/// The files of the tenant with this number.
type Files<'a> = dyn Fn(usize) -> Vec<File> + Sync + 'a;

fn main() {
    let mut args = std::env::args().skip(1);
    let tenants: usize = args.next().map_or(1_000, |count| count.parse().unwrap());
    let home = args.next().map_or_else(std::env::temp_dir, PathBuf::from);

    let spread = |_: usize| -> Vec<File> {
        (0..100)
            .map(|file| (format!("/memories/d{}/f{file}.md", file / 10), file == 0))
            .collect()
    };
    let gathered = move |tenant: usize| -> Vec<File> {
        let is_old = tenant < tenants / 100;
        (0..100)
            .map(|file| (format!("/memories/d{}/f{file}.md", file / 10), is_old))
            .collect()
    };
    compare(
        "1 % expired, in every tenant",
        &home,
        tenants,
        MONTH,
        &[],
        &spread,
    );
    compare(
        "1 % expired, all in 1 % of the tenants",
        &home,
        tenants,
        MONTH,
        &[],
        &gathered,
    );

    // 25 files under "never", 25 under a hold, all of them old; 25 under each rule, one of
    // those under the rule of 7 d old.
    let apart = |_: usize| -> Vec<File> {
        let mut files = Vec::new();
        for file in 0..25 {
            files.push((format!("/memories/keep/f{file}.md"), true));
            files.push((format!("/memories/held/f{file}.md"), true));
            files.push((format!("/memories/sessions/f{file}.md"), file == 0));
            files.push((format!("/memories/notes/f{file}.md"), false));
        }
        files
    };
    let mixed = |_: usize| -> Vec<File> {
        let mut files = Vec::new();
        for file in 0..25 {
            files.push((format!("/memories/mixed/keep-{file}.md"), true));
            files.push((format!("/memories/mixed/held-{file}.md"), true));
            files.push((format!("/memories/mixed/session-{file}.md"), file == 0));
            files.push((format!("/memories/mixed/note-{file}.md"), false));
        }
        files
    };
    let held_apart = ["/memories/held".to_owned()];
    let held_mixed: Vec<String> = (0..25)
        .map(|file| format!("/memories/mixed/held-{file}.md"))
        .collect();
    compare(
        "half kept, in directories of their own",
        &home,
        tenants,
        TWO_RULES,
        &held_apart,
        &apart,
    );
    compare(
        "half kept, mixed with the others",
        &home,
        tenants,
        TWO_RULES,
        &held_mixed,
        &mixed,
    );
}

/// Sweeps the store, and one with nothing but its files that will expire.
fn compare(
    what: &str,
    home: &Path,
    tenants: usize,
    rules: &str,
    held: &[String],
    files: &Files<'_>,
) {
    let keeps = |path: &str| {
        path.contains("/keep") || held.iter().any(|held| path.starts_with(held.as_str()))
    };
    let expired = |tenant: usize| -> Vec<File> {
        let expires = |(path, is_old): &File| *is_old && !keeps(path);
        files(tenant).into_iter().filter(expires).collect()
    };
    println!("{what}");
    let (whole, whole_cpu) = sweep(home, tenants, rules, held, files);
    let (alone, alone_cpu) = sweep(home, tenants, rules, &[], &expired);
    println!(
        "  ratio {:.2}, of the processor's time {:.2}",
        whole.as_secs_f64() / alone.as_secs_f64(),
        whole_cpu as f64 / alone_cpu as f64
    );
}

/// Makes a store three times and sweeps it; the median.
fn sweep(
    home: &Path,
    tenants: usize,
    rules: &str,
    held: &[String],
    files: &Files<'_>,
) -> (Duration, u64) {
    let directory = tempfile::tempdir_in(home).unwrap();
    let (store, key) = (directory.path().join("store"), directory.path().join("key"));
    strongroom::generate_key_file(&key).unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let open = || {
        Vault::builder()
            .path(&store)
            .key_file(&key)
            .clock(clock.clone())
            .policy(policy::load(rules, "sweep").unwrap())
            .create(true)
            .open()
            .unwrap()
    };
    let vault = open();
    fill(&vault, tenants, files, true);
    hold(&vault, tenants, held);
    clock.set(FRESH_AT);
    fill(&vault, tenants, files, false);
    vault.close().unwrap();

    // Copies, so that making the files, by far the longest part, is done once.
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    let mut counts = (0, 0, 0, 0);
    let kept = directory.path().join("kept");
    std::fs::rename(&store, &kept).unwrap();
    for _ in 0..3 {
        copy(&kept, &store);
        clock.set(SWEPT_AT);
        let vault = open();
        let before = vault.stats().unwrap();
        let (start, busy) = (Instant::now(), cpu_ms());
        let report = vault.expire(None, false, |_, _| ()).unwrap();
        times.push(start.elapsed());
        cpu.push(cpu_ms() - busy);
        assert!(report.failed.is_empty() && report.not_reached.is_empty());
        let total = |stats: &strongroom::StoreStats| stats.tenants.iter().map(|t| t.files).sum();
        let after = vault.stats().unwrap();
        let (all, left): (u64, u64) = (total(&before), total(&after));
        let syncs = after.backend.syncs - before.backend.syncs;
        counts = (all, all - left, after.commits - before.commits, syncs);
        vault.close().unwrap();
        std::fs::remove_dir_all(&store).unwrap();
    }
    times.sort_unstable();
    cpu.sort_unstable();
    let median = times.get(1).copied().unwrap();
    let (all, gone, commits, syncs) = counts;
    println!(
        "  {all} files, {gone} expired: {:.0} ms, {commits} commits, {syncs} syncs (three runs: {times:.2?}, of the processor {cpu:?} ms)",
        median.as_secs_f64() * 1_000.0
    );
    (median, cpu.get(1).copied().unwrap())
}

fn fill(vault: &Vault, tenants: usize, files: &Files<'_>, old: bool) {
    const THREADS: usize = 16;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in (thread..tenants).step_by(THREADS) {
                    let mut wanted = files(number);
                    wanted.retain(|(_, is_old)| *is_old == old);
                    if wanted.is_empty() {
                        continue;
                    }
                    let tenant = vault.tenant(&format!("t{number}")).unwrap();
                    for (path, _) in wanted {
                        let reply = tenant.create(&path, &format!("A note.\n{path}\n")).unwrap();
                        assert!(!reply.is_error, "{:?}", reply.as_text());
                    }
                }
            });
        }
    });
}

fn hold(vault: &Vault, tenants: usize, paths: &[String]) {
    for number in 0..tenants {
        let tenant = vault.tenant(&format!("t{number}")).unwrap();
        for path in paths {
            assert!(!tenant.add_hold(path, "a case", None).unwrap().is_error);
        }
    }
}

/// What this process has used of the processor so far: fields 14 and 15 of its `stat`, in
/// hundredths of a second. Says more than the clock where others work too.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap() * 10).sum()
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(done.unwrap().success());
}
