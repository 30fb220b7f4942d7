//! Many threads on one handle: what they see and what is stored when they are done.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use strongroom::Tenant;
use strongroom::policy::Policy;
use strongroom::wire::Reply;

use common::{Ground, Opened, assert_sound, open};

const GROUNDS: [Ground; 2] = [Ground::Disk, Ground::Memory];
const THREADS: usize = 8;

fn each_ground(check: impl Fn(&Opened)) {
    for ground in GROUNDS {
        let opened = open(ground, &Policy::default());
        check(&opened);
        assert_sound(&opened.vault, &format!("{ground:?}"));
    }
}

/// Runs `work` on threads that start together, each with a handle of its own to a tenant.
fn together(
    opened: &Opened,
    tenant_of: impl Fn(usize) -> String,
    work: impl Fn(usize, &Tenant) + Sync,
) {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let tenant = opened.vault.tenant(&tenant_of(number)).unwrap();
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(number, &tenant);
            });
        }
    });
}

fn one_tenant(_: usize) -> String {
    "one".to_owned()
}

fn text(reply: &Reply) -> &str {
    reply.as_text().unwrap()
}

#[test]
fn of_many_creators_of_one_path_exactly_one_wins() {
    const PATHS: usize = 20;
    each_ground(|opened| {
        let winners: Vec<AtomicUsize> = (0..PATHS).map(|_| AtomicUsize::new(0)).collect();
        let starts: Vec<Barrier> = (0..PATHS).map(|_| Barrier::new(THREADS)).collect();
        together(opened, one_tenant, |number, tenant| {
            for (path, (start, won)) in starts.iter().zip(&winners).enumerate() {
                start.wait();
                let path = format!("/memories/new/{path}/a.md");
                let reply = tenant.create(&path, &format!("by {number}\n")).unwrap();
                if reply.is_error {
                    assert_eq!(text(&reply), format!("Error: File {path} already exists"));
                } else {
                    // Nobody won before, and what is stored is the winner's.
                    assert_eq!(won.swap(number + 1, Ordering::SeqCst), 0);
                }
            }
        });
        let tenant = opened.vault.tenant("one").unwrap();
        for (path, won) in winners.iter().enumerate() {
            let number = won.load(Ordering::SeqCst).checked_sub(1);
            let reply = tenant
                .view(&format!("/memories/new/{path}/a.md"), None)
                .unwrap();
            let line = format!("     1\tby {}", number.unwrap());
            assert!(text(&reply).ends_with(&line), "{reply:?}");
        }
        let stats = opened.vault.stats().unwrap();
        assert_eq!(stats.tenants.len(), 1);
        assert!(
            stats
                .tenants
                .iter()
                .all(|tenant| tenant.files == PATHS as u64)
        );
    });
}

#[test]
fn the_first_write_of_many_threads_makes_one_tenant() {
    each_ground(|opened| {
        together(opened, one_tenant, |number, tenant| {
            let reply = tenant
                .create(&format!("/memories/{number}.md"), "x\n")
                .unwrap();
            assert!(!reply.is_error, "{reply:?}");
        });
        let stats = opened.vault.stats().unwrap();
        assert_eq!(stats.tenants.len(), 1);
        assert!(
            stats
                .tenants
                .iter()
                .all(|tenant| tenant.files == THREADS as u64)
        );
    });
}

#[test]
fn lines_that_threads_insert_at_once_are_all_there() {
    const LINES: usize = 25;
    each_ground(|opened| {
        let tenant = opened.vault.tenant("one").unwrap();
        tenant.create("/memories/log.md", "").unwrap();
        together(opened, one_tenant, |number, tenant| {
            for line in 0..LINES {
                let line = format!("line {line:02} of {number}\n");
                let reply = tenant.insert("/memories/log.md", 0, &line).unwrap();
                assert!(!reply.is_error, "{reply:?}");
            }
        });
        let reply = tenant.view("/memories/log.md", None).unwrap();
        let lines: Vec<&str> = text(&reply).lines().skip(1).collect();
        assert_eq!(lines.len(), THREADS * LINES);
        for number in 0..THREADS {
            // Each thread's lines, newest first, in its own order.
            let of_one: Vec<&str> = (lines.iter())
                .filter_map(|line| {
                    line.split_once("\tline ")?
                        .1
                        .strip_suffix(&format!(" of {number}"))
                })
                .collect();
            let expected: Vec<String> = (0..LINES).rev().map(|line| format!("{line:02}")).collect();
            assert_eq!(of_one, expected);
        }
    });
}

#[test]
fn edits_of_many_threads_at_one_line_are_each_done_once() {
    const EDITS: usize = 25;
    each_ground(|opened| {
        let tenant = opened.vault.tenant("one").unwrap();
        tenant.create("/memories/count.md", "0\n").unwrap();
        let done = AtomicUsize::new(0);
        together(opened, one_tenant, |_, tenant| {
            for _ in 0..EDITS {
                // Compare and swap: an edit counts only if it met the number that was read.
                let shown = tenant.view("/memories/count.md", None).unwrap();
                let (_, read) = text(&shown).rsplit_once('\t').unwrap();
                let next = read.parse::<usize>().unwrap() + 1;
                let reply = tenant
                    .str_replace(
                        "/memories/count.md",
                        &format!("{read}\n"),
                        &format!("{next}\n"),
                    )
                    .unwrap();
                if !reply.is_error {
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let shown = tenant.view("/memories/count.md", None).unwrap();
        let (_, counted) = text(&shown).rsplit_once('\t').unwrap();
        assert_eq!(counted, done.load(Ordering::SeqCst).to_string());
        assert_ne!(counted, "0");
    });
}

#[test]
fn readers_during_renames_see_the_old_place_or_the_new() {
    const RENAMES: usize = 100;
    each_ground(|opened| {
        let tenant = opened.vault.tenant("one").unwrap();
        let long = "0123456789abcdef\n".repeat(900);
        tenant.create("/memories/a/deep/x.md", &long).unwrap();
        tenant.create("/memories/a/y.md", "y\n").unwrap();
        let is_done = AtomicBool::new(false);
        let (sightings, listings) = (AtomicUsize::new(0), AtomicUsize::new(0));
        together(opened, one_tenant, |number, tenant| match number {
            0 => {
                // On until each kind of reader has seen something.
                let unseen = || {
                    sightings.load(Ordering::SeqCst) == 0 || listings.load(Ordering::SeqCst) == 0
                };
                let mut round = 0;
                while round < RENAMES || (unseen() && round < 100_000) {
                    round += 1;
                    let (from, to) = match round % 2 {
                        1 => ("/memories/a", "/memories/b"),
                        _ => ("/memories/b", "/memories/a"),
                    };
                    let reply = tenant.rename(from, to).unwrap();
                    assert!(!reply.is_error, "{reply:?}");
                }
                is_done.store(true, Ordering::SeqCst);
            }
            1..4 => {
                while !is_done.load(Ordering::SeqCst) {
                    let reply = tenant.view("/memories", None).unwrap();
                    let shown = text(&reply);
                    let (a, b) = (
                        shown.contains("/memories/a/y.md"),
                        shown.contains("/memories/b/y.md"),
                    );
                    // One listing is one moment: it is at exactly one of the two places.
                    assert!(a != b && shown.contains("\n14.9K\t/memories\n"), "{shown}");
                    listings.fetch_add(1, Ordering::SeqCst);
                }
            }
            _ => {
                while !is_done.load(Ordering::SeqCst) {
                    for place in ["a", "b"] {
                        let path = format!("/memories/{place}/deep/x.md");
                        let reply = tenant.view(&path, None).unwrap();
                        let shown = text(&reply);
                        if reply.is_error {
                            assert!(
                                shown.ends_with(" does not exist. Please provide a valid path."),
                                "{shown}"
                            );
                        } else {
                            assert!(shown.ends_with("\n   900\t0123456789abcdef"), "{shown}");
                            sightings.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                }
            }
        });
    });
}

#[test]
fn readers_during_edits_see_the_text_before_or_after() {
    const EDITS: usize = 60;
    each_ground(|opened| {
        let tenant = opened.vault.tenant("one").unwrap();
        // Some chunks, each version of one letter.
        let version = |letter: &str| format!("{}\n", letter.repeat(80)).repeat(150);
        tenant.create("/memories/a.md", &version("a")).unwrap();
        let is_done = AtomicBool::new(false);
        together(opened, one_tenant, |number, tenant| {
            if number == 0 {
                for round in 0..EDITS {
                    let (old, new) = if round % 2 == 0 {
                        ("a", "b")
                    } else {
                        ("b", "a")
                    };
                    let reply = tenant
                        .str_replace("/memories/a.md", &version(old), &version(new))
                        .unwrap();
                    assert!(!reply.is_error, "{reply:?}");
                }
                is_done.store(true, Ordering::SeqCst);
            }
            while !is_done.load(Ordering::SeqCst) {
                let reply = tenant.view("/memories/a.md", None).unwrap();
                let shown = text(&reply).split_once('\n').unwrap().1;
                assert!(
                    shown.contains('a') != shown.contains('b'),
                    "a mixture: {shown}"
                );
            }
        });
    });
}

#[test]
fn tenants_at_once_keep_apart() {
    const FILES: usize = 12;
    each_ground(|opened| {
        let tenant_of = |number| format!("tenant/{number}");
        together(opened, tenant_of, |number, tenant| {
            for file in 0..FILES {
                // The same paths in all tenants.
                let path = format!("/memories/d{}/f{file}.md", file % 3);
                let reply = tenant.create(&path, &format!("{number}-{file}\n")).unwrap();
                assert!(!reply.is_error, "{reply:?}");
            }
            tenant.delete("/memories/d0").unwrap();
            tenant.rename("/memories/d1", "/memories/d0").unwrap();
        });
        for number in 0..THREADS {
            let tenant = opened.vault.tenant(&tenant_of(number)).unwrap();
            for file in (0..FILES).filter(|file| file % 3 != 0) {
                let directory = if file % 3 == 1 { "d0" } else { "d2" };
                let path = format!("/memories/{directory}/f{file}.md");
                let reply = tenant.view(&path, None).unwrap();
                assert_eq!(
                    text(&reply),
                    format!(
                        "Here's the content of {path} with line numbers:\n     1\t{number}-{file}"
                    )
                );
            }
            assert!(tenant.view("/memories/d1", None).unwrap().is_error);
        }
        let stats = opened.vault.stats().unwrap();
        assert_eq!(stats.tenants.len(), THREADS);
        assert!(
            stats
                .tenants
                .iter()
                .all(|tenant| tenant.files == (FILES * 2 / 3) as u64)
        );
    });
}

#[test]
fn creates_deletes_and_moves_at_once_leave_a_sound_store() {
    const ROUNDS: usize = 20;
    each_ground(|opened| {
        let long = "0123456789abcdef\n".repeat(2_000);
        together(opened, one_tenant, |number, tenant| {
            for round in 0..ROUNDS {
                // What each meets depends on the others; that none fails is the point.
                let other = (number + round) % THREADS;
                let _replies = [
                    tenant
                        .create(&format!("/memories/{number}/{round}/a.md"), "x\n")
                        .unwrap(),
                    tenant
                        .create(&format!("/memories/{other}/long.md"), &long)
                        .unwrap(),
                    tenant
                        .rename(
                            &format!("/memories/{other}"),
                            &format!("/memories/{number}/m"),
                        )
                        .unwrap(),
                    tenant
                        .delete(&format!("/memories/{other}/{round}"))
                        .unwrap(),
                    tenant.view("/memories", None).unwrap(),
                    tenant.delete(&format!("/memories/{number}/m")).unwrap(),
                ];
            }
        });
    });
}
