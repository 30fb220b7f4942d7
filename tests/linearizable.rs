//! What threads see of shared paths at once could have been seen one command after the other.
//!
//! Each round, some threads work on a few directories, whose files they create, edit, move,
//! view and delete; the order of calls and answers is recorded. Each directory's history must
//! have an order of its commands, in keeping with which ended before which began, in which
//! the reference gives every answer to the byte. The search is that of Wing and Gong (Testing
//! and verifying concurrent objects, 1993) with the memory of Lowe (2017): no set of done
//! commands is looked at twice in one state. Rotations and sweeps go on meanwhile.
//!
//! 60 rounds in memory, a tenth as many on disk; `STRONGROOM_LINEAR_ROUNDS=5000` for more.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod common;
mod reference;
mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use strongroom::Vault;
use strongroom::backend::{MemoryBackend, MemoryKeyStore};
use strongroom::wire::Command;

use common::{Ground, assert_sound, key_line, open};
use reference::{Model, Replied, Rules};
use support::count_from_env;
use support::ground::{Watch, WatchedBackend, WatchedKeys};
use support::rng::Rng;

const TENANT: &str = "shared";
const THREADS: usize = 4;
const COMMANDS: usize = 10;
const DIRECTORIES: u64 = 2;

/// One command of a history, with its answer.
struct Call {
    command: Command,
    reply: Replied,
    /// When it was asked for and when it was answered: numbers of one count.
    begun: u64,
    ended: u64,
}

/// Whether the calls, at most 64, could have been carried out one after the other, from
/// `start` to `end`.
fn is_linearizable(calls: &[Call], start: &Model, end: &Model) -> bool {
    assert!(calls.len() <= 64);
    let mut seen = HashSet::new();
    let mut waiting = vec![(0_u64, start.clone())];
    while let Some((done, state)) = waiting.pop() {
        let open = || (0..calls.len()).filter(|at| done & (1 << at) == 0);
        // The next one is one that began before any of those that are left had ended.
        let Some(first_end) = open().map(|at| calls[at].ended).min() else {
            if same(&state, end) {
                return true;
            }
            continue;
        };
        for at in open().filter(|at| calls[*at].begun < first_end) {
            let mut next = state.clone();
            if next.run(&calls[at].command) == calls[at].reply {
                let done = done | 1 << at;
                let key = (done, next.files.clone(), next.directories.clone());
                if seen.insert(key) {
                    waiting.push((done, next));
                }
            }
        }
    }
    false
}

fn same(one: &Model, other: &Model) -> bool {
    one.files == other.files && one.directories == other.directories
}

#[test]
fn histories_in_memory_are_linearizable() {
    let rounds = count_from_env("STRONGROOM_LINEAR_ROUNDS", 60);
    // Threads give way at every step below the store, so that they meet also where one core
    // would carry out a whole command at once.
    let watch = Watch::new(|_| std::thread::yield_now());
    let vault = Vault::builder()
        .on(
            Arc::new(WatchedBackend {
                inner: Arc::new(MemoryBackend::new()),
                watch: Arc::clone(&watch),
            }),
            Arc::new(WatchedKeys {
                inner: Arc::new(MemoryKeyStore::new()),
                watch,
            }),
        )
        .key_source(key_line())
        .policy(Rules::DEFAULT.policy())
        .create(true)
        .open()
        .unwrap();
    histories(&vault, rounds);
}

#[test]
fn histories_on_disk_are_linearizable() {
    let rounds = count_from_env("STRONGROOM_LINEAR_ROUNDS", 60);
    let opened = open(Ground::Disk, &Rules::DEFAULT.policy());
    histories(&opened.vault, rounds.div_ceil(10));
}

fn histories(vault: &Vault, rounds: u64) {
    let clock = AtomicU64::new(0);
    let (mut calls, mut overlaps, mut refused) = (0, 0, 0);
    for round in 0..rounds {
        for (directory, history) in histories_of_a_round(vault, &clock, round)
            .iter()
            .enumerate()
        {
            let end = state_of(vault, directory as u64, round);
            // So that rotations stay short. It may be gone already.
            let _gone = vault
                .tenant(TENANT)
                .unwrap()
                .delete(&top(directory as u64, round))
                .unwrap();
            let start = Model::new(Rules::DEFAULT);
            if !is_linearizable(history, &start, &end) {
                let mut told: Vec<_> = history.iter().collect();
                told.sort_by_key(|call| call.begun);
                for call in told {
                    println!(
                        "{}-{} {:?} {:?}: {:?}",
                        call.begun,
                        call.ended,
                        call.command,
                        paths(&call.command),
                        call.reply
                    );
                }
                panic!(
                    "round {round}, directory {directory}: no order explains this; in the end: {:?}",
                    end.files
                );
            }
            calls += history.len();
            refused += history.iter().filter(|call| call.reply.is_err()).count();
            let pairs = history.iter().enumerate();
            overlaps += pairs
                .filter(|(at, call)| {
                    let others = history[at + 1..].iter();
                    others
                        .clone()
                        .any(|other| call.begun < other.ended && other.begun < call.ended)
                })
                .count();
        }
    }
    assert_sound(vault, "after all rounds");
    println!(
        "{rounds} rounds, {calls} commands, {overlaps} of them beside others, {refused} refused; every history has an order"
    );
    assert!(overlaps * 4 > calls, "too few commands meet");
    assert!(refused * 20 > calls, "the commands do not meet");
}

/// What the threads did to each directory in one round.
fn histories_of_a_round(vault: &Vault, clock: &AtomicU64, round: u64) -> Vec<Vec<Call>> {
    let start = Barrier::new(THREADS + 1);
    let is_done = AtomicBool::new(false);
    let mut all: Vec<(u64, Call)> = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let tenant = vault.tenant(TENANT).unwrap();
                let start = &start;
                scope.spawn(move || {
                    let mut rng = Rng::new(round * 100 + thread);
                    start.wait();
                    let mut done = Vec::new();
                    for number in 0..COMMANDS {
                        let directory = rng.below(DIRECTORIES);
                        let mark = format!("{thread}.{number}");
                        let command = command(&mut rng, &top(directory, round), &mark);
                        let begun = clock.fetch_add(1, Ordering::SeqCst);
                        let reply = tenant.run(&command).unwrap();
                        let ended = clock.fetch_add(1, Ordering::SeqCst);
                        let text = reply.as_text().unwrap().to_owned();
                        let reply = if reply.is_error { Err(text) } else { Ok(text) };
                        done.push((
                            directory,
                            Call {
                                command,
                                reply,
                                begun,
                                ended,
                            },
                        ));
                    }
                    done
                })
            })
            .collect();
        let (start, is_done) = (&start, &is_done);
        scope.spawn(move || {
            start.wait();
            // What changes nothing, in every second round.
            while round % 2 == 1 && !is_done.load(Ordering::SeqCst) {
                vault.expire(None, false, |_, _| ()).unwrap();
                if vault.stats().unwrap().tenants.len() == 1 {
                    vault.rotate_keys(Some(TENANT), |_, _, _| ()).unwrap();
                }
            }
        });
        for thread in threads {
            all.extend(thread.join().unwrap());
        }
        is_done.store(true, Ordering::SeqCst);
    });
    let mut histories: Vec<Vec<Call>> = (0..DIRECTORIES).map(|_| Vec::new()).collect();
    for (directory, call) in all {
        histories[usize::try_from(directory).unwrap()].push(call);
    }
    histories
}

fn top(directory: u64, round: u64) -> String {
    format!("/memories/r{round}-{directory}")
}

/// A command on one of three files of a directory, or on the directory.
fn command(rng: &mut Rng, top: &str, mark: &str) -> Command {
    let file = |rng: &mut Rng| format!("{top}/{}", ["a", "b", "c"][rng.below(3) as usize]);
    let path = file(rng);
    match rng.below(20) {
        0..=4 => Command::Create {
            path,
            file_text: format!("{mark}\n"),
        },
        5..=7 => Command::Insert {
            path,
            insert_line: 0,
            insert_text: mark.to_owned(),
        },
        // The first digit of a mark is its thread's: some hits, none, or several.
        8..=9 => Command::StrReplace {
            path,
            old_str: format!("{}.", rng.below(3)),
            new_str: "x".to_owned(),
        },
        10..=13 => Command::View {
            path,
            view_range: None,
        },
        14 => Command::View {
            path: top.to_owned(),
            view_range: None,
        },
        15..=16 => Command::Rename {
            old_path: path,
            new_path: file(rng),
        },
        17..=18 => Command::Delete { path },
        _ => Command::Delete {
            path: top.to_owned(),
        },
    }
}

fn paths(command: &Command) -> String {
    match command {
        Command::View { path, .. }
        | Command::Delete { path }
        | Command::Create { path, .. }
        | Command::Insert { path, .. } => path.clone(),
        Command::StrReplace { path, old_str, .. } => format!("{path} {old_str}"),
        Command::Rename { old_path, new_path } => format!("{old_path} {new_path}"),
    }
}

/// What is stored of a directory once its round is over.
fn state_of(vault: &Vault, directory: u64, round: u64) -> Model {
    let tenant = vault.tenant(TENANT).unwrap();
    let mut state = Model::new(Rules::DEFAULT);
    let tree = support::tree::read_tree(&tenant, &top(directory, round)).unwrap();
    for (path, text) in tree {
        match text {
            Some(text) => drop(state.files.insert(path, text)),
            None => drop(state.directories.insert(path)),
        }
    }
    state
}

// The check itself.

fn call(command: Command, reply: Result<&str, &str>, begun: u64, ended: u64) -> Call {
    let reply = reply.map(str::to_owned).map_err(str::to_owned);
    Call {
        command,
        reply,
        begun,
        ended,
    }
}

fn create(text: &str, begun: u64, ended: u64) -> Call {
    let command = Command::Create {
        path: "/memories/a".to_owned(),
        file_text: text.to_owned(),
    };
    call(
        command,
        Ok("File created successfully at: /memories/a"),
        begun,
        ended,
    )
}

fn view(reply: Result<&str, &str>, begun: u64, ended: u64) -> Call {
    call(
        Command::View {
            path: "/memories/a".to_owned(),
            view_range: None,
        },
        reply,
        begun,
        ended,
    )
}

const MISSING: Result<&str, &str> =
    Err("The path /memories/a does not exist. Please provide a valid path.");
const SHOWN: Result<&str, &str> =
    Ok("Here's the content of /memories/a with line numbers:\n     1\tx");

fn with_file() -> Model {
    let mut model = Model::new(Rules::DEFAULT);
    model
        .files
        .insert("/memories/a".to_owned(), "x\n".to_owned());
    model
}

#[test]
fn the_check_accepts_what_has_an_order() {
    let empty = Model::new(Rules::DEFAULT);
    // A view beside a create may see it or not.
    for seen in [MISSING, SHOWN] {
        assert!(is_linearizable(
            &[create("x\n", 0, 3), view(seen, 1, 2)],
            &empty,
            &with_file()
        ));
    }
    // Two views beside it: the first one sees it, the second one too.
    let calls = [create("x\n", 0, 5), view(SHOWN, 1, 2), view(SHOWN, 3, 4)];
    assert!(is_linearizable(&calls, &empty, &with_file()));
}

#[test]
fn the_check_refuses_what_has_none() {
    let empty = Model::new(Rules::DEFAULT);
    // A stale read: the create had ended.
    let stale = [create("x\n", 0, 1), view(MISSING, 2, 3)];
    assert!(!is_linearizable(&stale, &empty, &with_file()));
    // A read of what is not there yet.
    let early = [view(SHOWN, 0, 1), create("x\n", 2, 3)];
    assert!(!is_linearizable(&early, &empty, &with_file()));
    // Seen, then not seen, while nothing takes it away.
    let back = [create("x\n", 0, 5), view(SHOWN, 1, 2), view(MISSING, 3, 4)];
    assert!(!is_linearizable(&back, &empty, &with_file()));
    // Two creates at once that both win.
    let both = [create("x\n", 0, 3), create("y\n", 1, 2)];
    assert!(!is_linearizable(&both, &empty, &with_file()));
    // An acknowledged write that is lost in the end.
    assert!(!is_linearizable(&[create("x\n", 0, 1)], &empty, &empty));
}
