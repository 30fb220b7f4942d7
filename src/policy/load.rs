//! Loads a policy: fetches what it extends, lays the texts over each other, reads the result.
//!
//! `extends` is read depth first and each text counts once, where it is first named; `default`
//! always lies at the bottom. So a policy that extends `strict` and a file that itself extends
//! `default` does not fall back to `default` for what `strict` tightened.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::error::{PolicyError, Position, shown};
use super::limits::{EffectivePolicy, conflict_text, refuse_unportable};
use super::node::{Node, Source, Value, merge, parse};
use super::section::{Field, Section, near};
use super::tenants::TenantEntry;
use super::{
    Audit, MAX_DEPTH, MAX_PATTERNS, MAX_TENANT_RULES, MAX_TEXT_BYTES, MAX_TEXTS, Policy, Redaction,
    Retention, SHIPPED,
};

pub(super) const ROOT_KEYS: &[&str] = &[
    "schema",
    "extends",
    "limits",
    "view",
    "write",
    "paths",
    "retention",
    "redaction",
    "audit",
    "tenants",
];

/// How the identity of a shipped text begins.
const SHIPPED_IDENTITY: &str = "shipped ";

/// Gets the text at a path; `from` is the text that names it, if any. The error is a fragment.
type ReadFile<'a> = &'a dyn Fn(&str, Option<&Source>) -> Result<Source, String>;

/// Loads a text that may extend shipped policies by name; nothing is read from disk.
pub(super) fn load_text(text: &str, name: &str) -> Result<Policy, PolicyError> {
    let source = Source {
        name: name.to_owned(),
        identity: format!("text {name}"),
        text: text.to_owned(),
    };
    let no_files = |_: &str, _: Option<&Source>| {
        Err("a path can only be extended by a policy that is itself loaded from a file".to_owned())
    };
    load_source(source, &no_files)
}

/// Loads a shipped policy by name, or a file.
pub(super) fn load_named_or_path(wanted: &str) -> Result<Policy, PolicyError> {
    let source = find(wanted, None, &read_file).map_err(|what| PolicyError::Unreadable {
        file: wanted.to_owned(),
        what,
    })?;
    load_source(source, &read_file)
}

/// The one place where a policy is read from disk.
fn read_file(wanted: &str, from: Option<&Source>) -> Result<Source, String> {
    use std::io::Read as _;

    let beside = from.and_then(|from| Path::new(&from.name).parent());
    let path = beside.map_or_else(
        || Path::new(wanted).to_owned(),
        |beside| beside.join(wanted),
    );
    let unreadable = |error: std::io::Error| {
        format!(
            "the policy {} cannot be read: {error}. Check the path",
            path.display()
        )
    };
    let identity = path.canonicalize().map_err(unreadable)?;
    let cap = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    std::fs::File::open(&identity)
        .and_then(|file| file.take(cap.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(Source {
        name: path.display().to_string(),
        identity: format!("file {}", identity.display()),
        text: String::from_utf8(bytes).map_err(|_| {
            format!(
                "the policy {} is not UTF-8. Save it as UTF-8",
                path.display()
            )
        })?,
    })
}

/// A shipped policy if the word is a name, a file if it looks like a path.
fn find(wanted: &str, from: Option<&Source>, read: ReadFile<'_>) -> Result<Source, String> {
    if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == wanted) {
        return Ok(shipped(name, text));
    }
    if wanted.contains('/') || wanted.ends_with(".toml") {
        return read(wanted, from);
    }
    let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
    let hint = near(wanted, &names).map_or_else(
        || ".".to_owned(),
        |near| format!(", did you mean {near:?}?"),
    );
    Err(format!(
        "there is no shipped policy {}{hint} Shipped: {}; a path has a / or ends in .toml",
        shown(wanted),
        names.join(", ")
    ))
}

fn shipped(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        identity: format!("{SHIPPED_IDENTITY}{name}"),
        text: text.to_owned(),
    }
}

fn load_source(source: Source, read: ReadFile<'_>) -> Result<Policy, PolicyError> {
    let name = source.name.clone();
    let (tree, draft) = Layers::resolve(source, read)?;
    let policy = finish(&Section::root(&tree)?, draft, read)?;
    let size = policy.to_toml().len();
    if size > MAX_TEXT_BYTES {
        return Err(PolicyError::TooLarge {
            file: name,
            what: format!(
                "the flattened policy has {size} bytes, above {MAX_TEXT_BYTES}. Use fewer or broader entries"
            ),
        });
    }
    Ok(policy)
}

/// A policy of which only single values are checked yet.
struct Draft {
    rules: EffectivePolicy,
    redaction: Redaction,
    audit: Audit,
}

impl Draft {
    fn parse(root: &Section<'_>) -> Result<Self, PolicyError> {
        let section = |name| root.required(name)?.section();
        let mut rules = EffectivePolicy::parse(root)?;
        rules.retention = Retention::parse(&section("retention")?)?;
        let draft = Self {
            rules,
            redaction: Redaction::parse(&section("redaction")?)?,
            audit: Audit::parse(&section("audit")?)?,
        };
        tenant_entries(root)?;
        Ok(draft)
    }
}

fn tenant_entries<'a>(root: &Section<'a>) -> Result<Vec<TenantEntry<'a>>, PolicyError> {
    let tables = root.tables("tenants")?;
    if let Some(beyond) = tables.get(MAX_TENANT_RULES) {
        return Err(beyond.wrong(&format!(
            "has more than {MAX_TENANT_RULES} entries. Use broader patterns"
        )));
    }
    tables.into_iter().map(TenantEntry::parse).collect()
}

/// The texts that one policy is made of, the bottom first.
struct Layers<'a> {
    read: ReadFile<'a>,
    texts: Vec<Node>,
    /// Identity, and whether all that it extends is read.
    seen: HashMap<String, bool>,
}

impl<'a> Layers<'a> {
    /// The merged tree, and its values. Each text is checked, also where a later one wins.
    fn resolve(source: Source, read: ReadFile<'a>) -> Result<(Node, Draft), PolicyError> {
        let mut layers = Self {
            read,
            texts: Vec::new(),
            seen: HashMap::new(),
        };
        let (name, text) = SHIPPED[0];
        layers.add(shipped(name, text), 0)?;
        layers.add(source, 0)?;
        let mut texts = layers.texts.into_iter();
        let bottom = texts.next().ok_or_else(|| PolicyError::Unreadable {
            file: name.to_owned(),
            what: "there is no policy text".to_owned(),
        })?;
        let mut draft = Draft::parse(&Section::root(&bottom)?)?;
        let mut tree = bottom;
        for text in texts {
            tree = merge(tree, text);
            draft = Draft::parse(&Section::root(&tree)?)?;
        }
        Ok((tree, draft))
    }

    fn add(&mut self, source: Source, depth: usize) -> Result<(), PolicyError> {
        if self.seen.contains_key(&source.identity) {
            return Ok(());
        }
        if source.text.len() > MAX_TEXT_BYTES {
            return Err(PolicyError::TooLarge {
                file: source.name,
                what: format!(
                    "a policy has at most {MAX_TEXT_BYTES} bytes. Split it, or use broader entries"
                ),
            });
        }
        let source = Arc::new(source);
        self.seen.insert(source.identity.clone(), false);
        let mut tree = parse(&source)?;
        let root = Section::root(&tree)?;
        root.accept(ROOT_KEYS)?;
        if let Some(schema) = root.field("schema") {
            schema
                .count(1, 1)
                .map_err(|_| schema.wrong("is not one that this build knows. Write schema = 1"))?;
        }
        let extends = root
            .field("extends")
            .map_or(Ok(Vec::new()), |field| field.items())?;
        for item in extends {
            self.extend(&item, &source, depth + 1)?;
        }
        if let Value::Table(table) = &mut tree.value {
            table.remove("extends");
        }
        self.texts.push(tree);
        self.seen.insert(source.identity.clone(), true);
        Ok(())
    }

    fn extend(&mut self, item: &Field<'_>, from: &Source, depth: usize) -> Result<(), PolicyError> {
        let wrong = |what: String| PolicyError::Extends {
            at: item.at().position(),
            what,
        };
        let found = find(item.text()?, Some(from), self.read).map_err(wrong)?;
        match self.seen.get(&found.identity) {
            Some(true) => Ok(()),
            Some(false) => Err(wrong(format!(
                "extends leads back to {}. Remove one of the extends on the way",
                found.name
            ))),
            None if depth > MAX_DEPTH => Err(wrong(format!(
                "extends goes deeper than {MAX_DEPTH}. Extend fewer policies in a row"
            ))),
            None if self.seen.len() >= MAX_TEXTS => Err(wrong(format!(
                "more than {MAX_TEXTS} policies are extended. Extend fewer"
            ))),
            None => self.add(found, depth),
        }
    }
}

/// Checks what needs the whole policy, and flattens the tenants' entries.
fn finish(root: &Section<'_>, draft: Draft, read: ReadFile<'_>) -> Result<Policy, PolicyError> {
    let section = |name| root.required(name)?.section();
    if let Some(pair @ [lower, upper]) = draft.rules.conflict() {
        return Err(PolicyError::Conflict {
            at: written_spot(root, pair)?,
            what: conflict_text(lower, upper),
        });
    }
    if draft.rules.paths.portable_names {
        refuse_unportable(&section("paths")?)?;
    }
    draft.redaction.check(&section("redaction")?)?;

    let mut policy = Policy {
        limits: draft.rules.limits.clone(),
        view: draft.rules.view.clone(),
        write: draft.rules.write.clone(),
        paths: draft.rules.paths.clone(),
        retention: draft.rules.retention.clone(),
        redaction: draft.redaction,
        audit: draft.audit,
        tenants: Vec::new(),
    };
    let mut extended = Extended {
        read,
        known: HashMap::new(),
    };
    for entry in tenant_entries(root)? {
        if policy
            .tenants
            .iter()
            .any(|rule| *rule.pattern() == entry.pattern)
        {
            return Err(PolicyError::Conflict {
                at: entry.at,
                what: format!(
                    "tenants {:?} comes twice. Merge the two entries",
                    entry.pattern.to_string()
                ),
            });
        }
        let rules: Vec<EffectivePolicy> = entry
            .extends
            .iter()
            .map(|item| extended.rules(item))
            .collect::<Result<_, _>>()?;
        let at = entry.at.clone();
        policy.tenants.push(entry.flatten(&draft.rules, &rules)?);
        if pattern_count(&policy) > MAX_PATTERNS {
            return Err(too_many_patterns(at));
        }
    }
    if pattern_count(&policy) > MAX_PATTERNS {
        return Err(too_many_patterns(
            section("paths")?.required("read_only")?.at().position(),
        ));
    }
    policy.tenants.retain(|rule| !rule.is_idle());
    policy.tenants.sort_by(|a, b| a.pattern().cmp(b.pattern()));
    Ok(policy)
}

/// Where the first of two keys stands that was written by someone: nobody can change a shipped text.
fn written_spot(root: &Section<'_>, pair: [(&str, &str); 2]) -> Result<Position, PolicyError> {
    let mut spots = Vec::new();
    for (section, key) in pair {
        spots.push(root.required(section)?.section()?.required(key)?.at());
    }
    let written = spots
        .iter()
        .find(|spot| !spot.source.identity.starts_with(SHIPPED_IDENTITY));
    let spot = written.or(spots.first()).map(|spot| spot.position());
    spot.ok_or_else(|| root.wrong("has two values that cannot both hold"))
}

/// The policies that tenants' entries extend, each loaded once.
struct Extended<'a> {
    read: ReadFile<'a>,
    known: HashMap<String, EffectivePolicy>,
}

impl Extended<'_> {
    fn rules(&mut self, item: &Field<'_>) -> Result<EffectivePolicy, PolicyError> {
        let wrong = |what: String| PolicyError::Extends {
            at: item.at().position(),
            what,
        };
        let found = find(item.text()?, Some(&item.at().source), self.read).map_err(wrong)?;
        let identity = found.identity.clone();
        if let Some(rules) = self.known.get(&identity) {
            return Ok(rules.clone());
        }
        let name = found.name.clone();
        let (tree, draft) = Layers::resolve(found, self.read)?;
        let root = Section::root(&tree)?;
        // Otherwise a policy could extend itself through its own entries without end.
        if !root.tables("tenants")?.is_empty() {
            return Err(wrong(format!(
                "{name} has [[tenants]] itself, so an entry cannot extend it. Extend one without"
            )));
        }
        let rules = finish(&root, draft, self.read)?.base();
        self.known.insert(identity, rules.clone());
        Ok(rules)
    }
}

fn pattern_count(policy: &Policy) -> usize {
    policy.paths.read_only.len()
        + policy.paths.denied.len()
        + policy.retention.pattern_count()
        + policy
            .tenants
            .iter()
            .map(super::TenantRule::pattern_count)
            .sum::<usize>()
}

fn too_many_patterns(at: Position) -> PolicyError {
    PolicyError::Value {
        at,
        what: format!("a policy has at most {MAX_PATTERNS} path patterns. Use broader ones"),
    }
}
