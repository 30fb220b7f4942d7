//! A seeded corpus of planted secrets and of texts that only look like them. Nothing in it is copied or real.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each user of the corpus takes another part of it"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "test data"
)]

pub mod formats;
pub mod negatives;
pub mod people;
pub mod personal;
pub mod plant;
pub mod secrets;

/// One text with what was planted in it.
pub struct Sample {
    /// The whole text.
    pub text: String,
    /// Forms of the planted values that must not be left, as they stand in the text.
    pub planted: Vec<String>,
    /// What kind of value.
    pub class: &'static str,
    /// Where or how it was written.
    pub context: &'static str,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub fn expand(&mut self, template: &str) -> String {
        strongroom::redact::example::expand(template, self.next())
    }
}

/// Lines of ordinary notes.
pub const PROSE: &[&str] = &[
    "The deploy went out on Tuesday and nothing broke.",
    "Remember to ask Mia about the retry budget before the review.",
    "We agreed to keep the queue small and to drop stale jobs.",
    "## Next steps",
    "- check the dashboard after the migration",
    "- the cache is warm again, latency is back to 40 ms",
    "He prefers short answers and tests before refactoring.",
    "Version 2.4.1 fixed the off-by-one in the pager; see CHANGELOG.md.",
    "The token bucket limits each client to 20 requests a second.",
    "Passwords are never stored here; the vault holds them.",
    "Run `cargo test --lib` before pushing, CI takes 12 minutes.",
    "Meeting moved to 14:30 on 2026-03-02, room B.",
    "| service | owner | port |",
    "TODO: rename the key of the map to something shorter",
    "It’s “fine” for now — but the timeout (30 s) is too long…",
    "The primary key is (tenant, seq); the secondary index is on created_at.",
    "fn main() { println!(\"hello\"); }",
    "See https://docs.example.org/guide/intro#setup for the details.",
];

/// Surrounds `core` with a few lines of notes.
pub fn surround(rng: &mut Rng, core: &str) -> String {
    let mut out = String::new();
    for _ in 0..rng.below(3) {
        out.push_str(rng.pick::<&str>(PROSE));
        out.push('\n');
    }
    out.push_str(core);
    out.push('\n');
    for _ in 0..rng.below(3) {
        out.push_str(rng.pick::<&str>(PROSE));
        out.push('\n');
    }
    out
}

/// Whether anything of the planted form is left in `output`: the whole, or a part of it long enough to matter.
pub fn is_left(output: &str, planted: &str) -> bool {
    if output.contains(planted) {
        return true;
    }
    let parts = planted
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '+' | '>' | '\\' | '.'));
    parts
        .filter(|p| p.len() >= 10)
        .any(|p| output.contains(p) && !p.starts_with("[REDACTED"))
}
