//! `[redaction]`: which values are removed before text is stored. Read and checked here;
//! `redact` acts on it.
//!
//! No message quotes `allow`, a rule's expression or its examples: they may hold real values.

use std::collections::BTreeMap;

use crate::redact::{self, Action, Engine, RedactError, RuleDef};

use super::emit::{Block, string, strings};
use super::error::{PolicyError, Position};
use super::section::{Field, Section};

pub(super) const KEYS: &[&str] = &["rule_packs", "notify_model", "allow", "actions", "rules"];
const RULE_KEYS: &[&str] = &[
    "id",
    "class",
    "keywords",
    "regex",
    "examples",
    "negative_examples",
];

const PACKS: [(&str, RulePack); 4] = [
    ("secrets", RulePack::Secrets),
    ("pii", RulePack::Pii),
    ("phi", RulePack::Phi),
    ("pci", RulePack::Pci),
];
const ACTIONS: [(&str, RedactionAction); 5] = [
    ("label", RedactionAction::Label),
    ("pseudonym", RedactionAction::Pseudonym),
    ("last4", RedactionAction::Last4),
    ("reject", RedactionAction::Reject),
    ("allow", RedactionAction::Allow),
];

/// Most rules, and most values of `allow`.
const ITEMS_MAX: usize = 1_000;
/// Longest rule id or class, in bytes.
const ID_BYTES_MAX: usize = 64;

/// `[redaction]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Redaction {
    /// Shipped sets of rules, sorted and without repeats.
    pub rule_packs: Vec<RulePack>,
    /// Whether the reply tells the model that something was removed (never what).
    pub notify_model: bool,
    /// Whole values that are no secret here, sorted and without repeats.
    pub allow: Vec<String>,
    /// What to do by class or rule id.
    pub actions: BTreeMap<String, RedactionAction>,
    /// The operator's own rules, by id.
    pub rules: Vec<RedactionRule>,
}

/// A shipped set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RulePack {
    /// Passwords, tokens, keys.
    Secrets,
    /// Personal data.
    Pii,
    /// Health data.
    Phi,
    /// Payment data.
    Pci,
}

/// What to do with a value that a rule found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedactionAction {
    /// Replace it with a marker that names the rule.
    Label,
    /// Replace it with a marker that is the same for the same value of one tenant.
    Pseudonym,
    /// Keep the last four characters.
    Last4,
    /// Refuse the write.
    Reject,
    /// Leave it.
    Allow,
}

/// One `[[redaction.rules]]` entry.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RedactionRule {
    /// Unique name, `a-z 0-9 -`, shown in markers.
    pub id: String,
    /// Class, `a-z 0-9 -`.
    pub class: String,
    /// Literal texts, one of which must be near a hit; at least one.
    pub keywords: Vec<String>,
    /// The expression. It is not compiled here.
    pub regex: String,
    /// Texts in which it must find something; at least one.
    pub examples: Vec<String>,
    /// Texts in which it must find nothing.
    pub negative_examples: Vec<String>,
}

impl std::fmt::Debug for RedactionRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedactionRule")
            .field("id", &self.id)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl Redaction {
    pub(super) fn parse(section: &Section<'_>) -> Result<Self, PolicyError> {
        section.accept(KEYS)?;
        let packs = section.required("rule_packs")?.items()?;
        let allow = section.required("allow")?;
        Ok(Self {
            rule_packs: sorted(packs.iter().map(|pack| pack.choice(&PACKS)))?,
            notify_model: section.required("notify_model")?.boolean()?,
            allow: parse_allow(&allow)?,
            actions: parse_actions(section)?,
            rules: parse_rules(section)?,
        })
    }

    /// The names of the shipped packs in use.
    #[must_use]
    pub fn pack_names(&self) -> Vec<&'static str> {
        self.rule_packs
            .iter()
            .map(|pack| word(&PACKS, *pack))
            .collect()
    }

    /// The engine that acts on this section: the shipped packs it names, its own rules
    /// (compiled, their examples run), its actions and allowed values.
    ///
    /// # Errors
    /// A rule that cannot be used or fails an example, or an action for nothing.
    pub fn engine(&self) -> Result<Engine, RedactError> {
        let actions = self
            .actions
            .iter()
            .map(|(name, action)| (name.clone(), action.for_engine()));
        Engine::builder()
            .packs(&self.pack_names())
            .rules(self.rules.iter().map(RedactionRule::for_engine))
            .actions(actions)
            .allow(&self.allow)
            .build()
    }

    /// Builds the engine once, so that a policy whose rules cannot work does not load.
    pub(super) fn check(&self, section: &Section<'_>) -> Result<(), PolicyError> {
        // The shipped packs are tested; only what the policy adds to them can be wrong.
        let names_rules = self
            .actions
            .keys()
            .any(|name| !redact::CLASSES.contains(&name.as_str()));
        if self.rules.is_empty() && !names_rules {
            return Ok(());
        }
        let Err(error) = self.engine() else {
            return Ok(());
        };
        let what = format!("failed to {error}. Correct or remove it");
        let at = match &error {
            RedactError::Rule { id, .. } => rule_spot(section, id)?,
            RedactError::UnknownTarget { name, .. } => section
                .section("actions")?
                .and_then(|actions| Some(actions.field(name)?.at().position())),
            _ => None,
        };
        let at = match at {
            Some(at) => at,
            None => section.required("rule_packs")?.at().position(),
        };
        Err(PolicyError::Value { at, what })
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let packs = self.rule_packs.iter().map(|pack| word(&PACKS, *pack));
        let mut blocks = vec![Block::table(
            "redaction",
            vec![
                ("rule_packs".to_owned(), strings(packs)),
                ("notify_model".to_owned(), self.notify_model.to_string()),
                ("allow".to_owned(), strings(self.allow.iter())),
            ],
        )];
        if !self.actions.is_empty() {
            let lines = self
                .actions
                .iter()
                .map(|(name, action)| (name.clone(), string(word(&ACTIONS, *action))))
                .collect();
            blocks.push(Block::table("redaction.actions", lines));
        }
        let rules = self.rules.iter();
        blocks.extend(rules.map(|rule| Block::item("redaction.rules", &rule.id, rule.lines())));
        blocks
    }
}

impl RedactionAction {
    fn for_engine(self) -> Action {
        match self {
            Self::Label => Action::Label,
            Self::Pseudonym => Action::Pseudonym,
            Self::Last4 => Action::Last4,
            Self::Reject => Action::Reject,
            Self::Allow => Action::Allow,
        }
    }
}

/// Where the rule with this id stands in the policy's text.
fn rule_spot(section: &Section<'_>, id: &str) -> Result<Option<Position>, PolicyError> {
    for table in section.tables("rules")? {
        let field = table.required("id")?;
        if field.text()? == id {
            return Ok(Some(field.at().position()));
        }
    }
    Ok(None)
}

impl RedactionRule {
    fn for_engine(&self) -> RuleDef {
        RuleDef {
            id: self.id.clone(),
            class: self.class.clone(),
            keywords: self.keywords.clone(),
            regex: Some(self.regex.clone()),
            examples: self.examples.clone(),
            negative_examples: self.negative_examples.clone(),
            ..RuleDef::default()
        }
    }

    fn parse(section: &Section<'_>) -> Result<Self, PolicyError> {
        section.accept(RULE_KEYS)?;
        let texts = |key| {
            let field = section.required(key)?;
            let texts = field.texts()?;
            if texts.is_empty() || texts.iter().any(String::is_empty) {
                return Err(
                    field.wrong("needs at least one text, and none may be empty. Write one")
                );
            }
            Ok(texts)
        };
        Ok(Self {
            id: parse_id(&section.required("id")?)?,
            class: parse_id(&section.required("class")?)?,
            keywords: texts("keywords")?,
            regex: section.required("regex")?.text()?.to_owned(),
            examples: texts("examples")?,
            negative_examples: section
                .field("negative_examples")
                .map_or(Ok(Vec::new()), |field| field.texts())?,
        })
    }

    fn lines(&self) -> Vec<(String, String)> {
        vec![
            ("id".to_owned(), string(&self.id)),
            ("class".to_owned(), string(&self.class)),
            ("keywords".to_owned(), strings(self.keywords.iter())),
            ("regex".to_owned(), string(&self.regex)),
            ("examples".to_owned(), strings(self.examples.iter())),
            (
                "negative_examples".to_owned(),
                strings(self.negative_examples.iter()),
            ),
        ]
    }
}

fn parse_allow(field: &Field<'_>) -> Result<Vec<String>, PolicyError> {
    let items = field.items()?;
    if items.len() > ITEMS_MAX {
        return Err(field.wrong(&format!("has more than {ITEMS_MAX} values. Remove some")));
    }
    sorted(items.iter().map(|item| match item.text()? {
        "" => Err(item.wrong("has an empty value. Remove it")),
        text => Ok(text.to_owned()),
    }))
}

fn parse_actions(section: &Section<'_>) -> Result<BTreeMap<String, RedactionAction>, PolicyError> {
    let Some(actions) = section.section("actions")? else {
        return Ok(BTreeMap::new());
    };
    actions
        .fields()
        .map(|(name, field)| {
            check_id(name, &field)?;
            Ok((name.to_owned(), field.choice(&ACTIONS)?))
        })
        .collect()
}

fn parse_rules(section: &Section<'_>) -> Result<Vec<RedactionRule>, PolicyError> {
    let tables = section.tables("rules")?;
    if tables.len() > ITEMS_MAX {
        return Err(section.wrong(&format!("has more than {ITEMS_MAX} rules. Remove some")));
    }
    let mut rules = BTreeMap::new();
    for table in &tables {
        let rule = RedactionRule::parse(table)?;
        if rules.insert(rule.id.clone(), rule).is_some() {
            let field = table.required("id")?;
            return Err(field.wrong("comes twice. Give each rule its own id"));
        }
    }
    Ok(rules.into_values().collect())
}

fn parse_id(field: &Field<'_>) -> Result<String, PolicyError> {
    let id = field.text()?;
    check_id(id, field)?;
    Ok(id.to_owned())
}

fn check_id(id: &str, field: &Field<'_>) -> Result<(), PolicyError> {
    let accepted = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.len() > ID_BYTES_MAX || !id.chars().all(accepted) {
        return Err(field.wrong(&format!(
            "is not a rule id or class. Use 1 to {ID_BYTES_MAX} of a-z, 0-9 and -"
        )));
    }
    Ok(())
}

fn sorted<T: Ord>(
    items: impl Iterator<Item = Result<T, PolicyError>>,
) -> Result<Vec<T>, PolicyError> {
    let mut items = items.collect::<Result<Vec<T>, _>>()?;
    items.sort();
    items.dedup();
    Ok(items)
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words
        .iter()
        .find(|(_, choice)| *choice == value)
        .map_or("", |(word, _)| word)
}
