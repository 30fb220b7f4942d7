//! When a file expires: the policy's `[retention]` as a question to ask of one file, or of a whole directory.
//!
//! Nothing here reads or writes. `store` asks it on every read, so that what is expired does
//! not exist from that moment on; the sweep only takes it away.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::UnixMillis;
use crate::policy::{Pattern, Policy, Retention};
use crate::record::Share;

/// The schedule of each tenant under one policy.
pub(crate) struct Schedules {
    policy: Arc<Policy>,
    common: Arc<Schedule>,
    /// Whether some tenants have a schedule of their own.
    differ: bool,
    /// By this one everything expires at least as soon as by any tenant's.
    soonest: Schedule,
}

impl Schedules {
    /// The schedules that a policy asks for.
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        let common = Schedule::new(&policy.retention);
        let own = policy
            .tenants
            .iter()
            .filter_map(|rule| rule.retention_of(&policy));
        let mut soonest = common.clone();
        let mut differ = false;
        for retention in own {
            differ = true;
            soonest.hasten(&Schedule::new(&retention));
        }
        Self {
            common: Arc::new(common),
            differ,
            soonest,
            policy,
        }
    }

    /// The schedule of the tenant with this name. Cost: one pattern match for each
    /// `[[tenants]]` entry, if any of them has a `retention`.
    pub(crate) fn of(&self, tenant: &str) -> Arc<Schedule> {
        if self.differ {
            Arc::new(Schedule::new(&self.policy.for_tenant(tenant).retention))
        } else {
            Arc::clone(&self.common)
        }
    }

    /// The moment before which nothing below a directory can expire, whosever it is.
    pub(crate) fn next_due(&self, path: &str, below: &Share) -> Option<UnixMillis> {
        self.soonest.next_due(path, below)
    }
}

/// The rules in the order in which they are tried.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Longest literal prefix first.
    rules: Vec<PathRule>,
    fallback: Rule,
    granularity: UnixMillis,
}

#[derive(Debug, Clone)]
struct PathRule {
    prefix_bytes: usize,
    paths: Pattern,
    rule: Rule,
}

/// Ages in milliseconds; `None` is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    after_access: Option<UnixMillis>,
    after_created: Option<UnixMillis>,
    keep_at_least: UnixMillis,
}

impl Schedule {
    /// The schedule that a policy's `[retention]` asks for.
    pub(crate) fn new(retention: &Retention) -> Self {
        let fallback = Rule {
            after_access: retention.expire_after_last_access.map(millis),
            after_created: retention.expire_after_created.map(millis),
            keep_at_least: millis(retention.keep_at_least),
        };
        let mut rules = Vec::new();
        for entry in &retention.rules {
            let rule = Rule {
                after_access: entry
                    .expire_after_last_access
                    .map_or(fallback.after_access, |age| age.map(millis)),
                after_created: entry
                    .expire_after_created
                    .map_or(fallback.after_created, |age| age.map(millis)),
                keep_at_least: entry.keep_at_least.map_or(fallback.keep_at_least, millis),
            };
            for pattern in entry.paths.iter() {
                let text = pattern.to_string();
                rules.push(PathRule {
                    prefix_bytes: text.find('*').unwrap_or(text.len()),
                    paths: pattern.clone(),
                    rule,
                });
            }
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.prefix_bytes));
        Self {
            rules,
            fallback,
            granularity: millis(retention.access_granularity),
        }
    }

    /// Whether no file can ever expire.
    pub(crate) fn is_never(&self) -> bool {
        self.fallback.is_never() && self.rules.iter().all(|rule| rule.rule.is_never())
    }

    /// From when on the file at `path` is expired. `accessed` is its last access, which a
    /// rename of a directory above it may have moved on.
    pub(crate) fn due_at(
        &self,
        path: &str,
        created: UnixMillis,
        accessed: UnixMillis,
    ) -> Option<UnixMillis> {
        self.rule_for(path).due_at(accessed, created)
    }

    /// Whether a directory can hold anything that is expired at `now`, by the lower bounds in
    /// the totals of all that is below it.
    pub(crate) fn may_hold_expired(&self, path: &str, below: &Share, now: UnixMillis) -> bool {
        self.next_due(path, below).is_some_and(|due| due <= now)
    }

    /// The moment before which nothing below a directory can expire.
    pub(crate) fn next_due(&self, path: &str, below: &Share) -> Option<UnixMillis> {
        if below.files == 0 {
            return None;
        }
        let mut soonest: Option<UnixMillis> = None;
        let mut consider = |rule: &Rule| {
            let due = rule.due_at(below.oldest, below.born);
            soonest = soonest.into_iter().chain(due).min();
        };
        for rule in &self.rules {
            if rule.paths.reaches_at_or_below(path) {
                consider(&rule.rule);
            }
            // Whatever lies below, no rule behind this one counts for it.
            if rule.paths.covers_all_below(path) {
                return soonest;
            }
        }
        consider(&self.fallback);
        soonest
    }

    /// Makes each rule at least as soon as the same rule of a schedule that only differs in
    /// times.
    fn hasten(&mut self, other: &Self) {
        self.fallback.hasten(&other.fallback);
        for (mine, theirs) in self.rules.iter_mut().zip(&other.rules) {
            mine.rule.hasten(&theirs.rule);
        }
    }

    /// Whether a view at `now` should write the access time of a file: at most once in the
    /// policy's granularity, and only where expiry depends on it.
    pub(crate) fn should_touch(&self, path: &str, accessed: UnixMillis, now: UnixMillis) -> bool {
        self.rule_for(path).after_access.is_some()
            && now >= accessed.saturating_add(self.granularity)
    }

    /// Whether so much of the file's time has passed that losing the access time in a power
    /// cut could cost the file: more than half.
    pub(crate) fn is_urgent(&self, path: &str, accessed: UnixMillis, now: UnixMillis) -> bool {
        let rule = self.rule_for(path);
        rule.after_access
            .is_some_and(|age| now > accessed.saturating_add(age / 2))
    }

    fn rule_for(&self, path: &str) -> &Rule {
        self.rules
            .iter()
            .find(|rule| rule.paths.matches(path))
            .map_or(&self.fallback, |rule| &rule.rule)
    }
}

impl Rule {
    fn is_never(&self) -> bool {
        self.after_access.is_none() && self.after_created.is_none()
    }

    fn hasten(&mut self, other: &Self) {
        let sooner = |a: Option<UnixMillis>, b| a.into_iter().chain(b).min();
        self.after_access = sooner(self.after_access, other.after_access);
        self.after_created = sooner(self.after_created, other.after_created);
        self.keep_at_least = self.keep_at_least.min(other.keep_at_least);
    }

    fn due_at(&self, accessed: UnixMillis, created: UnixMillis) -> Option<UnixMillis> {
        let by_access = self.after_access.map(|age| accessed.saturating_add(age));
        let by_age = self.after_created.map(|age| created.saturating_add(age));
        let due = match (by_access, by_age) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(due.max(created.saturating_add(self.keep_at_least)))
    }
}

fn millis(duration: Duration) -> UnixMillis {
    UnixMillis::try_from(duration.as_millis()).unwrap_or(UnixMillis::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy;

    const DAY: UnixMillis = 86_400_000;

    fn schedule(text: &str) -> Schedule {
        Schedule::new(&policy::load(text, "test").unwrap().retention)
    }

    #[test]
    fn the_longest_literal_prefix_wins() {
        let schedule = schedule(
            "[retention]\nexpire_after_last_access = \"90d\"\n\
             [[retention.rules]]\npaths = [\"/memories/sessions/**\"]\nexpire_after_last_access = \"7d\"\n\
             [[retention.rules]]\npaths = [\"/memories/sessions/keep/**\"]\nexpire_after_last_access = \"never\"\n\
             [[retention.rules]]\npaths = [\"/memories/*/x\"]\nexpire_after_last_access = \"1d\"\n",
        );
        for (path, days) in [
            ("/memories/a.md", Some(90)),
            ("/memories/sessions/a.md", Some(7)),
            ("/memories/sessions/keep/a.md", None),
            ("/memories/sessions/x", Some(7)),
            ("/memories/other/x", Some(1)),
        ] {
            let due = schedule.due_at(path, 0, 5 * DAY);
            assert_eq!(due, days.map(|days| (days + 5) * DAY), "{path}");
        }
        assert!(!schedule.is_never());
    }

    #[test]
    fn a_file_is_kept_at_least_as_long_as_the_policy_says() {
        let schedule = schedule(
            "[retention]\nexpire_after_last_access = \"1d\"\nexpire_after_created = \"20d\"\nkeep_at_least = \"10d\"\n",
        );
        assert_eq!(schedule.due_at("/memories/a", 0, 0), Some(10 * DAY));
        assert_eq!(schedule.due_at("/memories/a", 0, 12 * DAY), Some(13 * DAY));
        assert_eq!(schedule.due_at("/memories/a", 0, 50 * DAY), Some(20 * DAY));
    }

    #[test]
    fn a_rule_that_covers_a_directory_is_the_only_one_that_counts_there() {
        let schedule = schedule(
            "[retention]\nexpire_after_last_access = \"90d\"\n\
             [[retention.rules]]\npaths = [\"/memories/keep/**\"]\nexpire_after_last_access = \"never\"\n\
             [[retention.rules]]\npaths = [\"/memories/keep/not/**\"]\nexpire_after_last_access = \"7d\"\n\
             [[retention.rules]]\npaths = [\"/memories/sessions/**\"]\nexpire_after_last_access = \"7d\"\n",
        );
        let below = Share {
            files: 1,
            oldest: 0,
            born: 0,
            ..Share::NOTHING
        };
        for (directory, days) in [
            ("/memories", Some(7)),
            ("/memories/notes", Some(90)),
            ("/memories/sessions/a", Some(7)),
            ("/memories/keep", Some(7)),
            ("/memories/keep/not/a", Some(7)),
            ("/memories/keep/a", None),
        ] {
            let due = schedule.next_due(directory, &below);
            assert_eq!(due, days.map(|days| days * DAY), "{directory}");
        }
    }

    proptest! {
        /// A subtree may be skipped only if nothing in it is expired.
        #[test]
        fn skipping_never_misses_an_expired_file(
            below in "(sessions|sessions/keep|other|a)/(x|y)",
            accessed in 0..200 * DAY,
            created in 0..200 * DAY,
            now in 0..400 * DAY,
        ) {
            let schedule = schedule(
                "[retention]\nexpire_after_created = \"90d\"\nkeep_at_least = \"2d\"\n\
                 [[retention.rules]]\npaths = [\"/memories/sessions/**\"]\nexpire_after_last_access = \"7d\"\n\
                 [[retention.rules]]\npaths = [\"/memories/*/x\"]\nexpire_after_last_access = \"1d\"\nkeep_at_least = \"0s\"\n",
            );
            let path = format!("/memories/{below}");
            let created = created.min(accessed);
            let due = schedule.due_at(&path, created, accessed);
            if due.is_some_and(|due| due <= now) {
                let mut directory = path.as_str();
                let bounds = Share { files: 1, oldest: accessed, born: created, ..Share::NOTHING };
                while let Some((parent, _)) = directory.rsplit_once('/') {
                    if parent.is_empty() { break; }
                    prop_assert!(schedule.may_hold_expired(parent, &bounds, now), "{parent}");
                    directory = parent;
                }
            }
        }
    }
}
