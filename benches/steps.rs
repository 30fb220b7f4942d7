//! The steps of a command one by one, and single commands on a store in memory.
//!
//! `cargo bench --bench steps`. crates/bench measures the whole on a disk, beside other tools.
#![allow(
    clippy::unwrap_used,
    reason = "a measurement of what fails is none, so it ends"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use strongroom::path::Guard;
use strongroom::redact::Engine;
use strongroom::{Sealer, Tenant, Vault, edit};

const LINE: &str = "The meeting moved to Friday morning, since the review needs more time.\n";

/// Prose of 4 KB, with one line that an edit can find.
fn prose() -> String {
    format!("status: open\n{}", LINE.repeat(4_000 / LINE.len()))
}

/// 4 KB in which every line holds something to remove.
fn dense() -> String {
    let line = "token = ghp_0123456789abcdefghijABCDEFGHIJ012345, mail to anna@example.org\n";
    line.repeat(4_000 / line.len())
}

fn seal(c: &mut Criterion) {
    let sealer = Sealer::of_no_secret();
    let plain = vec![b'a'; 4_096];
    let sealed = sealer.seal(&plain).unwrap();
    c.bench_function("seal 4 KiB", |b| b.iter(|| sealer.seal(black_box(&plain))));
    c.bench_function("open 4 KiB", |b| b.iter(|| sealer.open(black_box(&sealed))));
}

fn guard(c: &mut Criterion) {
    let guard = Guard::new();
    c.bench_function("guard a path of three parts", |b| {
        b.iter(|| guard.check(black_box("/memories/projects/notes.md")));
    });
}

fn edits(c: &mut Criterion) {
    let text = prose();
    c.bench_function("number the lines of 4 KB", |b| {
        b.iter(|| edit::view_file("/memories/a.md", black_box(&text), None, 16_000));
    });
    c.bench_function("str_replace in 4 KB", |b| {
        b.iter(|| edit::str_replace(black_box(&text), "status: open", "status: done"));
    });
    c.bench_function("insert into 4 KB", |b| {
        b.iter(|| edit::insert(black_box(&text), 10, "One more line.\n"));
    });
}

fn redact(c: &mut Criterion) {
    let engine = Engine::builder().packs(&["secrets"]).build().unwrap();
    let (clean, dense) = (prose(), dense());
    c.bench_function("keyword pass over 4 KB", |b| {
        b.iter(|| engine.keyword_hits(black_box(&clean)));
    });
    c.bench_function("redact 4 KB, clean", |b| {
        b.iter(|| engine.redact(black_box(&clean), None));
    });
    c.bench_function("redact 4 KB, dense", |b| {
        b.iter(|| engine.redact(black_box(&dense), None));
    });
}

fn commands(c: &mut Criterion) {
    let vault = Vault::builder().in_memory().open().unwrap();
    let tenant = vault.tenant("bench").unwrap();
    let ok = |reply: Result<strongroom::wire::Reply, strongroom::Error>| {
        assert!(!reply.unwrap().is_error);
    };
    let text = prose();
    ok(tenant.create("/memories/d/viewed.md", &text));
    c.bench_function("view 4 KB, in memory", |b| {
        b.iter(|| ok(tenant.view("/memories/d/viewed.md", None)));
    });
    let away = |tenant: &Tenant, path: &str| drop(tenant.delete(path));
    c.bench_function("create 4 KB, in memory", |b| {
        let fresh = || away(&tenant, "/memories/d/new.md");
        let create = |()| ok(tenant.create("/memories/d/new.md", &text));
        b.iter_batched(fresh, create, BatchSize::PerIteration);
    });
    let edited = || {
        away(&tenant, "/memories/d/edited.md");
        ok(tenant.create("/memories/d/edited.md", &text));
    };
    c.bench_function("str_replace 4 KB, in memory", |b| {
        let replace =
            |()| ok(tenant.str_replace("/memories/d/edited.md", "status: open", "status: done"));
        b.iter_batched(edited, replace, BatchSize::PerIteration);
    });
    c.bench_function("insert 4 KB, in memory", |b| {
        let insert = |()| ok(tenant.insert("/memories/d/edited.md", 10, "One more line.\n"));
        b.iter_batched(edited, insert, BatchSize::PerIteration);
    });
    c.bench_function("rename, in memory", |b| {
        let back = || {
            away(&tenant, "/memories/d/moved.md");
            edited();
        };
        let rename = |()| ok(tenant.rename("/memories/d/edited.md", "/memories/d/moved.md"));
        b.iter_batched(back, rename, BatchSize::PerIteration);
    });
    c.bench_function("delete, in memory", |b| {
        let delete = |()| ok(tenant.delete("/memories/d/edited.md"));
        b.iter_batched(edited, delete, BatchSize::PerIteration);
    });
}

criterion_group! {
    name = steps;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = seal, guard, edits, redact, commands
}
criterion_main!(steps);
