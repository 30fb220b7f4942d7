//! Each command at one thread, on all contenders in turns.

use std::collections::HashMap;

use serde_json::Value;

use crate::contender::{Contender, Own, peers, run_on};
use crate::fixture::{ROOM, Site, copy};
use crate::limit::Limit;
use crate::report::{Report, Series, quantile};
use crate::workload::{self, WRITES};
use crate::{Options, Res};

/// Views are measured without the audit of reads, and with it as the default policy has it.
const UNAUDITED: &str = "[audit]\nreads = \"off\"\n";

pub fn run(options: &Options, report: &mut Report) -> Res<()> {
    let (working_set, rounds, writes) = if options.quick {
        (200, 2, 20)
    } else {
        (1_000, 5, 60)
    };
    let home = options.home.join("commands");
    let filled = Site::create(&home.join("first"), ROOM)?;
    filled.fill(working_set, |file| {
        ("t".into(), workload::path(file), workload::text(file))
    })?;
    let (views, traces) = traces(&filled.copy_to(&home.join("traced"))?, working_set)?;
    let unaudited = Site::create(&home.join("unaudited"), &format!("{ROOM}{UNAUDITED}"))?;
    unaudited.fill(working_set, |file| {
        ("t".into(), workload::path(file), workload::text(file))
    })?;
    let (plain_views, _) =
        self::traces(&unaudited.copy_to(&home.join("traced-too"))?, working_set)?;

    let engine = home.join("engine");
    copy(&filled.engine(), &engine)?;
    let plain_engine = home.join("plain-engine");
    copy(&unaudited.engine(), &plain_engine)?;
    drop(views);
    let vault = filled.open()?;
    let plain = unaudited.open()?;
    let (own, quiet) = (vault.tenant("t")?, plain.tenant("t")?);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Own {
            name: "strongroom".into(),
            tenant: quiet,
        }),
        Box::new(Own {
            name: "strongroom, reads audited".into(),
            tenant: own.clone(),
        }),
        Box::new(Limit::open(&plain_engine, plain_views, HashMap::new())?),
    ];
    let (others, missing) = peers(options.peers.as_deref(), &home);
    for name in missing {
        println!("missing: {name} (see crates/bench/setup)");
    }
    for mut peer in others {
        let inputs: Vec<Value> = (0..working_set).map(workload::create).collect();
        peer.run(&inputs)?;
        contenders.push(Box::new(peer));
    }
    let all: Vec<Value> = (0..working_set).map(workload::view).collect();
    let mut first = take_turns(&mut contenders, &[all.as_slice()])?;
    let turns: Vec<&[Value]> = (0..rounds * 2).flat_map(|_| all.chunks(100)).collect();
    let hot = take_turns(&mut contenders, &turns)?;
    report.series(&format!("view, hot, 4 KB, {working_set} files"), &hot);
    first.truncate(3);
    report.series("view, the first after opening, 4 KB", &first);
    report_views(report, &hot);

    contenders.remove(0);
    contenders.remove(1);
    contenders.insert(1, Box::new(Limit::open(&engine, HashMap::new(), traces)?));
    if let Some(first) = contenders.first_mut() {
        *first = Box::new(Own {
            name: "strongroom".into(),
            tenant: own,
        });
    }
    let mut by_command: HashMap<&str, Vec<Vec<Value>>> = HashMap::new();
    let mut measured: Vec<(&str, Vec<Series>)> = Vec::new();
    for round in 0..rounds {
        let files = working_set + round * writes..working_set + (round + 1) * writes;
        for (name, input) in WRITES {
            let inputs: Vec<Value> = files.clone().map(input).collect();
            by_command.entry(name).or_default().push(inputs);
        }
    }
    for (name, _) in WRITES {
        let rounds = by_command.remove(name).unwrap_or_default();
        let turns: Vec<&[Value]> = rounds.iter().flat_map(|round| round.chunks(10)).collect();
        measured.push((name, take_turns(&mut contenders, &turns)?));
    }
    for (name, series) in &measured {
        report.series(&format!("{name}, durable, 4 KB, 1 thread"), series);
        report_write(report, name, series);
    }
    drop(contenders);
    plain.close()?;
    vault.close()?;
    Ok(())
}

/// Contenders in turns, so that what slows the machine down slows all of them.
fn take_turns(contenders: &mut [Box<dyn Contender>], turns: &[&[Value]]) -> Res<Vec<Series>> {
    let mut all: Vec<Series> = contenders
        .iter()
        .map(|contender| Series {
            contender: contender.name().to_owned(),
            nanos: Vec::new(),
        })
        .collect();
    for turn in turns {
        for (contender, series) in contenders.iter_mut().zip(&mut all) {
            series.nanos.extend(contender.run(turn)?);
        }
    }
    Ok(all)
}

/// What each command asks of the engine.
type Traces = (
    HashMap<String, crate::probe::Trace>,
    HashMap<&'static str, crate::probe::Trace>,
);

fn traces(site: &Site, working_set: usize) -> Res<Traces> {
    let (vault, probe) = site.probe(true)?;
    let tenant = vault.tenant("t")?;
    let (mut views, mut writes) = (HashMap::new(), HashMap::new());
    // The first views check the directories; the later ones are those to compare with.
    for file in 0..working_set {
        run_on(&tenant, &[workload::view(file)])?;
    }
    for file in 0..working_set {
        let mut done = Ok(Vec::new());
        let trace = probe.trace(|| done = run_on(&tenant, &[workload::view(file)]));
        done?;
        views.insert(workload::path(file), trace);
    }
    for (name, input) in WRITES {
        let mut done = Ok(Vec::new());
        let trace = probe.trace(|| done = run_on(&tenant, &[input(working_set)]));
        done?;
        writes.insert(name, trace);
    }
    vault.close()?;
    Ok((views, writes))
}

fn report_views(report: &mut Report, hot: &[Series]) {
    let at = |name: &str, share: f64| {
        hot.iter()
            .find(|series| series.contender.starts_with(name))
            .map(|series| quantile(&series.nanos, share))
    };
    let (Some(own), Some(limit)) = (at("strongroom", 0.5), at("limit", 0.5)) else {
        return;
    };
    report.figure("view, hot: times the limit", own / limit, "x", "<= 1.5");
    if let Some(audited) = at("strongroom, reads", 0.5) {
        report.figure(
            "view, hot, reads audited: times the plain view",
            audited / own,
            "x",
            "<= 2",
        );
    }
    if let (Some(audited), Some(plain)) = (at("strongroom, reads", 0.99), at("strongroom", 0.99)) {
        report.figure(
            "view, hot, reads audited: p99 beyond the plain view's",
            (audited - plain) / 1e3,
            "us",
            "< 100",
        );
    }
    if let Some(python) = at("Python", 0.5) {
        report.figure(
            "view, hot: rate against the Python SDK's",
            python / own,
            "x",
            ">= 10",
        );
    }
}

fn report_write(report: &mut Report, name: &str, all: &[Series]) {
    let median = |series: &Series| quantile(&series.nanos, 0.5);
    let of = |name: &str| {
        all.iter()
            .find(|series| series.contender.starts_with(name))
            .map(median)
    };
    let (Some(own), Some(limit)) = (of("strongroom"), of("limit")) else {
        return;
    };
    report.figure(
        &format!("{name}: times the limit"),
        own / limit,
        "x",
        "<= 1.4",
    );
    let sdks = all
        .iter()
        .filter(|series| series.contender.contains("SDK"))
        .map(median);
    if let Some(best) = sdks.reduce(f64::min) {
        let aim = if ["rename", "delete"].contains(&name) {
            ">= 0.6"
        } else {
            ">= 1"
        };
        report.figure(
            &format!("{name}: rate against the faster SDK's"),
            best / own,
            "x",
            aim,
        );
    }
}
