//! Runs the golden commands on every backend: input as it comes over the wire, whole replies.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a table that cannot be read fails the test"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use strongroom::policy::{self, Policy};
use strongroom::wire::Reply;
use strongroom::{Answer, Tenant, Vault};

use common::{GROUNDS, Ground, assert_sound, open};

/// Threads that share one handle where a step makes many calls.
const THREADS: u64 = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Policies by the names that cases give.
    #[serde(default)]
    policy: BTreeMap<String, String>,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "source")]
    _source: Option<String>,
    policy: Option<String>,
    steps: Vec<Step>,
}

/// One call, or several that differ in a number, and what the reply must be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    call: Option<String>,
    /// A path at which the host stores the bytes in `hex`.
    put: Option<String>,
    hex: Option<String>,
    text: Option<Repeated>,
    times: Option<u64>,
    /// The whole text of a success.
    reply: Option<String>,
    /// The whole text of an error.
    error: Option<String>,
    /// The whole output line.
    json: Option<String>,
    /// Parts of a success that is too long to be given whole.
    #[serde(default)]
    shows: Vec<String>,
    #[serde(default)]
    hides: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeated {
    unit: String,
    times: usize,
}

#[test]
fn what_users_met_elsewhere_is_right_here() {
    check_table(include_str!("golden/commands.toml"), 103);
}

#[test]
fn every_reply_is_as_specified() {
    check_table(include_str!("golden/replies.toml"), 100);
}

fn check_table(table: &str, cases_min: usize) {
    let table: Table = toml::from_str(table).unwrap();
    assert!(table.case.len() >= cases_min, "the table is read whole");
    let names: BTreeSet<_> = table.case.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), table.case.len(), "each name stands once");
    for ground in GROUNDS {
        check(&table, ground);
    }
}

/// Every case on one backend: a store for each policy, a tenant for each case.
fn check(table: &Table, ground: Ground) {
    let default = [(None, Policy::default())];
    let named = table.policy.iter().map(|(name, text)| {
        let policy = policy::load(text, name).unwrap_or_else(|error| panic!("{error}"));
        (Some(name.as_str()), policy)
    });
    let (mut checked, mut skipped) = (0, 0);
    let mut failed = Vec::new();
    for (name, policy) in default.into_iter().chain(named) {
        if ground == Ground::Fault && name == Some("large") {
            // 10,000 files once more would take seconds and show nothing new.
            skipped += cases_under(table, name).count();
            continue;
        }
        let opened = open(ground, &policy);
        for (number, case) in cases_under(table, name).enumerate() {
            let tenant = opened.vault.tenant(&format!("golden/{number}")).unwrap();
            // All cases that fail are worth knowing, not only the first.
            let done = catch_unwind(AssertUnwindSafe(|| {
                check_case(&opened.vault, &tenant, case, ground);
            }));
            if done.is_err() {
                failed.push(&case.name);
            }
            checked += 1;
        }
        assert_sound(&opened.vault, &format!("{ground:?} {name:?}"));
    }
    assert_eq!(
        checked + skipped,
        table.case.len(),
        "a policy has no such name"
    );
    assert!(failed.is_empty(), "{ground:?}: {failed:#?}");
}

fn cases_under<'t>(table: &'t Table, policy: Option<&str>) -> impl Iterator<Item = &'t Case> {
    let cases = table.case.iter();
    cases.filter(move |case| case.policy.as_deref() == policy)
}

fn check_case(vault: &Vault, tenant: &Tenant, case: &Case, ground: Ground) {
    for (number, step) in case.steps.iter().enumerate() {
        let what = format!("{ground:?}: {}, step {}", case.name, number + 1);
        let Some(times) = step.times else {
            check_answer(&carry_out(tenant, step, 0), step, 0, &what);
            continue;
        };
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // A handle of its own to the same tenant.
                    let tenant = vault.tenant(tenant.name()).unwrap();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= times {
                            break;
                        }
                        check_answer(&carry_out(&tenant, step, number), step, number, &what);
                    }
                });
            }
        });
    }
}

fn carry_out(tenant: &Tenant, step: &Step, number: u64) -> Answered {
    match (&step.call, &step.put) {
        (Some(call), None) => tenant.execute(&fill_in(call, step, number)).into(),
        (None, Some(path)) => {
            let hex = step.hex.as_deref().unwrap_or_default();
            let bytes = match &step.text {
                Some(text) => text.unit.repeat(text.times).into_bytes(),
                None => from_hex(hex),
            };
            let reply = tenant.put_bytes(path, &bytes).unwrap();
            let json = reply.to_tool_result(None);
            Answered { reply, json }
        }
        _ => panic!("a step has either `call` or `put`"),
    }
}

struct Answered {
    reply: Reply,
    json: String,
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Self {
        assert!(answer.failure.is_none(), "{:?}", answer.failure);
        let json = answer.to_json();
        Self {
            reply: answer.reply,
            json,
        }
    }
}

/// The call with its `$text` and `$i`.
fn fill_in(call: &str, step: &Step, number: u64) -> String {
    let mut call = call.to_owned();
    if let Some(text) = &step.text {
        let text = serde_json::to_string(&text.unit.repeat(text.times)).unwrap();
        call = call.replace("\"$text\"", &text);
    }
    if step.times.is_some() {
        call = call.replace("$i", &number.to_string());
    }
    call
}

fn check_answer(answered: &Answered, step: &Step, number: u64, what: &str) {
    let Answered { reply, json } = answered;
    if let Some(text) = reply.as_text() {
        assert_eq!(reply.is_error, says_error(text), "{what}: {text}");
        assert!(!text.ends_with('\n'), "{what}: {text}");
    }
    let in_full = |text: &str| match step.times {
        Some(_) => text.replace("$i", &number.to_string()),
        None => text.to_owned(),
    };
    let mut is_checked = false;
    for (expected, is_error) in [(&step.reply, false), (&step.error, true)] {
        if let Some(expected) = expected {
            assert_eq!(reply.as_text(), Some(&*in_full(expected)), "{what}");
            assert_eq!(reply.is_error, is_error, "{what}");
            is_checked = true;
        }
    }
    if let Some(expected) = &step.json {
        assert_eq!(json, expected, "{what}");
        is_checked = true;
    }
    for part in &step.shows {
        let text = reply.as_text().unwrap_or_default();
        assert!(text.contains(part.as_str()), "{what}: no {part:?}");
        is_checked = true;
    }
    for part in &step.hides {
        let text = reply.as_text().unwrap_or_default();
        assert!(!text.contains(part.as_str()), "{what}: {part:?}");
    }
    assert!(is_checked, "{what}: nothing is expected");
}

/// Whether a text starts as those do that go with `is_error`.
fn says_error(text: &str) -> bool {
    let is_file_limit = text.starts_with("File /") && text.contains(" exceeds ");
    let is_missing = text.starts_with("The path /")
        && text.ends_with(" does not exist. Please provide a valid path.");
    text.starts_with("Error: ") || text.starts_with("No replacement") || is_file_limit || is_missing
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    assert!(digits.remainder().is_empty(), "two digits a byte");
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
