//! Measures work on a store while its record key is rotated: throughput of 4 threads before and
//! during, with every answer checked.
//!
//! `cargo run --release --example rotation [FILES]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong, and prints what it measured"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strongroom::{Depth, Tenant, Vault};

const THREADS: usize = 4;
const BEFORE: Duration = Duration::from_secs(5);

fn main() {
    let files: usize = std::env::args()
        .nth(1)
        .map_or(10_000, |text| text.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    strongroom::generate_key_file(&key).unwrap();
    let text = "schema = 1\nextends = [\"default\"]\n[limits]\nmax_files = 100_000\n[redaction]\nrule_packs = []\n";
    let policy = strongroom::policy::load(text, "the example's policy").unwrap();
    let vault = Vault::builder()
        .path(home.path().join("store"))
        .key_file(&key)
        .policy(policy)
        .create(true)
        .open()
        .unwrap();
    let tenant = vault.tenant("one").unwrap();
    std::thread::scope(|scope| {
        for part in 0..8 {
            let tenant = &tenant;
            scope.spawn(move || {
                for number in (part..files).step_by(8) {
                    assert!(
                        !tenant
                            .create(&path(number), &content(number, 0))
                            .unwrap()
                            .is_error
                    );
                }
            });
        }
    });
    println!("{files} files in one tenant");
    for kind in [Kind::Mixed, Kind::Reads] {
        measure(&vault, &tenant, files, kind);
    }
    let report = vault.verify(Depth::Full).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    println!("verified: {} files, no problem", report.files);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Three views, then an edit.
    Mixed,
    Reads,
}

fn measure(vault: &Vault, tenant: &Tenant, files: usize, kind: Kind) {
    let (end, done, longest) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (end, done, longest) = (&end, &done, &longest);
            scope.spawn(move || {
                // Each thread edits files of its own, and reads them and others.
                let mut versions = vec![0_u64; files];
                for step in 0_usize.. {
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                    let number = (step * 7_919 + thread * 31) % files;
                    let own = number - number % THREADS + thread;
                    let began = Instant::now();
                    if kind == Kind::Mixed && step % 4 == 3 && own < files {
                        let version = versions[own];
                        let old = line(own, version);
                        let new = line(own, version + 1);
                        let reply = tenant.str_replace(&edited(own), &old, &new).unwrap();
                        if reply.is_error {
                            let made = tenant
                                .create(&edited(own), &content(own, version + 1))
                                .unwrap();
                            assert!(!made.is_error, "{:?}", reply.as_text());
                        }
                        versions[own] += 1;
                    } else {
                        let reply = tenant.view(&path(number), None).unwrap();
                        assert!(
                            reply.as_text().unwrap().contains(&line(number, 0)),
                            "{number}"
                        );
                    }
                    longest.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                }
                // Nothing is left for the next measurement.
                for (number, _) in versions
                    .iter()
                    .enumerate()
                    .filter(|(_, version)| **version > 0)
                {
                    assert!(!tenant.delete(&edited(number)).unwrap().is_error);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(500));
        let rate = |time: Duration, count: u64| count as f64 / time.as_secs_f64();
        let (began, from) = (Instant::now(), done.load(Ordering::Relaxed));
        std::thread::sleep(BEFORE);
        let before = rate(began.elapsed(), done.load(Ordering::Relaxed) - from);
        let longest_before = longest.swap(0, Ordering::Relaxed);
        let (began, from) = (Instant::now(), done.load(Ordering::Relaxed));
        vault.rotate_keys(Some("one"), |_, _, _| ()).unwrap();
        let took = began.elapsed();
        let during = rate(took, done.load(Ordering::Relaxed) - from);
        let longest_during = longest.load(Ordering::Relaxed);
        end.store(true, Ordering::Relaxed);
        println!(
            "{kind:?}, {THREADS} threads: {before:.0} per second before (longest {longest_before} us), \
             {during:.0} during a rotation of {:.1} s (longest {longest_during} us): {:.0} %",
            took.as_secs_f64(),
            100.0 * during / before
        );
    });
}

fn path(number: usize) -> String {
    format!("/memories/d{}/{number}.md", number % 10)
}

fn edited(number: usize) -> String {
    format!("/memories/edited/{number}.md")
}

fn line(number: usize, version: u64) -> String {
    format!("<<{number} {version}>>")
}

fn content(number: usize, version: u64) -> String {
    format!(
        "{}\n{}",
        line(number, version),
        "some words of a note\n".repeat(20 + number % 50)
    )
}
