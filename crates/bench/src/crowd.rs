//! Many at once: threads, tenants, and a reader beside a large delete.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strongroom::{Tenant, Vault};

use serde_json::Value;

use crate::contender::{Contender, Peer, peers, run_on};
use crate::fixture::{ROOM, Site};
use crate::report::{Report, Series, quantile};
use crate::workload::{self, WRITES};
use crate::{Options, Res};

pub fn run(options: &Options, report: &mut Report) -> Res<()> {
    threads(options, report)?;
    writes_at_eight(options, report)?;
    tenants(options, report)?;
    large_delete(options, report)
}

fn threads(options: &Options, report: &mut Report) -> Res<()> {
    let (rounds, creates) = if options.quick { (2, 40) } else { (4, 200) };
    let site = Site::create(&options.home.join("threads"), ROOM)?;
    site.fill(1_000, |file| {
        (
            format!("t{}", file % 8),
            workload::path(file),
            workload::text(file),
        )
    })?;
    let vault = site.open()?;
    report.heading("creates, durable, 4 KB, by threads");
    let mut next = 1_000;
    // [threads][one tenant or several]: operations and seconds.
    let plans = [(1, 1), (2, 1), (2, 2), (8, 1), (8, 8)];
    let mut all: Vec<(u64, Duration)> = vec![(0, Duration::ZERO); plans.len()];
    for _ in 0..rounds {
        for ((threads, tenants), (done, took)) in plans.iter().zip(&mut all) {
            let handles: Vec<Tenant> = (0..*tenants)
                .map(|number| vault.tenant(&format!("t{number}")))
                .collect::<Result<_, _>>()?;
            *took += spread(&handles, *threads, workload::create, next, creates)?;
            *done += creates as u64;
            next += creates;
        }
    }
    let rates: Vec<f64> = all
        .iter()
        .map(|(done, took)| *done as f64 / took.as_secs_f64())
        .collect();
    for ((threads, tenants), rate) in plans.iter().zip(&rates) {
        report.figure(
            &format!("{threads} threads in {tenants} tenants"),
            *rate,
            "creates/s",
            "",
        );
    }
    if let [one, _, _, shared, apart] = rates.as_slice() {
        report.figure(
            "8 threads, one tenant, against 1 thread",
            shared / one,
            "x",
            ">= 1.8",
        );
        report.figure(
            "8 threads, 8 tenants, against 1 thread",
            apart / one,
            "x",
            ">= 1.8",
        );
    }
    vault.close()?;
    Ok(())
}

/// Each command on eight threads of one tenant, beside one thread and the SDKs' workers, which have one.
fn writes_at_eight(options: &Options, report: &mut Report) -> Res<()> {
    let (rounds, files) = if options.quick { (2, 40) } else { (4, 160) };
    let home = options.home.join("eight");
    let site = Site::create(&home.join("own"), ROOM)?;
    site.fill(1_000, |file| {
        ("t".into(), workload::path(file), workload::text(file))
    })?;
    let vault = site.open()?;
    let tenants = [vault.tenant("t")?];
    let (others, _missing) = peers(options.peers.as_deref(), &home);
    let mut sdks: Vec<Peer> = others
        .into_iter()
        .filter(|peer| peer.name().contains("SDK"))
        .collect();
    report.heading("Writes, durable, 4 KB, one tenant: eight threads");
    let mut next = 1_000;
    // For each command: seconds of one thread, of eight, and of each SDK.
    let mut all = vec![vec![0.0; 2 + sdks.len()]; WRITES.len()];
    for _ in 0..rounds {
        for (took, (_, input)) in all.iter_mut().zip(WRITES) {
            let inputs: Vec<Value> = (next..next + files).map(input).collect();
            for (sdk, took) in sdks.iter_mut().zip(took.iter_mut().skip(2)) {
                *took += sdk.run(&inputs)?.iter().sum::<u64>() as f64 / 1e9;
            }
            for (threads, took) in [1, 8].into_iter().zip(took) {
                let first = next + threads * files;
                *took += spread(&tenants, threads, input, first, files)?.as_secs_f64();
            }
        }
        next += 10 * files;
    }
    for (took, (name, _)) in all.iter().zip(WRITES) {
        let rates: Vec<f64> = took
            .iter()
            .map(|took| (rounds * files) as f64 / took)
            .collect();
        let [one, eight, sdks @ ..] = rates.as_slice() else {
            continue;
        };
        report.figure(&format!("{name}, 8 threads"), *eight, "ops/s", "");
        report.figure(
            &format!("{name}, 8 threads against 1"),
            eight / one,
            "x",
            ">= 1.8",
        );
        let best = sdks.iter().copied().fold(f64::NAN, f64::max);
        let name = format!("{name}, 8 threads against the faster SDK at 1");
        report.figure(&name, eight / best, "x", ">= 0.6");
    }
    vault.close()?;
    Ok(())
}

/// Runs a command on several threads, each file once; how long all of it took.
fn spread(
    tenants: &[Tenant],
    threads: usize,
    input: fn(usize) -> Value,
    first: usize,
    count: usize,
) -> Res<Duration> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let tenant = &tenants[thread % tenants.len()];
                scope.spawn(move || {
                    for file in (first..first + count).skip(thread).step_by(threads) {
                        run_on(tenant, &[input(file)]).map_err(|error| error.to_string())?;
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a thread panicked")?)
    })
    .map_err(|error: String| error)?;
    Ok(start.elapsed())
}

fn tenants(options: &Options, report: &mut Report) -> Res<()> {
    let sizes: &[usize] = if options.quick {
        &[1, 100]
    } else {
        &[1, 100, 10_000]
    };
    let mut sites: Vec<(usize, Vault)> = Vec::new();
    for count in sizes {
        let site = Site::create(&options.home.join(format!("tenants-{count}")), ROOM)?;
        site.fill(*count, |tenant| {
            (format!("t{tenant}"), workload::path(0), workload::text(0))
        })?;
        sites.push((*count, site.open()?));
    }
    let ops = if options.quick { 40 } else { 200 };
    let (mut creates, mut views) = (Vec::new(), Vec::new());
    for (count, vault) in &sites {
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for op in 0..ops {
            // Spread over all of them; each handle is opened anew, as a server would.
            let tenant = vault.tenant(&format!("t{}", op * 7_919 % count))?;
            reads.extend(run_on(&tenant, &[workload::view(0)])?);
            writes.extend(run_on(&tenant, &[workload::create(op + 1)])?);
        }
        let contender = format!("{count} tenants");
        creates.push(Series {
            contender: contender.clone(),
            nanos: writes,
        });
        views.push(Series {
            contender,
            nanos: reads,
        });
    }
    report.series("create, durable, 4 KB, 1 thread, by tenants", &creates);
    report.series("the first view of a handle, 4 KB, by tenants", &views);
    for (_, vault) in sites {
        vault.close()?;
    }
    Ok(())
}

fn large_delete(options: &Options, report: &mut Report) -> Res<()> {
    let files = if options.quick { 3_000 } else { 30_000 };
    let site = Site::create(&options.home.join("delete"), ROOM)?;
    site.fill(files, |file| {
        (
            "big".into(),
            format!("/memories/d/{}/f{file}.md", file % 20),
            workload::text(file),
        )
    })?;
    let vault = site.open()?;
    let (big, other) = (vault.tenant("big")?, vault.tenant("other")?);
    run_on(&other, &[workload::create(0)])?;
    let stop = AtomicBool::new(false);
    let (reads, delete, reaped) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut nanos = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                nanos.extend(run_on(&other, &[workload::view(0)]).unwrap_or_default());
            }
            nanos
        });
        let start = Instant::now();
        let deleted = big.delete("/memories/d").map(|reply| reply.is_error);
        let delete = start.elapsed();
        while vault.stats().is_ok_and(|stats| stats.pending_removals > 0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let reaped = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        (
            reader.join().unwrap_or_default(),
            deleted.map(|failed| (failed, delete)),
            reaped,
        )
    });
    let (failed, delete) = delete?;
    if failed || reads.is_empty() {
        return Err("the delete or its reader failed".into());
    }
    report.heading(&format!("Recursive delete of {files} files"));
    report.figure("the delete itself", delete.as_secs_f64() * 1e3, "ms", "");
    report.figure("all taken away after", reaped.as_secs_f64() * 1e3, "ms", "");
    report.figure(
        "another tenant's reader: views meanwhile",
        reads.len() as f64,
        "",
        "",
    );
    report.figure(
        "another tenant's reader: p99",
        quantile(&reads, 0.99) / 1e6,
        "ms",
        "",
    );
    report.figure(
        "another tenant's reader: longest wait",
        quantile(&reads, 1.0) / 1e6,
        "ms",
        "<= 50",
    );
    vault.close()?;
    Ok(())
}
