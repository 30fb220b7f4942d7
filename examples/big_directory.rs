//! Measures one directory of 10,000 files: `cargo run --release --example big_directory [FILES]`.
//!
//! Prints figures and ratios of one run: the warm listing, a create there against a create
//! in an empty directory, renaming and deleting it against one file, how long a reader of
//! another tenant waits meanwhile, and the resident memory at the end.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measuring program"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strongroom::{Tenant, Vault, policy};

const POLICY: &str = "schema = 1\n[limits]\nmax_files = 1_000_000\nmax_total_bytes = \"1GiB\"\n";
const SAMPLES: u32 = 200;

fn main() {
    let files: usize = std::env::args()
        .nth(1)
        .map_or(10_000, |count| count.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    strongroom::generate_key_file(&key).unwrap();
    let vault = Vault::builder()
        .path(home.path().join("store"))
        .key_file(&key)
        .create(true)
        .policy(policy::load(POLICY, "big").unwrap())
        .open()
        .unwrap();
    let tenant = vault.tenant("big").unwrap();
    let other = vault.tenant("other").unwrap();
    create(&other, "/memories/note.md");

    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let tenant = &tenant;
            scope.spawn(move || {
                for file in (thread..files).step_by(8) {
                    create(tenant, &format!("/memories/d/f{file:06}.md"));
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "loaded {files} files with 8 threads: {:.0} creates/s",
        files as f64 / seconds
    );

    let listing = time(|| drop(tenant.view("/memories/d", None).unwrap()));
    let again = time(|| drop(tenant.view("/memories/d", None).unwrap()));
    let text = tenant.view("/memories/d", None).unwrap();
    let text = text.as_text().unwrap().to_owned();
    println!(
        "listing: {} first, {} again, {} lines, last: {:?}",
        ms(listing),
        ms(again),
        text.lines().count(),
        text.lines().last().unwrap()
    );

    create(&tenant, "/memories/empty/first.md");
    let (mut in_big, mut in_empty) = (Vec::new(), Vec::new());
    for sample in 0..SAMPLES {
        in_big.push(time(|| {
            create(&tenant, &format!("/memories/d/new{sample}.md"))
        }));
        in_empty.push(time(|| {
            create(&tenant, &format!("/memories/e{sample}/new.md"))
        }));
    }
    let (in_big, in_empty) = (median(in_big), median(in_empty));
    println!(
        "create there {}, in an empty directory {}, ratio {:.2}",
        ms(in_big),
        ms(in_empty),
        in_big.as_secs_f64() / in_empty.as_secs_f64()
    );

    create(&tenant, "/memories/one.md");
    let one_rename = time(|| {
        ok(&tenant
            .rename("/memories/one.md", "/memories/two.md")
            .unwrap())
    });
    let one_delete = time(|| ok(&tenant.delete("/memories/two.md").unwrap()));
    let stop = AtomicBool::new(false);
    let (longest, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    let (rename, delete, reaped) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let took = time(|| ok(&other.view("/memories/note.md", None).unwrap()));
                longest.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let rename = time(|| ok(&tenant.rename("/memories/d", "/memories/moved").unwrap()));
        let delete = time(|| ok(&tenant.delete("/memories/moved").unwrap()));
        let start = Instant::now();
        while vault.stats().unwrap().pending_removals > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        (rename, delete, start.elapsed())
    });
    println!(
        "rename: directory {}, file {}, ratio {:.2}",
        ms(rename),
        ms(one_rename),
        rename.as_secs_f64() / one_rename.as_secs_f64()
    );
    println!(
        "delete: directory {}, file {}, ratio {:.2}; all removed after {}",
        ms(delete),
        ms(one_delete),
        delete.as_secs_f64() / one_delete.as_secs_f64(),
        ms(reaped)
    );
    println!(
        "another tenant's reader meanwhile: {} reads, longest wait {:.1} ms",
        reads.into_inner(),
        longest.into_inner() as f64 / 1000.0
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"))
    {
        println!("{line}");
    }
    let start = Instant::now();
    let report = vault.verify(strongroom::Depth::Full).unwrap();
    println!(
        "verify: {} files, {} problems, {}",
        report.files,
        report.problems.len(),
        ms(start.elapsed())
    );
    vault.close().unwrap();
}

fn create(tenant: &Tenant, path: &str) {
    ok(&tenant.create(path, "one short note\n").unwrap());
}

fn ok(reply: &strongroom::wire::Reply) {
    assert!(!reply.is_error, "{:?}", reply.as_text());
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
