//! `[retention]`: when files expire. Read and checked here; `retention` answers by it.

use std::time::Duration;

use super::emit::{Block, string, strings};
use super::error::PolicyError;
use super::limits::parse_patterns;
use super::pattern::PatternSet;
use super::section::{Field, Section};
use super::tenants::loosens;
use super::units::format_duration;

pub(super) const KEYS: &[&str] = &[
    "expire_after_last_access",
    "expire_after_created",
    "keep_at_least",
    "access_granularity",
    "rules",
];
const RULE_KEYS: &[&str] = &[
    "paths",
    "expire_after_last_access",
    "expire_after_created",
    "keep_at_least",
];

/// What a `[[tenants]]` entry may set.
pub(super) const TENANT_KEYS: &[&str] = &[
    "expire_after_last_access",
    "expire_after_created",
    "keep_at_least",
];

/// Shortest and longest time to expiry: 1 minute to 1,000 years.
const EXPIRE: (Duration, Duration) = (
    Duration::from_secs(60),
    Duration::from_secs(1_000 * 365 * 86_400),
);
/// Shortest and longest time between two access writes: 1 minute to 7 days.
const GRANULARITY: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(7 * 86_400));
/// Most `[[retention.rules]]`.
const RULES_MAX: usize = 1_000;

/// `[retention]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Retention {
    /// Time from the last access to expiry; `None` for `never`.
    pub expire_after_last_access: Option<Duration>,
    /// Time from creation to expiry; `None` for `never`.
    pub expire_after_created: Option<Duration>,
    /// Time from creation before which a file does not expire; zero for none.
    pub keep_at_least: Duration,
    /// At most one access write a file in this time.
    pub access_granularity: Duration,
    /// Rules for some paths; the longest literal prefix wins.
    pub rules: Vec<RetentionRule>,
}

/// One `[[retention.rules]]` entry. A key that is left out is as in `[retention]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetentionRule {
    /// The files it is for; at least one pattern.
    pub paths: PatternSet,
    /// As in [`Retention`]; the outer `None` for left out.
    pub expire_after_last_access: Option<Option<Duration>>,
    /// As in [`Retention`]; the outer `None` for left out.
    pub expire_after_created: Option<Option<Duration>>,
    /// As in [`Retention`]; `None` for left out.
    pub keep_at_least: Option<Duration>,
}

impl Retention {
    pub(super) fn parse(section: &Section<'_>) -> Result<Self, PolicyError> {
        section.accept(KEYS)?;
        let rules = section.tables("rules")?;
        if rules.len() > RULES_MAX {
            return Err(section.wrong(&format!("has more than {RULES_MAX} rules. Merge some")));
        }
        Ok(Self {
            expire_after_last_access: expiry(&section.required("expire_after_last_access")?)?,
            expire_after_created: expiry(&section.required("expire_after_created")?)?,
            keep_at_least: keep(&section.required("keep_at_least")?)?,
            access_granularity: section
                .required("access_granularity")?
                .duration(GRANULARITY.0, GRANULARITY.1)?,
            rules: rules
                .iter()
                .map(RetentionRule::parse)
                .collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn pattern_count(&self) -> usize {
        self.rules.iter().map(|rule| rule.paths.len()).sum()
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let lines = vec![
            (
                "expire_after_last_access".to_owned(),
                expiry_text(self.expire_after_last_access),
            ),
            (
                "expire_after_created".to_owned(),
                expiry_text(self.expire_after_created),
            ),
            (
                "keep_at_least".to_owned(),
                string(&format_duration(self.keep_at_least)),
            ),
            (
                "access_granularity".to_owned(),
                string(&format_duration(self.access_granularity)),
            ),
        ];
        let rules =
            self.rules.iter().enumerate().map(|(at, rule)| {
                Block::item("retention.rules", &(at + 1).to_string(), rule.lines())
            });
        std::iter::once(Block::table("retention", lines))
            .chain(rules)
            .collect()
    }
}

impl RetentionRule {
    fn parse(section: &Section<'_>) -> Result<Self, PolicyError> {
        section.accept(RULE_KEYS)?;
        let field = section.required("paths")?;
        let paths = parse_patterns(&field)?;
        if paths.is_empty() {
            return Err(field.wrong("is empty. Name at least one path pattern"));
        }
        let optional = |key| section.field(key).map(|field| expiry(&field)).transpose();
        Ok(Self {
            paths,
            expire_after_last_access: optional("expire_after_last_access")?,
            expire_after_created: optional("expire_after_created")?,
            keep_at_least: section
                .field("keep_at_least")
                .map(|field| keep(&field))
                .transpose()?,
        })
    }

    fn lines(&self) -> Vec<(String, String)> {
        let mut lines = vec![("paths".to_owned(), strings(self.paths.iter()))];
        if let Some(value) = self.expire_after_last_access {
            lines.push(("expire_after_last_access".to_owned(), expiry_text(value)));
        }
        if let Some(value) = self.expire_after_created {
            lines.push(("expire_after_created".to_owned(), expiry_text(value)));
        }
        if let Some(value) = self.keep_at_least {
            lines.push(("keep_at_least".to_owned(), string(&format_duration(value))));
        }
        lines
    }
}

/// What a `[[tenants]]` entry tightens: its files expire sooner, whatever the path rules say,
/// or are kept at least longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tighter {
    after_access: Option<Duration>,
    after_created: Option<Duration>,
    keep_at_least: Option<Duration>,
}

impl Tighter {
    /// Reads the inline table. With `all`, a value looser than its one is refused.
    pub(super) fn parse(
        section: &Section<'_>,
        all: Option<&Retention>,
    ) -> Result<Self, PolicyError> {
        section.accept(TENANT_KEYS)?;
        let sooner = |key: &str, all: Option<Option<Duration>>| {
            let Some(field) = section.field(key) else {
                return Ok(None);
            };
            let value = expiry(&field)?;
            match all {
                Some(all) if sooner_of(value, all) != value => Err(loosens(
                    &field,
                    &expiry_text(value),
                    &expiry_text(all),
                    "or less",
                )),
                _ => Ok(value),
            }
        };
        let after_access = sooner(
            "expire_after_last_access",
            all.map(|all| all.expire_after_last_access),
        )?;
        let after_created = sooner(
            "expire_after_created",
            all.map(|all| all.expire_after_created),
        )?;
        let mut keep_at_least = None;
        if let Some(field) = section.field("keep_at_least") {
            let value = keep(&field)?;
            if let Some(all) = all.map(|all| all.keep_at_least).filter(|all| value < *all) {
                let text = |value| string(&format_duration(value));
                return Err(loosens(&field, &text(value), &text(all), "or more"));
            }
            keep_at_least = Some(value);
        }
        Ok(Self {
            after_access,
            after_created,
            keep_at_least,
        })
    }

    /// What `policy` has tighter than `all`.
    pub(super) fn between(all: &Retention, policy: &Retention) -> Self {
        let sooner = |mine: Option<Duration>, theirs| {
            mine.filter(|mine| {
                theirs != Some(*mine) && sooner_of(Some(*mine), theirs) == Some(*mine)
            })
        };
        Self {
            after_access: sooner(
                policy.expire_after_last_access,
                all.expire_after_last_access,
            ),
            after_created: sooner(policy.expire_after_created, all.expire_after_created),
            keep_at_least: Some(policy.keep_at_least).filter(|keep| *keep > all.keep_at_least),
        }
    }

    /// Both: the tighter of each.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            after_access: sooner_of(self.after_access, other.after_access),
            after_created: sooner_of(self.after_created, other.after_created),
            keep_at_least: self.keep_at_least.max(other.keep_at_least),
        }
    }

    pub(super) fn tighten(&self, retention: &mut Retention) {
        let sooner = |slot: &mut Option<Duration>, age| *slot = sooner_of(*slot, age);
        sooner(&mut retention.expire_after_last_access, self.after_access);
        sooner(&mut retention.expire_after_created, self.after_created);
        let keep = self.keep_at_least.unwrap_or_default();
        retention.keep_at_least = retention.keep_at_least.max(keep);
        for rule in &mut retention.rules {
            if let Some(slot) = &mut rule.expire_after_last_access {
                sooner(slot, self.after_access);
            }
            if let Some(slot) = &mut rule.expire_after_created {
                sooner(slot, self.after_created);
            }
            if let Some(slot) = &mut rule.keep_at_least {
                *slot = (*slot).max(keep);
            }
        }
    }

    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let values = [
            ("expire_after_last_access", self.after_access),
            ("expire_after_created", self.after_created),
            ("keep_at_least", self.keep_at_least),
        ];
        let line = |(key, value): (&str, Option<Duration>)| {
            Some((key.to_owned(), string(&format_duration(value?))))
        };
        values.into_iter().filter_map(line).collect()
    }
}

/// The sooner of two times to expiry, where `None` is never.
fn sooner_of(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn expiry(field: &Field<'_>) -> Result<Option<Duration>, PolicyError> {
    field.duration_or_never(EXPIRE.0, EXPIRE.1)
}

fn keep(field: &Field<'_>) -> Result<Duration, PolicyError> {
    field.duration(Duration::ZERO, EXPIRE.1)
}

fn expiry_text(value: Option<Duration>) -> String {
    string(&value.map_or("never".to_owned(), format_duration))
}
