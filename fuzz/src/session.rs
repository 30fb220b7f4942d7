//! Runs a script on a store and on its model, and compares what both answer and hold.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use strongroom::backend::{MemoryBackend, MemoryKeyStore};
use strongroom::clock::ManualClock;
use strongroom::wire::Command;
use strongroom::{Depth, Error, StoreError, Tenant, Vault, VaultBuilder, policy};

use crate::commands::{Script, Step};
use crate::disk::{Disk, Image, Records, Trouble};
use crate::keys::{Counted, key_source};
use crate::memory::{Memory, Rules};

const TENANTS: [&str; 2] = ["one", "two/2"];
const START: u64 = 1_790_000_000_000;

/// Redaction is off: it has a target of its own, and here it would take most of the time.
const POLICY: &str = "schema = 1\n[write]\non_existing = \"overwrite\"\n[redaction]\nrule_packs = []\n\
    [[tenants]]\nmatch = \"two/*\"\nwrite = { on_existing = \"error\" }\n\
    retention = { expire_after_created = \"10d\" }\n";

const RULES: [Rules; 2] = [
    Rules {
        overwrites: true,
        life: None,
    },
    Rules {
        overwrites: false,
        life: Some(10 * 24 * 60),
    },
];

/// A new store, from which every script begins.
static NEW: LazyLock<(Records, MemoryKeyStore)> = LazyLock::new(|| {
    let (backend, keys) = (
        Arc::new(MemoryBackend::new()),
        Arc::new(MemoryKeyStore::new()),
    );
    let vault = builder(START)
        .on(backend.clone(), keys.clone())
        .random(Arc::new(Counted::default()))
        .create(true)
        .policy(policy::load(POLICY, "the model's policy").expect("it loads"))
        .open()
        .expect("a store in memory opens");
    vault.close().expect("it closes");
    (backend.records(), (*keys).clone())
});

fn builder(now: u64) -> VaultBuilder {
    Vault::builder()
        .key_source(key_source())
        .clock(Arc::new(ManualClock::at(now)))
}

/// What a script came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Commands that changed or showed something.
    pub done: u32,
    /// Commands that were refused, as they should be.
    pub refused: u32,
    /// Commands that ended in an error of the store.
    pub failed: u32,
    /// Power cuts.
    pub cuts: u32,
}

/// An open store, and what must be in it.
struct Session {
    disk: Arc<Disk>,
    clock: Arc<ManualClock>,
    now: u64,
    open: Option<(Vault, [Tenant; 2])>,
    memories: [Memory; 2],
    tally: Tally,
}

/// Runs a script to its end.
///
/// # Panics
/// When the store answers or holds anything else than the model.
#[must_use]
pub fn run(script: &Script) -> Tally {
    let image = Image {
        records: NEW.0.clone(),
        keys: NEW.1.clone(),
    };
    let mut session = Session {
        disk: Arc::new(Disk::holding(image)),
        clock: Arc::new(ManualClock::at(START)),
        now: START,
        open: None,
        memories: RULES.map(Memory::new),
        tally: Tally::default(),
    };
    session.open();
    for step in &script.0 {
        match step {
            Step::Run {
                tenant,
                act,
                trouble,
            } => {
                if let Some(command) = act.command(&session.memories[*tenant]) {
                    session.command(*tenant, &command, *trouble);
                }
            }
            Step::Reopen => {
                session.reopen();
                session.compare();
            }
            Step::Pass { minutes } => session.pass(*minutes),
            Step::Sweep => session.sweep(),
        }
    }
    session.compare();
    session.reopen();
    session.compare();
    let report = session
        .vault()
        .verify(Depth::Full)
        .expect("the store is verified");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    session.close();
    session.tally
}

impl Session {
    fn vault(&self) -> &Vault {
        &self.open.as_ref().expect("the store is open").0
    }

    fn tenant(&self, number: usize) -> &Tenant {
        &self.open.as_ref().expect("the store is open").1[number]
    }

    fn open(&mut self) {
        let vault = builder(self.now)
            .clock(self.clock.clone())
            .on(self.disk.clone(), self.disk.clone())
            .open()
            .unwrap_or_else(|error| panic!("the store does not open: {error}"));
        let tenants = TENANTS.map(|name| vault.tenant(name).expect("a tenant's name"));
        self.open = Some((vault, tenants));
    }

    fn close(&mut self) {
        if let Some((vault, _)) = self.open.take() {
            let closed = vault.close();
            assert!(closed.is_ok() || self.disk.has_failed(), "{closed:?}");
        }
    }

    /// Nothing fails on the disk any more from here on.
    fn reopen(&mut self) {
        self.close();
        if self.disk.has_failed() {
            self.disk = Arc::new(Disk::holding(self.disk.live()));
        }
        self.open();
    }

    fn command(&mut self, number: usize, command: &Command, trouble: Option<(u8, Trouble)>) {
        let before = self.memories[number].clone();
        let mut after = before.clone();
        let expected = after.run(command);
        // A move sweeps what it moves before it moves it.
        let mut between = before.clone();
        if let Command::Rename { old_path, .. } = command {
            between.sweep(old_path);
        }
        let legal = [&after, &between, &before];
        self.disk.arm(trouble);
        let answer = self.tenant(number).run(command);
        let image = self.disk.disarm();
        if let Err(error) = &answer {
            self.tally.failed += 1;
            assert!(
                self.disk.has_failed(),
                "nothing failed below, and yet: {error}"
            );
            if !is_unknown(error) {
                // Nothing was written, and the same command may be tried again.
                assert!(trouble.is_some(), "{command:?} fails twice: {error}");
                self.settle(number, &legal[1..]);
                return self.command(number, command, None);
            }
        }
        match answer {
            Ok(reply) => {
                assert_eq!(
                    reply.is_error,
                    expected.is_none(),
                    "{command:?}: {:?}",
                    reply.as_text()
                );
                if let Some(expected) = &expected {
                    assert_eq!(reply.as_text(), Some(expected.as_str()), "{command:?}");
                }
                self.tally.done += u32::from(expected.is_some());
                self.tally.refused += u32::from(expected.is_none());
                self.memories[number] = after.clone();
            }
            Err(_) => {
                self.assert_no_wrong_answer(number, &legal);
                self.reopen();
                self.settle(number, &legal);
            }
        }
        if let Some(image) = image {
            // The power went while the command ran: it is done whole or not at all.
            self.tally.cuts += 1;
            self.close();
            self.disk = Arc::new(Disk::holding(image));
            self.open();
            self.settle(number, &legal);
        }
    }

    /// Takes the one of the outcomes that the store holds.
    fn settle(&mut self, number: usize, legal: &[&Memory]) {
        let mut found: Vec<Memory> = Vec::new();
        for memory in legal {
            let is_held = self.difference(number, memory, legal).is_none();
            if is_held && !found.contains(memory) {
                found.push((*memory).clone());
            }
        }
        if found.is_empty() {
            let differences = legal
                .iter()
                .map(|memory| self.difference(number, memory, legal));
            panic!(
                "the store holds none of what it may: {:#?}",
                differences.collect::<Vec<_>>()
            );
        }
        if found.len() > 1 {
            // They differ in what nobody can see, until it is swept.
            self.expire();
            for memory in found.iter_mut().chain(&mut self.memories) {
                memory.sweep("/memories");
            }
            let swept = found.clone();
            let swept: Vec<&Memory> = swept.iter().collect();
            found.retain(|memory| self.difference(number, memory, &swept).is_none());
        }
        let found = found.pop();
        self.memories[number] = found.expect("one of the outcomes is there after a sweep, too");
        self.assert_holds(1 - number, &self.memories[1 - number]);
    }

    /// With an unknown outcome a read is right or refused.
    fn assert_no_wrong_answer(&self, number: usize, legal: &[&Memory]) {
        for path in legal
            .iter()
            .flat_map(|memory| memory.files.keys().chain(&memory.directories))
        {
            let Ok(reply) = self.tenant(number).view(path, None) else {
                continue;
            };
            let is_legal = legal.iter().any(|memory| match memory.view(path, None) {
                Some(text) => reply.as_text() == Some(&*text),
                None => reply.is_error,
            });
            assert!(
                is_legal,
                "{path} reads as it never was: {:?}",
                reply.as_text()
            );
        }
    }

    fn pass(&mut self, minutes: u64) {
        self.now += minutes * 60_000;
        self.clock.set(self.now);
        for memory in &mut self.memories {
            memory.pass(minutes);
        }
    }

    fn sweep(&mut self) {
        self.expire();
        for memory in &mut self.memories {
            memory.sweep("/memories");
        }
        self.compare();
    }

    fn expire(&mut self) {
        if self.disk.has_failed() {
            self.reopen();
        }
        let report = self.vault().expire(None, false, |_, _| ());
        let report = report.expect("a sweep ends");
        assert!(report.failed.is_empty(), "a sweep leaves tenants out");
    }

    fn compare(&mut self) {
        if self.disk.has_failed() {
            // The reaper may have met the failure: then nothing is answered until it is opened again.
            self.reopen();
        }
        for (number, memory) in self.memories.iter().enumerate() {
            self.assert_holds(number, memory);
        }
        let stats = self.vault().stats().expect("figures of an open store");
        for (name, memory) in TENANTS.iter().zip(&self.memories) {
            let totals = stats.tenants.iter().find(|totals| totals.name == *name);
            let totals = totals.map_or((0, 0), |totals| (totals.files, totals.bytes));
            if !memory.is_swept() {
                continue;
            }
            let bytes: usize = memory.files.values().map(String::len).sum();
            assert_eq!(totals, (memory.files.len() as u64, bytes as u64), "{name}");
        }
    }

    fn assert_holds(&self, number: usize, memory: &Memory) {
        let difference = self.difference(number, memory, &[]);
        assert!(difference.is_none(), "{}: {difference:#?}", TENANTS[number]);
    }

    /// The first path, of this memory or of the others, that reads otherwise than this one has it,
    /// with both texts. (An empty hidden file shows in no listing.)
    fn difference(
        &self,
        number: usize,
        memory: &Memory,
        others: &[&Memory],
    ) -> Option<(String, String, Option<String>)> {
        let paths = [memory].into_iter().chain(others.iter().copied());
        let paths = paths.flat_map(|memory| memory.directories.iter().chain(memory.files.keys()));
        paths.collect::<BTreeSet<_>>().into_iter().find_map(|path| {
            let expected = memory.view(path, None);
            let (shown, is_right) = match self.tenant(number).view(path, None) {
                Ok(reply) => {
                    let shown = reply.as_text().unwrap_or_default().to_owned();
                    let is_right = match &expected {
                        Some(expected) => shown == *expected,
                        None => reply.is_error,
                    };
                    (shown, is_right)
                }
                Err(error) => (error.to_string(), false),
            };
            (!is_right).then(|| (path.clone(), shown, expected))
        })
    }
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::OutcomeUnknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn scripts_reach_every_kind_of_outcome() {
        let count = 300;
        let mut sum = Tally::default();
        for script in built::<Script>(count, 400) {
            let tally = run(&script);
            sum.done += tally.done;
            sum.refused += tally.refused;
            sum.failed += tally.failed;
            sum.cuts += tally.cuts;
        }
        println!("{count} scripts: {sum:?}");
        assert!(sum.done * 2 > sum.refused, "{sum:?}");
        assert!(sum.failed > 100 && sum.cuts > 30, "{sum:?}");
    }
}
