//! The engine: built once from packs and rules, then asked to redact texts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::error::{RedactError, Refused};
use super::marker::{self, Ids};
use super::pack;
use super::resolve;
use super::rule::{Action, RuleDef};
use super::scan::{self, Candidate, Scanner};

/// Longest text that is taken, in bytes.
pub const INPUT_BYTES_MAX: usize = 16 << 20;
/// How often what was redacted is scanned and redacted again before the text is refused.
const ROUNDS_MAX: usize = 4;

/// Turns a value into a digest under a key that only the tenant has.
pub type Pseudonym<'a> = &'a dyn Fn(&[u8]) -> [u8; 32];

/// A text without its secrets, and where they stood.
#[derive(Debug)]
pub struct Redacted<'a> {
    /// The text to be kept; borrowed when nothing was found.
    pub text: Cow<'a, str>,
    /// What was replaced, in the order of the text.
    pub findings: Vec<Finding>,
}

/// One value that was replaced. It never holds the value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Class of the rule.
    pub class: String,
    /// What was done.
    #[serde(serialize_with = "action_name")]
    pub action: Action,
    /// Line of the input, from 1.
    pub line: usize,
    /// First byte of the value in the input.
    pub start: usize,
    /// Byte after the value in the input.
    pub end: usize,
}

fn action_name<S: serde::Serializer>(action: &Action, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match action {
        Action::Label => "label",
        Action::Pseudonym => "pseudonym",
        Action::Last4 => "last4",
        Action::Reject => "reject",
        Action::Allow => "allow",
    })
}

/// Finds secrets in texts and replaces them. Cheap to share, never changes after it is built.
pub struct Engine {
    scanner: Scanner,
    actions: Vec<Action>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("rules", &self.actions.len())
            .finish_non_exhaustive()
    }
}

/// Collects what an [`Engine`] is built from.
#[must_use]
#[derive(Debug, Default)]
pub struct Builder {
    packs: Vec<String>,
    rules: Vec<RuleDef>,
    actions: HashMap<String, Action>,
    allow: HashSet<Vec<u8>>,
}

impl Builder {
    /// Names of the rule packs. Default: none.
    pub fn packs<S: AsRef<str>>(mut self, packs: &[S]) -> Self {
        self.packs = packs.iter().map(|p| p.as_ref().to_owned()).collect();
        self
    }

    /// Rules beside those of the packs; their examples are run. Default: none.
    pub fn rules(mut self, rules: impl IntoIterator<Item = RuleDef>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Actions by class or rule id; a rule id counts more. Default: each rule's own, else `label`.
    pub fn actions<S: Into<String>>(
        mut self,
        actions: impl IntoIterator<Item = (S, Action)>,
    ) -> Self {
        self.actions.extend(
            actions
                .into_iter()
                .map(|(name, action)| (name.into(), action)),
        );
        self
    }

    /// Whole values that are no secret here. Default: none.
    pub fn allow<S: AsRef<str>>(mut self, values: impl IntoIterator<Item = S>) -> Self {
        self.allow
            .extend(values.into_iter().map(|v| v.as_ref().as_bytes().to_vec()));
        self
    }

    /// Builds the engine. The rules of packs are compiled when they are first needed, other rules now.
    ///
    /// # Errors
    /// An unknown pack, a rule that is malformed, has the id of another, does not compile within the
    /// size limit or fails one of its examples, or an action for nothing.
    pub fn build(self) -> Result<Engine, RedactError> {
        let mut defs = Vec::new();
        for name in &self.packs {
            for text in pack::source(name)? {
                defs.extend(pack::parse_rules(text)?);
            }
        }
        let shipped = defs.len();
        defs.extend(self.rules);
        let mut ids = Ids::default();
        for def in &defs {
            def.check()?;
            if !ids.insert(&def.id) {
                return Err(def.error("another rule has the same id"));
            }
        }
        for (name, &action) in &self.actions {
            if !defs.iter().any(|d| d.id == *name || d.class == *name)
                && !CLASSES.contains(&name.as_str())
            {
                return Err(RedactError::UnknownTarget {
                    name: name.clone(),
                    action,
                });
            }
        }
        let actions = defs.iter().map(|d| {
            let chosen = self
                .actions
                .get(&d.id)
                .or_else(|| self.actions.get(&d.class));
            chosen.copied().or(d.action).unwrap_or(Action::Label)
        });
        let actions = actions.collect();
        let own: Vec<RuleDef> = defs.get(shipped..).unwrap_or(&[]).to_vec();
        let scanner = Scanner::new(defs, ids, self.allow)?;
        // The shipped packs are tested; only what comes to them can be too much.
        if !own.is_empty() && scanner.search().is_none() {
            return Err(RedactError::TooManyKeywords);
        }
        for def in &own {
            scanner
                .compile(&def.id)
                .map_err(|reason| def.error(reason))?;
            scanner.run_examples(def)?;
        }
        Ok(Engine { scanner, actions })
    }
}

/// Classes that a policy may name whether or not a pack with them is in use.
pub const CLASSES: &[&str] = &["secret", "pii", "phi", "pci", "internal"];

impl Engine {
    /// Begins to build an engine.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// How many rules there are.
    #[must_use]
    pub fn rules_len(&self) -> usize {
        self.actions.len()
    }

    /// Whether a marker for `id` would count as one.
    #[must_use]
    pub fn has_rule(&self, id: &str) -> bool {
        self.scanner.rules().iter().any(|r| r.def.id == id)
    }

    /// The ids of all rules.
    pub fn rule_ids(&self) -> impl Iterator<Item = &str> {
        self.scanner.rules().iter().map(|r| r.def.id.as_str())
    }

    /// How many keywords stand in `text`, overlapping ones too: the bare keyword pass, to measure against.
    #[must_use]
    pub fn keyword_hits(&self, text: &str) -> usize {
        let search = self.scanner.search();
        search.map_or(0, |search| search.find_overlapping_iter(text).count())
    }

    /// Compiles every rule now instead of when it is first needed.
    ///
    /// # Errors
    /// The first rule that does not compile.
    pub fn compile_all(&self) -> Result<(), RedactError> {
        for rule in self.scanner.rules() {
            self.scanner
                .compile(&rule.def.id)
                .map_err(|reason| rule.def.error(reason))?;
        }
        Ok(())
    }

    /// Runs the examples and negative examples of every rule and gives those that fall.
    #[must_use]
    pub fn check_examples(&self) -> Vec<RedactError> {
        self.scanner
            .rules()
            .iter()
            .filter_map(|r| self.scanner.run_examples(&r.def).err())
            .collect()
    }

    /// Replaces every secret in `text`. With the action `pseudonym`, `key` gives the tag; without it such values get a plain label.
    ///
    /// Redacting the result again changes nothing.
    ///
    /// # Errors
    /// [`Refused`] when a rule rejects the text, a limit is exceeded, or something is left that a rule finds.
    pub fn redact<'a>(
        &self,
        text: &'a str,
        key: Option<Pseudonym<'_>>,
    ) -> Result<Redacted<'a>, Refused> {
        self.run(text, key, true)
    }

    /// As [`Engine::redact`], for text that is stored already or is only shown: what the
    /// action `reject` would refuse is replaced by its label.
    ///
    /// # Errors
    /// [`Refused`] when a limit is exceeded or something is left that a rule finds.
    pub fn scrub<'a>(
        &self,
        text: &'a str,
        key: Option<Pseudonym<'_>>,
    ) -> Result<Redacted<'a>, Refused> {
        self.run(text, key, false)
    }

    fn run<'a>(
        &self,
        text: &'a str,
        key: Option<Pseudonym<'_>>,
        rejects: bool,
    ) -> Result<Redacted<'a>, Refused> {
        if text.len() > INPUT_BYTES_MAX {
            return Err(Refused::TooLong {
                bytes: text.len(),
                bytes_max: INPUT_BYTES_MAX,
            });
        }
        let mut out = Cow::Borrowed(text);
        let mut edits = resolve::Edits::default();
        for _ in 0..ROUNDS_MAX {
            let found = self.find(&out, rejects)?;
            if found.is_empty() {
                let findings = edits.findings(text, |rule, action, line, start, end| {
                    let def = self.scanner.rules().get(rule).map(|r| &r.def);
                    Finding {
                        rule: def.map_or_else(String::new, |d| d.id.clone()),
                        class: def.map_or_else(String::new, |d| d.class.clone()),
                        action,
                        line,
                        start,
                        end,
                    }
                });
                return Ok(Redacted {
                    text: out,
                    findings,
                });
            }
            let next = edits.apply(&out, &found, |rule, action, value| {
                self.marker(rule, action, value, key)
            });
            out = Cow::Owned(next);
        }
        Err(Refused::NotClean)
    }

    fn marker(
        &self,
        rule: usize,
        action: Action,
        value: &str,
        key: Option<Pseudonym<'_>>,
    ) -> String {
        let id = self
            .scanner
            .rules()
            .get(rule)
            .map_or("", |r| r.def.id.as_str());
        match (action, key) {
            (Action::Pseudonym, Some(key)) => marker::pseudonym(id, &key(&scan::normal(value))),
            (Action::Last4, _) => marker::last4(id, value),
            _ => marker::label(id),
        }
    }

    /// What has to be replaced in `text`, without overlaps, in order.
    fn find(&self, text: &str, rejects: bool) -> Result<Vec<resolve::Hit>, Refused> {
        let found: Vec<Candidate> = self.scanner.scan(text.as_bytes())?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let hits = resolve::merge(text, found, &self.scanner, &self.actions);
        if rejects && let Some(hit) = hits.iter().find(|h| h.action == Action::Reject) {
            let def = self.scanner.rules().get(hit.rule).map(|r| &r.def);
            return Err(Refused::Rule {
                rule: def.map_or_else(String::new, |d| d.id.clone()),
                class: def.map_or_else(String::new, |d| d.class.clone()),
                line: text
                    .as_bytes()
                    .iter()
                    .take(hit.start)
                    .filter(|&&b| b == b'\n')
                    .count()
                    + 1,
            });
        }
        Ok(hits)
    }
}
