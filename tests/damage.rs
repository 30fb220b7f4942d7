//! Random damage over all files of a store: every answer is the newest acknowledged one, or an error.
//!
//! A round copies a store's directory as it was after a clean close or after a kill, puts
//! one to four damages into its files, opens it and asks for everything that was ever in
//! it. Wrong, old and missing answers, panics and hangs are failures; errors are not.
//! `STRONGROOM_DAMAGE_ROUNDS` sets the number of rounds (default 200) and
//! `STRONGROOM_DAMAGE_SEED` repeats the one round whose seed a failure printed.
//!
//! One pair of damages is left out because nothing inside the directory can tell it from
//! an honest older copy of the whole: STATE put back (or its newest slot lost) *and* the
//! engine's files put back. So a round damages STATE, or other files, never both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod store_kit;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use store_kit::{
    Life, Model, Question, Rng, Seen, builder, copy_directory, files_below, is_unknown,
    judge_error, questions,
};
use strongroom::{Depth, Vault};

/// No call into the store may take longer, however damaged its files are.
const CALL_TIME_MAX: Duration = Duration::from_secs(60);

const ROUNDS: u64 = 200;

const NEW_FILE: &str = "/memories/after the damage.md";

#[test]
fn damage_after_a_clean_close_never_gives_a_wrong_answer() {
    run_rounds("clean", &life().clean);
}

#[test]
fn damage_after_a_kill_never_gives_a_wrong_answer() {
    run_rounds("killed", &life().killed);
}

#[test]
fn copies_without_damage_answer_everything() {
    for base in life().clean.iter().chain(&life().killed) {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("s");
        copy_directory(&base.directory, &store);
        let vault = builder(&store, &life().key).open().unwrap();
        for question in questions(&base.model) {
            assert_eq!(question.ask(&vault), Seen::Right, "{}", question.name());
        }
        let report = vault.verify(Depth::Full).unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        vault.close().unwrap();
    }
}

/// A store's directory at one moment, what it must answer, and its directory at earlier moments.
struct Base {
    directory: PathBuf,
    model: Model,
    older: Vec<PathBuf>,
}

struct WholeLife {
    _home: tempfile::TempDir,
    key: PathBuf,
    clean: Vec<Arc<Base>>,
    killed: Vec<Arc<Base>>,
}

/// The life of one store, lived once for all rounds.
fn life() -> &'static WholeLife {
    static LIFE: OnceLock<WholeLife> = OnceLock::new();
    LIFE.get_or_init(live)
}

/// Copies of a store's directory in the order in which they were made.
struct Album {
    home: PathBuf,
    pictures: Vec<PathBuf>,
}

impl Album {
    fn take(&mut self, model: &Model) -> Arc<Base> {
        let directory = self.home.join(format!("picture-{}", self.pictures.len()));
        copy_directory(&self.home.join("s"), &directory);
        let older = self.pictures.clone();
        self.pictures.push(directory.clone());
        Arc::new(Base {
            directory,
            model: model.clone(),
            older,
        })
    }
}

fn live() -> WholeLife {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("k");
    strongroom::generate_key_file(&key).unwrap();
    let store = home.path().join("s");
    let mut album = Album {
        home: home.path().to_path_buf(),
        pictures: Vec::new(),
    };
    let mut rng = Rng(7);
    let open = |model: Model| Life {
        vault: builder(&store, &key)
            .create(true)
            .policy(store_kit::roomy_policy())
            .open()
            .unwrap(),
        model,
    };

    let mut life = open(Model::default());
    let [one, two, three] = ["default", "team-a/user-1", "zoe@example.org"];
    for number in 0..12 {
        let text = store_kit::text(&mut rng, number * 7);
        life.create(one, &format!("/memories/notes/{number}.md"), &text);
    }
    album.take(&life.model);
    for number in 0..12 {
        let text = store_kit::text(&mut rng, 20 + number * 30);
        life.create(one, &format!("/memories/a/b/c/{number}.md"), &text);
        life.create(
            two,
            &format!("/memories/work/{}/{number}.md", number % 3),
            &text,
        );
    }
    life.create(one, "/memories/big.md", &store_kit::big_text(&mut rng));
    life.put_bytes(
        two,
        "/memories/pictures/one.png",
        &store_kit::png(&mut rng, 9_000),
    );
    life.vault.close().unwrap();
    album.take(&life.model);

    let mut life = open(life.model);
    for number in 0..8 {
        let text = store_kit::text(&mut rng, 1);
        life.insert(one, &format!("/memories/notes/{number}.md"), &text);
    }
    life.rename(one, "/memories/a/b", "/memories/moved");
    life.delete(one, "/memories/notes/11.md");
    life.rename(two, "/memories/work/0/0.md", "/memories/work/0/renamed.md");
    life.settle();
    let first_kill = album.take(&life.model);

    for number in 0..10 {
        let text = store_kit::text(&mut rng, 5);
        life.create(two, &format!("/memories/short/{number}.md"), &text);
    }
    life.delete(two, "/memories/work/1");
    // Closed at once, so that some of what the directory held may still wait for removal.
    life.vault.close().unwrap();
    let first_close = album.take(&life.model);

    let mut life = open(life.model);
    for number in 0..14 {
        let text = store_kit::text(&mut rng, 3 + number * 11);
        life.create(
            three,
            &format!("/memories/x/{}/{number}.md", number % 4),
            &text,
        );
    }
    life.delete(two, "/memories/short");
    life.delete(one, "/memories/notes/3.md");
    let text = store_kit::text(&mut rng, 9);
    life.create(one, "/memories/notes/3.md", &text);
    life.put_bytes(
        two,
        "/memories/pictures/one.png",
        &store_kit::png(&mut rng, 20_000),
    );
    life.rename(three, "/memories/x/3", "/memories/y");
    life.settle();
    let text = store_kit::text(&mut rng, 2);
    life.insert(three, "/memories/y/3.md", &text);
    let second_kill = album.take(&life.model);
    life.vault.close().unwrap();
    let second_close = album.take(&life.model);

    WholeLife {
        _home: home,
        key,
        clean: vec![first_close, second_close],
        killed: vec![first_kill, second_kill],
    }
}

/// What came of all rounds.
#[derive(Default)]
struct Tally {
    rounds: u64,
    not_opened: u64,
    right: u64,
    refused: u64,
    writes_right: u64,
    writes_refused: u64,
    slowest: Duration,
    failures: Vec<String>,
}

fn run_rounds(kind: &str, bases: &[Arc<Base>]) {
    silence_worker_panics();
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds: Vec<u64> = match number("STRONGROOM_DAMAGE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("STRONGROOM_DAMAGE_ROUNDS").unwrap_or(ROUNDS) / 2).collect(),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        run_round(kind, bases, seed, &mut tally);
    }
    let summary = format!(
        "{kind}: {} rounds, {} refused to open; reads {} right, {} refused; \
         writes {} right, {} refused; slowest call {:?}",
        tally.rounds,
        tally.not_opened,
        tally.right,
        tally.refused,
        tally.writes_right,
        tally.writes_refused,
        tally.slowest,
    );
    report(&summary);
    assert!(
        tally.failures.is_empty(),
        "{summary}\n{} failures:\n{}",
        tally.failures.len(),
        tally.failures.join("\n")
    );
    // Damage to one file must not take everything: most rounds leave most readable.
    assert!(tally.rounds < 20 || tally.right > 0, "{summary}");
}

#[expect(
    clippy::print_stderr,
    reason = "figures of a test run, seen with --nocapture"
)]
fn report(summary: &str) {
    eprintln!("{summary}");
}

/// The engine panics over damaged files, which is caught; its stack traces help nobody.
fn silence_worker_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_test = std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("damage_") || name.starts_with("copies_"));
            if is_test {
                default(panic);
            }
        }));
    });
}

/// What the thread of a round says as it goes.
enum Event {
    Doing(String),
    NotOpened,
    Read(String, Seen),
    Wrote(String, Seen),
}

fn run_round(kind: &str, bases: &[Arc<Base>], seed: u64, tally: &mut Tally) {
    let mut rng = Rng(seed
        .wrapping_mul(2)
        .wrapping_add(u64::from(kind == "killed")));
    let base = Arc::clone(rng.pick(bases));
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("s");
    copy_directory(&base.directory, &store);
    let damage = put_damage(&store, &base, &mut rng);
    let (send, events) = mpsc::channel();
    let worker = {
        let base = Arc::clone(&base);
        let store = store.clone();
        std::thread::Builder::new()
            .name("round".to_owned())
            .spawn(move || work(&store, &base, &mut rng, &send))
            .unwrap()
    };
    tally.rounds += 1;
    let mut failures = Vec::new();
    let mut doing = String::new();
    let mut since = Instant::now();
    loop {
        match events.recv_timeout(CALL_TIME_MAX) {
            Ok(Event::Doing(what)) => {
                doing = what;
            }
            Ok(Event::NotOpened) => tally.not_opened += 1,
            Ok(Event::Read(_, Seen::Right)) => tally.right += 1,
            Ok(Event::Read(_, Seen::Refused)) => tally.refused += 1,
            Ok(Event::Wrote(_, Seen::Right)) => tally.writes_right += 1,
            Ok(Event::Wrote(_, Seen::Refused)) => tally.writes_refused += 1,
            Ok(Event::Read(what, Seen::Wrong(why)) | Event::Wrote(what, Seen::Wrong(why))) => {
                failures.push(format!("{what}: {why}"));
            }
            Err(RecvTimeoutError::Timeout) => {
                failures.push(format!("hangs in: {doing}"));
                // Its thread cannot be ended; the directory goes when the process does.
                std::mem::forget(home);
                break;
            }
            Err(RecvTimeoutError::Disconnected) => {
                if worker.join().is_err() {
                    failures.push(format!("panics in: {doing}"));
                }
                break;
            }
        }
        tally.slowest = tally.slowest.max(since.elapsed());
        since = Instant::now();
    }
    for failure in failures {
        let mut line = String::new();
        let _ = write!(
            line,
            "STRONGROOM_DAMAGE_SEED={seed} ({kind}): {failure}; damage: "
        );
        line.push_str(&damage.join(", "));
        tally.failures.push(line);
    }
}

/// Asks everything, writes, and asks again after the store was closed and opened.
fn work(store: &Path, base: &Base, rng: &mut Rng, events: &Sender<Event>) {
    let say = |event| events.send(event).unwrap();
    say(Event::Doing("open".to_owned()));
    let vault = match builder(store, &life().key).open() {
        Ok(vault) => vault,
        Err(error) => {
            return match judge_opening(&error) {
                Seen::Wrong(why) => say(Event::Read("open".to_owned(), Seen::Wrong(why))),
                _ => say(Event::NotOpened),
            };
        }
    };
    // Without optimisation the big file takes longer than all others together.
    let with_big = rng.below(3) == 0;
    let refused = ask_all(&vault, &base.model, with_big, events);
    if rng.below(4) == 0 {
        say(Event::Doing("verify".to_owned()));
        let finds_nothing = vault
            .verify(Depth::Full)
            .is_ok_and(|report| report.problems.is_empty());
        if finds_nothing && refused > 0 {
            let why = format!("finds nothing, though {refused} reads were refused");
            say(Event::Read("verify".to_owned(), Seen::Wrong(why)));
        }
    }
    let mut model = base.model.clone();
    let acknowledged = write_some(&vault, &mut model, rng, events);
    ask_all(&vault, &model, false, events);
    say(Event::Doing("close".to_owned()));
    let _closed = vault.close();
    if acknowledged == 0 {
        return;
    }
    say(Event::Doing("open again".to_owned()));
    let again = builder(store, &life().key).open();
    if let Err(error) = &again
        && error.code() == strongroom::Code::Other
    {
        let why = format!("does not open again: {error}");
        say(Event::Read("open".to_owned(), Seen::Wrong(why)));
    }
    if let Ok(vault) = again {
        ask_all(&vault, &model, false, events);
        say(Event::Doing("close again".to_owned()));
    }
}

/// A store that does not open says why; only a lost directory counts as no store.
fn judge_opening(error: &strongroom::Error) -> Seen {
    match error.code() {
        strongroom::Code::NotFound => Seen::Wrong("there is said to be no store".to_owned()),
        _ => judge_error(error),
    }
}

fn ask_all(vault: &Vault, model: &Model, with_big: bool, events: &Sender<Event>) -> u64 {
    let mut refused = 0;
    for question in questions(model) {
        if !with_big
            && matches!(question, Question::File(_, _, content) if content.len() > 1_000_000)
        {
            continue;
        }
        let name = question.name();
        events.send(Event::Doing(format!("read {name}"))).unwrap();
        let seen = question.ask(vault);
        refused += u64::from(seen == Seen::Refused);
        events.send(Event::Read(name, seen)).unwrap();
    }
    refused
}

/// Makes a file and changes one in each tenant; the model follows what was acknowledged.
fn write_some(vault: &Vault, model: &mut Model, rng: &mut Rng, events: &Sender<Event>) -> u64 {
    let say = |event| events.send(event).unwrap();
    let mut acknowledged = 0;
    for (name, tree) in &mut model.tenants {
        let Ok(tenant) = vault.tenant(name) else {
            continue;
        };
        say(Event::Doing(format!("create in {name}")));
        let text = store_kit::text(rng, 4);
        let before = tree.clone();
        tree.files
            .insert(NEW_FILE.to_owned(), text.clone().into_bytes());
        let seen = judge_write(tenant.create(NEW_FILE, &text), tree, before, NEW_FILE);
        acknowledged += u64::from(seen == Seen::Right);
        say(Event::Wrote(format!("create in {name}"), seen));

        let texts: Vec<String> = tree
            .files
            .iter()
            .filter(|(path, content)| {
                path.as_str() != NEW_FILE && content.len() < 100_000 && !content.contains(&0)
            })
            .map(|(path, _)| path.clone())
            .filter(|path| path.ends_with(".md"))
            .collect();
        if texts.is_empty() {
            continue;
        }
        let path = rng.pick(&texts).clone();
        say(Event::Doing(format!("insert into {name}:{path}")));
        let before = tree.clone();
        let Some(content) = tree.files.get_mut(&path) else {
            continue;
        };
        content.splice(0..0, *b"a new first line\n");
        let seen = judge_write(
            tenant.insert(&path, 0, "a new first line\n"),
            tree,
            before,
            &path,
        );
        acknowledged += u64::from(seen == Seen::Right);
        say(Event::Wrote(format!("insert into {name}:{path}"), seen));
    }
    acknowledged
}

/// `tree` already holds what the write was to do; it stays so only if it was acknowledged.
fn judge_write(
    outcome: Result<strongroom::wire::Reply, strongroom::Error>,
    tree: &mut store_kit::Tree,
    before: store_kit::Tree,
    path: &str,
) -> Seen {
    match outcome {
        Ok(reply) if !reply.is_error => Seen::Right,
        Ok(reply) => {
            *tree = before;
            Seen::Wrong(format!("{path}: {}", reply.as_text().unwrap_or_default()))
        }
        Err(error) => {
            *tree = before;
            tree.is_unknown = is_unknown(&error);
            judge_error(&error)
        }
    }
}

/// Damages the files of a store and says what was done.
fn put_damage(store: &Path, base: &Base, rng: &mut Rng) -> Vec<String> {
    let all = files_below(store);
    let (engine, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|file| file.starts_with("gen-000001"));
    let (state, rest): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|file| file.as_os_str() == "STATE");
    let count = if rng.below(10) < 6 {
        1
    } else {
        2 + rng.below(3)
    };
    let only_state = rng.below(10) == 0;
    let mut done = Vec::new();
    for _ in 0..count {
        let file = if only_state {
            rng.pick(&state)
        } else if rng.below(3) > 0 {
            // Nearly all bytes of a store are in the engine's log.
            let is_log = |file: &&PathBuf| file.ends_with("db");
            match engine.iter().find(is_log) {
                Some(log) if rng.below(3) > 0 => log,
                _ => rng.pick(&engine),
            }
        } else {
            rng.pick(&rest)
        };
        let path = store.join(file);
        // An earlier damage of this round may have removed it.
        if path.exists() {
            let what = damage_file(&path, file, base, rng);
            done.push(format!("{}: {what}", file.display()));
        }
    }
    done
}

fn damage_file(path: &Path, file: &Path, base: &Base, rng: &mut Rng) -> String {
    let mut bytes = fs::read(path).unwrap();
    let length = bytes.len().max(1);
    let what = match rng.below(8) {
        0 | 1 => {
            let flips = 1 + rng.below(4);
            let mut at = rng.below(length);
            for _ in 0..flips {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
                // Close together as often as far apart.
                at = if rng.below(2) == 0 {
                    at + 1
                } else {
                    rng.below(length)
                };
            }
            format!("{flips} bits flipped")
        }
        kind @ (2 | 3) => {
            let block = if kind == 2 { 512 } else { 4_096 };
            let start = rng.below(length) / block * block;
            let random = rng.below(3) == 0;
            for byte in bytes.iter_mut().skip(start).take(block) {
                *byte = if random {
                    rng.next().to_be_bytes()[0]
                } else {
                    0
                };
            }
            format!(
                "{block} bytes at {start} {}",
                if random { "random" } else { "zeroed" }
            )
        }
        4 => {
            let keep = rng.below(length);
            bytes.truncate(keep);
            format!("cut to {keep}")
        }
        5 => {
            fs::remove_file(path).unwrap();
            return "removed".to_owned();
        }
        6 => {
            let more = 1 + rng.below(8_192);
            bytes.extend((0..more).map(|_| rng.next().to_be_bytes()[0]));
            format!("{more} bytes appended")
        }
        _ => {
            let older: Vec<&PathBuf> = base
                .older
                .iter()
                .filter(|picture| picture.join(file).exists())
                .collect();
            if older.is_empty() {
                fs::remove_file(path).unwrap();
                return "removed, as it was earlier".to_owned();
            }
            let picture = *rng.pick(&older);
            bytes = fs::read(picture.join(file)).unwrap();
            format!("put back from {}", picture.file_name().unwrap().display())
        }
    };
    fs::write(path, bytes).unwrap();
    what
}

/// A kill in the middle of an open once made a store unusable: between the removal of the
/// engine's files and the return of their copy, the store counted as rolled back; and half
/// a copy, left by a kill while it was removed, counted as a whole one.
#[test]
fn copies_that_a_killed_open_left_behind_are_put_back() {
    for (live_is, half_removed) in [("missing", false), ("rewritten", false), ("whole", true)] {
        let base = &life().killed[0];
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("s");
        copy_directory(&base.directory, &store);
        let live = store.join("gen-000001");
        let kept = store.join("gen-000001.keep");
        if half_removed {
            fs::create_dir(store.join("gen-000001.unfinished")).unwrap();
            fs::write(store.join("gen-000001.unfinished/db"), b"half").unwrap();
        } else {
            fs::rename(&live, &kept).unwrap();
        }
        if live_is == "rewritten" {
            copy_directory(&base.older[0].join("gen-000001"), &live);
        }
        let vault = builder(&store, &life().key).open().unwrap();
        for question in questions(&base.model) {
            assert_eq!(
                question.ask(&vault),
                Seen::Right,
                "{live_is}: {}",
                question.name()
            );
        }
        vault.close().unwrap();
        let left: Vec<_> = fs::read_dir(&store)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_string_lossy().contains("gen-000001."))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// sled's settings file never changes, so without it the engine still finds everything.
#[test]
fn copies_with_a_damaged_settings_file_answer_everything() {
    for base in life().clean.iter().chain(&life().killed) {
        for bytes in [&b"segment_size: 1"[..], &[0xFF; 70], b""] {
            let home = tempfile::tempdir().unwrap();
            let store = home.path().join("s");
            copy_directory(&base.directory, &store);
            fs::write(store.join("gen-000001/conf"), bytes).unwrap();
            let vault = builder(&store, &life().key).open().unwrap();
            let report = vault.verify(Depth::Quick).unwrap();
            assert!(report.problems.is_empty(), "{report:?}");
        }
    }
}

/// The judge itself must see the difference between right, old and missing.
#[test]
fn copies_with_another_model_are_judged_wrong() {
    let base = &life().clean[0];
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("s");
    copy_directory(&base.directory, &store);
    let vault = builder(&store, &life().key).open().unwrap();
    let mut model = base.model.clone();
    let tree = model.tenants.get_mut("default").unwrap();
    tree.files
        .insert("/memories/never.md".to_owned(), b"never\n".to_vec());
    tree.gone.insert("/memories/big.md".to_owned());
    let wrong = questions(&model)
        .iter()
        .filter(|question| matches!(question.ask(&vault), Seen::Wrong(_)))
        .map(Question::name)
        .collect::<Vec<_>>();
    for name in [
        "default:/memories/",
        "default:/memories/never.md",
        "default:/memories/big.md (gone)",
    ] {
        assert!(wrong.contains(&name.to_owned()), "{wrong:?}");
    }
    if wrong.len() != 3 {
        panic!("{wrong:?}");
    }
}
