//! What a new process pays: the command's first answers, and opening a store.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::contender::run_on;
use crate::fixture::{ROOM, Site};
use crate::report::{Report, Series, median};
use crate::{Options, Res, workload};

/// The first argument of a process of ours that opens a store and measures itself.
pub const CHILD: &str = "--child";

/// The first argument of one that reads a store's directories from the engine alone.
pub const ENGINE_CHILD: &str = "--engine-child";

pub fn run(options: &Options, report: &mut Report) -> Res<()> {
    let command = std::env::current_exe()?.with_file_name("strongroom");
    if !command.exists() {
        println!("missing: the command (cargo build --release)");
        return Ok(());
    }
    let runs = if options.quick { 5 } else { 30 };
    let site = Site::create(&options.home.join("start"), ROOM)?;
    site.fill(100, |file| {
        ("default".into(), workload::path(file), workload::text(file))
    })?;
    let (mut views, mut creates) = (Vec::new(), Vec::new());
    let (mut view_cpu, mut create_cpu) = (Vec::new(), Vec::new());
    for run in 0..runs {
        let (took, cpu) = first_answer(&command, &site, &workload::view(run))?;
        views.push(took);
        view_cpu.push(cpu);
        let (took, cpu) = first_answer(&command, &site, &workload::create(100 + run))?;
        creates.push(took);
        create_cpu.push(cpu);
    }
    report.series(
        "exec, from the start of the process to the first answer, 100 files, key file",
        &[
            Series {
                contender: "view".into(),
                nanos: views.clone(),
            },
            Series {
                contender: "create".into(),
                nanos: creates.clone(),
            },
        ],
    );
    report.figure(
        "exec: start to the first view",
        median(&views) / 1e6,
        "ms",
        "< 30",
    );
    report.figure(
        "exec: start to the first create",
        median(&creates) / 1e6,
        "ms",
        "< 120",
    );
    report.figure(
        "exec: the processor's part of the first view",
        median(&view_cpu) / 1e6,
        "ms",
        "",
    );
    report.figure(
        "exec: the processor's part of the first create",
        median(&create_cpu) / 1e6,
        "ms",
        "",
    );
    Ok(())
}

/// Nanoseconds to the answer, and those that the processor worked for it.
fn first_answer(command: &std::path::Path, site: &Site, input: &Value) -> Res<(u64, u64)> {
    let start = Instant::now();
    let mut child = Command::new(command)
        .arg("exec")
        .arg("--store")
        .arg(site.store())
        .arg("--key-file")
        .arg(site.key())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut to = child.stdin.take().ok_or("no stdin")?;
    let mut from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    writeln!(to, "{input}")?;
    let mut line = String::new();
    from.read_line(&mut line)?;
    let nanos = start.elapsed().as_nanos() as u64;
    let mut cpu = 0;
    for thread in std::fs::read_dir(format!("/proc/{}/task", child.id()))? {
        let stat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        cpu += stat.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    drop(to);
    let status = child.wait()?;
    if !status.success() || line.contains("\"is_error\":true") {
        return Err("exec failed".into());
    }
    Ok((nanos, cpu))
}

/// Opens the store in a new process, which says what that took and holds.
pub fn in_child(site: &Site, files: usize, child: &str) -> Res<Value> {
    let out = Command::new(std::env::current_exe()?)
        .arg(child)
        .arg(&site.home)
        .arg(files.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// What that process does.
pub fn child(mut args: impl Iterator<Item = String>) -> Res<()> {
    let home = PathBuf::from(args.next().ok_or("which store?")?);
    let files: usize = args.next().ok_or("how many files?")?.parse()?;
    let site = Site { home };
    let start = Instant::now();
    let vault = site.open()?;
    let open_ms = start.elapsed().as_secs_f64() * 1e3;
    let rss_open_mb = rss_mb()?;
    let tenant = vault.tenant("t")?;
    let start = Instant::now();
    for directory in 0..workload::DIRECTORIES {
        run_on(&tenant, &[workload::view(directory)])?;
    }
    let first = start.elapsed().as_secs_f64() * 1e6 / files as f64;
    // A thousand files, spread over all.
    let inputs: Vec<Value> = (0..1_000)
        .map(|number| workload::view(number * files / 1_000))
        .collect();
    let cold = run_on(&tenant, &inputs)?;
    let mut hot = Vec::new();
    for _ in 0..5 {
        hot = run_on(&tenant, &inputs)?;
    }
    let rss_mb = rss_mb()?;
    vault.close()?;
    let answer = json!({
        "open_ms": open_ms, "rss_open_mb": rss_open_mb, "first_us_an_entry": first,
        "cold_us": median(&cold) / 1e3, "hot_us": median(&hot) / 1e3, "rss_mb": rss_mb,
    });
    println!("{answer}");
    Ok(())
}

/// What the other one does: the engine alone reads the same entries, for the first time too.
/// They are the records whose keys begin with 3.
pub fn engine_child(mut args: impl Iterator<Item = String>) -> Res<()> {
    let site = Site {
        home: PathBuf::from(args.next().ok_or("which store?")?),
    };
    let db = sled::Config::new()
        .path(site.engine())
        .cache_capacity(32 << 20)
        .flush_every_ms(None)
        .open()?;
    let start = Instant::now();
    let mut entries = 0;
    for pair in db.scan_prefix([3]) {
        let (key, value) = pair?;
        std::hint::black_box((key.to_vec(), value.to_vec()));
        entries += 1;
    }
    let engine_us = start.elapsed().as_secs_f64() * 1e6 / f64::from(entries);
    println!("{}", json!({ "engine_us_an_entry": engine_us }));
    Ok(())
}

fn rss_mb() -> Res<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or("no VmRSS")?
        .trim()
        .parse()?;
    Ok(kib / 1024.0)
}
