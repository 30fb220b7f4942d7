//! What grows with the store: opening, memory, first reads, listings, and the operator's long runs.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use strongroom::Depth;
use strongroom::clock::{Clock, ManualClock, SystemClock};

use crate::contender::{Contender, Own, peers, run_on};
use crate::fixture::{ROOM, Site};
use crate::report::{Report, Series, median};
use crate::{Options, Res, start, workload};

/// Files that expire a month after the last access.
const MONTH: &str = "[retention]\nexpire_after_last_access = \"30d\"\n";

/// A store with more files is not copied.
const LARGE: usize = 100_000;

pub fn run(options: &Options, report: &mut Report) -> Res<()> {
    let sizes: &[usize] = if options.quick {
        &[1_000, 5_000]
    } else {
        &[1_000, 10_000, LARGE]
    };
    let mut hot = Vec::new();
    for files in sizes {
        hot.push(store_of(*files, options, report)?);
    }
    if options.million {
        store_of(1_000_000, options, report)?;
    }
    if let (Some(small), Some(large)) = (hot.first(), hot.last()) {
        report.figure(
            "view, hot: largest store against the smallest",
            large / small,
            "x",
            "<= 2",
        );
    }
    expiry(options, report)?;
    listings(options, report)
}

/// One store. Returns the median of its hot views.
fn store_of(files: usize, options: &Options, report: &mut Report) -> Res<f64> {
    let site = Site::create(&options.home.join(format!("files-{files}")), ROOM)?;
    let start = Instant::now();
    site.fill(files, |file| {
        ("t".into(), workload::path(file), workload::text(file))
    })?;
    let filled = start.elapsed().as_secs_f64();
    // On a copy, since the engine tidies its pages when they are first read.
    let mut alone = Value::Null;
    if files <= LARGE {
        let copied = site.copy_to(&options.home.join("copied"))?;
        alone = start::in_child(&copied, files, start::ENGINE_CHILD)?;
        std::fs::remove_dir_all(&copied.home)?;
    }
    let fresh = start::in_child(&site, files, start::CHILD)?;
    let of = |field: &str| {
        let value = fresh.get(field).or_else(|| alone.get(field));
        value.and_then(Value::as_f64).unwrap_or(f64::NAN)
    };
    report.heading(&format!(
        "A store of {files} files of 4 KB in {} directories",
        workload::DIRECTORIES
    ));
    report.figure("filled at", files as f64 / filled, "files/s", "");
    report.figure(
        "open, in a new process",
        of("open_ms"),
        "ms",
        "< 1000 at 100 k",
    );
    report.figure(
        "first read of all directories",
        of("first_us_an_entry"),
        "us an entry",
        "<= 1.5",
    );
    if files <= LARGE {
        report.figure(
            "as much read from the engine alone",
            of("engine_us_an_entry"),
            "us an entry",
            "",
        );
    }
    report.figure("view, hot, 1,000 files: p50", of("hot_us"), "us", "");
    report.figure("view, cold, 1,000 files: p50", of("cold_us"), "us", "");
    report.figure("resident memory after opening", of("rss_open_mb"), "MB", "");
    report.figure(
        "resident memory after these views",
        of("rss_mb"),
        "MB",
        "< 300 at 100 k",
    );
    let vault = site.open()?;
    let tenant = vault.tenant("t")?;
    let before = written()?;
    let creates = 100;
    for file in files..files + creates {
        run_on(&tenant, &[workload::create(file)])?;
    }
    let kib = (written()? - before) as f64 / 1024.0 / creates as f64;
    report.figure("written to the disk for a durable create", kib, "KiB", "");
    let (live, disk) = (vault.live_bytes()?, vault.stats()?.backend.disk_bytes);
    report.figure("live bytes", live as f64 / 1e6, "MB", "");
    report.figure(
        "size on disk against live bytes",
        disk as f64 / live as f64,
        "x",
        "",
    );
    let start = Instant::now();
    let verified = vault.verify(Depth::Full)?;
    let took = start.elapsed().as_secs_f64();
    if !verified.problems.is_empty() {
        return Err("verify found damage".into());
    }
    report.figure(
        "verify, full",
        verified.files as f64 / took,
        "files/s",
        ">= 50000",
    );
    let start = Instant::now();
    vault.verify(Depth::Quick)?;
    report.figure(
        "verify, quick",
        files as f64 / start.elapsed().as_secs_f64(),
        "files/s",
        "",
    );
    if files <= 10_000 {
        let start = Instant::now();
        vault.rotate_keys(None, |_, _, _| ())?;
        let took = start.elapsed().as_secs_f64();
        report.figure(
            "rotate, beside which the store rests 3 parts of 4",
            files as f64 / took,
            "files/s",
            "",
        );
    }
    vault.close()?;
    Ok(of("hot_us"))
}

fn expiry(options: &Options, report: &mut Report) -> Res<()> {
    let files = if options.quick { 1_000 } else { 10_000 };
    let site = Site::create(&options.home.join("expiry"), &format!("{ROOM}{MONTH}"))?;
    site.fill(files, |file| {
        ("t".into(), workload::path(file), workload::text(file))
    })?;
    let clock = Arc::new(ManualClock::at(SystemClock.now() + 40 * 86_400_000));
    let vault = site.builder().clock(clock).open()?;
    let start = Instant::now();
    let swept = vault.expire(None, false, |_, _| ())?;
    let took = start.elapsed().as_secs_f64();
    let gone: u64 = swept.tenants.iter().map(|tenant| tenant.1.files).sum();
    if gone != files as u64 {
        return Err(format!(
            "expired {gone} of {files} files; {:?}, {:?}",
            swept.clock, swept.failed
        )
        .into());
    }
    report.heading(&format!("Expiry of {gone} files"));
    report.figure("expire", gone as f64 / took, "files/s", "");
    vault.close()?;
    Ok(())
}

fn listings(options: &Options, report: &mut Report) -> Res<()> {
    let sizes: &[usize] = if options.quick {
        &[100, 1_000]
    } else {
        &[100, 1_000, 10_000]
    };
    for entries in sizes {
        let runs = if options.quick || *entries > 1_000 {
            5
        } else {
            20
        };
        let home = options.home.join(format!("listing-{entries}"));
        let site = Site::create(&home.join("own"), ROOM)?;
        let path = |file: usize| format!("/memories/d/f{file:05}.md");
        site.fill(*entries, |file| {
            ("t".into(), path(file), "One short note.\n".into())
        })?;
        let vault = site.open()?;
        let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(Own {
            name: "strongroom".into(),
            tenant: vault.tenant("t")?,
        })];
        let (others, _missing) = peers(options.peers.as_deref(), &home);
        for mut peer in others {
            if peer.name().starts_with("heptagent") {
                continue; // It has no listings.
            }
            for strides in (0..*entries).collect::<Vec<_>>().chunks(500) {
                let inputs: Vec<Value> = strides
                    .iter()
                    .map(|file| json!({ "command": "create", "path": path(*file), "file_text": "One short note.\n" }))
                    .collect();
                peer.run(&inputs)?;
            }
            contenders.push(Box::new(peer));
        }
        let input = [json!({ "command": "view", "path": "/memories/d" })];
        let mut all: Vec<Series> = Vec::new();
        for run in 0..=runs {
            for (number, contender) in contenders.iter_mut().enumerate() {
                let nanos = contender.run(&input)?;
                if run == 0 {
                    all.push(Series {
                        contender: contender.name().to_owned(),
                        nanos: Vec::new(),
                    });
                } else if let Some(series) = all.get_mut(number) {
                    series.nanos.extend(nanos);
                }
            }
        }
        report.series(
            &format!("listing, the first page, a directory of {entries}"),
            &all,
        );
        let rows = (*entries).min(1_000) as f64;
        if let Some(own) = all.first() {
            let own = median(&own.nanos);
            report.figure("time for a row shown", own / 1e3 / rows, "us", "");
            let python = all
                .iter()
                .find(|series| series.contender.starts_with("Python"));
            if let Some(python) = python {
                let aim = if *entries == 10_000 { "<= 0.05" } else { "" };
                report.figure(
                    "first page against the Python SDK's",
                    own / median(&python.nanos),
                    "x",
                    aim,
                );
            }
        }
        let tenant = vault.tenant("t")?;
        let start = Instant::now();
        for first in (1..=entries + 1).step_by(1_000) {
            let last = (first + 999).min(entries + 1);
            let input =
                json!({ "command": "view", "path": "/memories/d", "view_range": [first, last] });
            run_on(&tenant, &[input])?;
        }
        report.figure(
            "all its pages",
            start.elapsed().as_secs_f64() * 1e3,
            "ms",
            "",
        );
        drop(contenders);
        vault.close()?;
    }
    Ok(())
}

/// Bytes that this process had written to the disk so far.
fn written() -> Res<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.ok_or("no count of written bytes")?.trim().parse()?)
}
