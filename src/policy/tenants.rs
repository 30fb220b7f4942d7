//! `[[tenants]]`: narrower rules for some tenants. An entry can only tighten.

use super::emit::{Block, string, strings};
use super::error::{PolicyError, Position};
use super::limits::{
    EffectivePolicy, ON_EXISTING, OnExisting, PATH_KEYS, TENANT_LIMIT_KEYS, VIEW_KEYS, WRITE_KEYS,
    conflict_text, on_existing_text, parse_patterns, refuse_unportable,
};
use super::numbers::{NUMBER_COUNT, NUMBERS};
use super::pattern::{Pattern, PatternSet, TenantPattern};
use super::retention::Tighter;
use super::section::{Field, Section};

pub(super) const KEYS: &[&str] = &[
    "match",
    "extends",
    "limits",
    "view",
    "write",
    "paths",
    "retention",
];

/// One `[[tenants]]` entry, flattened: what it tightens, and for which tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRule {
    pattern: TenantPattern,
    narrow: Narrow,
}

impl TenantRule {
    /// Which tenants the entry is for.
    #[must_use]
    pub fn pattern(&self) -> &TenantPattern {
        &self.pattern
    }

    /// Whether the entry is for this tenant.
    #[must_use]
    pub fn matches(&self, tenant: &str) -> bool {
        self.pattern.matches(tenant)
    }

    /// The `[retention]` that the entry alone makes of the policy's, if it changes it.
    pub(crate) fn retention_of(&self, policy: &super::Policy) -> Option<super::Retention> {
        let mut retention = policy.retention.clone();
        self.narrow.retention.tighten(&mut retention);
        (retention != policy.retention).then_some(retention)
    }

    /// Tightens `rules` by this entry.
    pub(super) fn tighten(&self, rules: &mut EffectivePolicy) {
        self.narrow.tighten(rules);
    }

    /// How many path patterns the entry has.
    pub(super) fn pattern_count(&self) -> usize {
        self.narrow.patterns().count()
    }

    /// Whether the entry changes nothing for anyone.
    pub(super) fn is_idle(&self) -> bool {
        self.narrow == Narrow::default()
    }

    /// The entry as canonical text.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let id = self.pattern.to_string();
        let matching = vec![("match".to_owned(), string(&id))];
        let mut blocks = vec![Block::item("tenants", &id, matching)];
        for (section, lines) in self.narrow.lines() {
            if !lines.is_empty() {
                blocks.push(Block::item_table("tenants", &id, section, lines));
            }
        }
        blocks
    }
}

/// A `[[tenants]]` entry as read, before what it extends is known.
pub(super) struct TenantEntry<'a> {
    pub(super) pattern: TenantPattern,
    pub(super) extends: Vec<Field<'a>>,
    /// Where its `match` stands.
    pub(super) at: Position,
    section: Section<'a>,
}

impl<'a> TenantEntry<'a> {
    /// Reads keys, types and ranges. Whether it loosens anything is checked by `flatten`.
    pub(super) fn parse(section: Section<'a>) -> Result<Self, PolicyError> {
        section.accept(KEYS)?;
        let field = section.required("match")?;
        let pattern = TenantPattern::parse(field.text()?)
            .map_err(|reason| field.wrong(&format!("is a pattern that {reason}")))?;
        let extends = section
            .field("extends")
            .map_or(Ok(Vec::new()), |field| field.items())?;
        let entry = Self {
            pattern,
            extends,
            at: field.at().position(),
            section,
        };
        Narrow::parse(&entry.section, None)?;
        if KEYS
            .iter()
            .skip(1)
            .all(|key| entry.section.field(key).is_none())
        {
            return Err(entry.section.wrong(
                "has an entry that changes nothing. Give it extends, limits, view, write, paths or retention, or remove it",
            ));
        }
        Ok(entry)
    }

    /// Works out what the entry tightens. `base` holds for everyone, `extended` are the
    /// policies its `extends` names; of those the tighter of both counts, key by key.
    pub(super) fn flatten(
        self,
        base: &EffectivePolicy,
        extended: &[EffectivePolicy],
    ) -> Result<TenantRule, PolicyError> {
        let mut rules = base.clone();
        let mut narrow = Narrow::default();
        for policy in extended {
            let rules_of_its_own = &policy.retention.rules;
            if rules_of_its_own
                .iter()
                .any(|rule| !base.retention.rules.contains(rule))
            {
                return Err(PolicyError::Conflict {
                    at: self.at,
                    what: format!(
                        "what tenants {:?} extends has [[retention.rules]], which an entry cannot \
                         take over. Write the times in the entry's retention table",
                        self.pattern.to_string()
                    ),
                });
            }
            narrow = narrow.and(Narrow::between(&rules, policy));
            narrow.tighten(&mut rules);
        }
        let written = Narrow::parse(&self.section, Some(&rules))?;
        let narrow = narrow.and(written);
        narrow.tighten(&mut rules);
        if let Some([lower, upper]) = rules.conflict() {
            let text = conflict_text(lower, upper);
            return Err(PolicyError::Conflict {
                at: self.at,
                what: format!("for tenants {:?}, {text}", self.pattern.to_string()),
            });
        }
        if rules.paths.portable_names
            && let Some(paths) = self.section.section("paths")?
        {
            refuse_unportable(&paths)?;
        }
        if rules.paths.portable_names && !narrow.patterns().all(Pattern::is_portable) {
            return Err(PolicyError::Conflict {
                at: self.at,
                what: format!(
                    "what tenants {:?} extends has a path pattern that no name can match while \
                     paths.portable_names is true. Change it there",
                    self.pattern.to_string()
                ),
            });
        }
        Ok(TenantRule {
            pattern: self.pattern,
            narrow,
        })
    }
}

/// What is tightened; `None` and empty sets leave things as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Narrow {
    /// In the order of `NUMBERS`.
    numbers: [Option<u64>; NUMBER_COUNT],
    /// Refuse to overwrite.
    on_existing_error: bool,
    /// Refuse images.
    no_images: bool,
    /// Require portable names.
    portable_names: bool,
    read_only: PatternSet,
    denied: PatternSet,
    retention: Tighter,
}

impl Narrow {
    /// Reads the inline tables. With `rules`, a value looser than theirs is refused.
    fn parse(entry: &Section<'_>, rules: Option<&EffectivePolicy>) -> Result<Self, PolicyError> {
        let mut narrow = Self::default();
        if let Some(limits) = entry.section("limits")? {
            refuse_store_wide(&limits)?;
            limits.accept(TENANT_LIMIT_KEYS)?;
            narrow.read_numbers("limits", &limits, rules)?;
        }
        if let Some(view) = entry.section("view")? {
            view.accept(VIEW_KEYS)?;
            narrow.read_numbers("view", &view, rules)?;
        }
        if let Some(write) = entry.section("write")? {
            write.accept(WRITE_KEYS)?;
            narrow.read_write(&write, rules)?;
        }
        if let Some(paths) = entry.section("paths")? {
            paths.accept(PATH_KEYS)?;
            narrow.read_paths(&paths, rules)?;
        }
        if let Some(retention) = entry.section("retention")? {
            let all = rules.map(|rules| &rules.retention);
            narrow.retention = Tighter::parse(&retention, all)?;
        }
        Ok(narrow)
    }

    fn read_numbers(
        &mut self,
        name: &str,
        section: &Section<'_>,
        rules: Option<&EffectivePolicy>,
    ) -> Result<(), PolicyError> {
        let wanted = |(number, _): &(&super::numbers::Number, _)| number.section == name;
        for (number, slot) in NUMBERS.iter().zip(self.numbers.iter_mut()).filter(wanted) {
            let Some(field) = section.field(number.name) else {
                continue;
            };
            let value = number.parse(&field)?;
            if let Some(all) = rules.map(number.read).filter(|all| value > *all) {
                return Err(loosens(
                    &field,
                    &number.text(value),
                    &number.text(all),
                    "or less",
                ));
            }
            *slot = Some(value);
        }
        Ok(())
    }

    fn read_write(
        &mut self,
        write: &Section<'_>,
        rules: Option<&EffectivePolicy>,
    ) -> Result<(), PolicyError> {
        if let Some(field) = write.field("on_existing") {
            self.on_existing_error = field.choice(&ON_EXISTING)? == OnExisting::Error;
            let all = rules.map(|rules| rules.write.on_existing);
            if !self.on_existing_error && all == Some(OnExisting::Error) {
                return Err(loosens(
                    &field,
                    "\"overwrite\"",
                    "\"error\"",
                    "or leave it out",
                ));
            }
        }
        if let Some(field) = write.field("images") {
            self.no_images = !field.boolean()?;
            if !self.no_images && rules.is_some_and(|rules| !rules.write.images) {
                return Err(loosens(&field, "true", "false", "or leave it out"));
            }
        }
        Ok(())
    }

    fn read_paths(
        &mut self,
        paths: &Section<'_>,
        rules: Option<&EffectivePolicy>,
    ) -> Result<(), PolicyError> {
        if let Some(field) = paths.field("portable_names") {
            self.portable_names = field.boolean()?;
            if !self.portable_names && rules.is_some_and(|rules| rules.paths.portable_names) {
                return Err(loosens(&field, "false", "true", "or leave it out"));
            }
        }
        if let Some(field) = paths.field("read_only") {
            self.read_only = parse_patterns(&field)?;
        }
        if let Some(field) = paths.field("denied") {
            self.denied = parse_patterns(&field)?;
        }
        Ok(())
    }

    /// What `policy` has tighter than `rules`.
    fn between(rules: &EffectivePolicy, policy: &EffectivePolicy) -> Self {
        let mut narrow = Self {
            on_existing_error: rules.write.on_existing == OnExisting::Overwrite
                && policy.write.on_existing == OnExisting::Error,
            no_images: rules.write.images && !policy.write.images,
            portable_names: !rules.paths.portable_names && policy.paths.portable_names,
            read_only: policy.paths.read_only.without(&rules.paths.read_only),
            denied: policy.paths.denied.without(&rules.paths.denied),
            retention: Tighter::between(&rules.retention, &policy.retention),
            ..Self::default()
        };
        for (number, slot) in NUMBERS.iter().zip(narrow.numbers.iter_mut()) {
            *slot = Some((number.read)(policy)).filter(|value| *value < (number.read)(rules));
        }
        narrow
    }

    /// Both: the tighter of each.
    fn and(mut self, other: Self) -> Self {
        for (mine, theirs) in self.numbers.iter_mut().zip(other.numbers) {
            *mine = mine.iter().copied().chain(theirs).min();
        }
        Self {
            numbers: self.numbers,
            on_existing_error: self.on_existing_error || other.on_existing_error,
            no_images: self.no_images || other.no_images,
            portable_names: self.portable_names || other.portable_names,
            read_only: self.read_only.union(&other.read_only),
            denied: self.denied.union(&other.denied),
            retention: self.retention.and(other.retention),
        }
    }

    fn tighten(&self, rules: &mut EffectivePolicy) {
        for (number, value) in NUMBERS.iter().zip(self.numbers) {
            let slot = (number.slot)(rules);
            *slot = value.map_or(*slot, |value| value.min(*slot));
        }
        if self.on_existing_error {
            rules.write.on_existing = OnExisting::Error;
        }
        rules.write.images &= !self.no_images;
        rules.paths.portable_names |= self.portable_names;
        rules.paths.read_only = rules.paths.read_only.union(&self.read_only);
        rules.paths.denied = rules.paths.denied.union(&self.denied);
        self.retention.tighten(&mut rules.retention);
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.read_only.iter().chain(self.denied.iter())
    }

    /// The keys of each inline table as canonical text.
    fn lines(&self) -> [(&'static str, Vec<(String, String)>); 5] {
        let numbers = |section: &str| -> Vec<(String, String)> {
            NUMBERS
                .iter()
                .zip(self.numbers)
                .filter(|(number, _)| number.section == section)
                .filter_map(|(number, value)| Some((number.name.to_owned(), number.text(value?))))
                .collect()
        };
        let mut write = Vec::new();
        if self.on_existing_error {
            write.push((
                "on_existing".to_owned(),
                on_existing_text(OnExisting::Error),
            ));
        }
        if self.no_images {
            write.push(("images".to_owned(), "false".to_owned()));
        }
        let mut paths = Vec::new();
        if self.portable_names {
            paths.push(("portable_names".to_owned(), "true".to_owned()));
        }
        for (key, set) in [("read_only", &self.read_only), ("denied", &self.denied)] {
            if !set.is_empty() {
                paths.push((key.to_owned(), strings(set.iter())));
            }
        }
        [
            ("limits", numbers("limits")),
            ("view", numbers("view")),
            ("write", write),
            ("paths", paths),
            ("retention", self.retention.lines()),
        ]
    }
}

pub(super) fn loosens(field: &Field<'_>, value: &str, all: &str, also: &str) -> PolicyError {
    PolicyError::Loosens {
        at: field.at().position(),
        what: format!(
            "{} = {value} is looser than the {all} that holds for these tenants without it; \
             an entry can only tighten. Write {all} {also}",
            field.name()
        ),
    }
}

fn refuse_store_wide(limits: &Section<'_>) -> Result<(), PolicyError> {
    limits.field("store_max_bytes").map_or(Ok(()), |field| {
        Err(PolicyError::Key {
            at: field.at().position(),
            what: format!(
                "{} is not accepted here: it holds for the whole store. Write it in [limits]",
                field.name()
            ),
        })
    })
}
