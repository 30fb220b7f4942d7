//! A policy text as a tree in which every value knows its file, line and column.
//!
//! The tree is our own rather than serde's, for two reasons: after `extends` one policy has
//! values from several files, and each must still point at its own; and the messages about
//! unknown keys and bad units are the product here, so they are written by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{PolicyError, Position};

/// One policy text and the name to report it under.
#[derive(Debug)]
pub(super) struct Source {
    /// Name or path shown to people.
    pub(super) name: String,
    /// What makes two sources the same one: a tagged name or a canonical path.
    pub(super) identity: String,
    /// The TOML text.
    pub(super) text: String,
}

/// A byte offset in a source.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) source: Arc<Source>,
    offset: usize,
}

impl Spot {
    pub(super) fn position(&self) -> Position {
        let text = self.source.text.as_str();
        let before = text.get(..self.offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position {
            file: self.source.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or("").chars().count() + 1,
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Spot,
}

/// The TOML types that a policy uses. A float or date appears only to be refused by name.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    /// `None` for a negative number or one above `u64::MAX`: no key accepts either.
    Integer(Option<u64>),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    Other(&'static str),
}

/// A table: for each key where the key stands, and its value.
pub(super) type Table = BTreeMap<String, (Spot, Node)>;

impl Value {
    /// The type as an operator would say it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "an array",
            Self::Table(_) => "a table",
            Self::Other(name) => name,
        }
    }
}

/// Parses one text into a tree. The caller has checked the text's size.
pub(super) fn parse(source: &Arc<Source>) -> Result<Node, PolicyError> {
    let root = DeTable::parse(&source.text).map_err(|error| PolicyError::Syntax {
        at: Spot {
            source: Arc::clone(source),
            offset: error.span().map_or(0, |span| span.start),
        }
        .position(),
        what: format!(
            "this is not TOML: {}. Correct the syntax here",
            error.message()
        ),
    })?;
    Ok(Node {
        at: Spot {
            source: Arc::clone(source),
            offset: 0,
        },
        value: Value::Table(table(source, root.get_ref())),
    })
}

/// Lays `over` on `base`: tables merge by key, `rules` whose items all have an `id` merge by
/// id, everything else is replaced. The later one wins.
pub(super) fn merge(base: Node, over: Node) -> Node {
    merge_named("", base, over)
}

fn merge_named(key: &str, base: Node, over: Node) -> Node {
    let at = over.at;
    let value = match (base.value, over.value) {
        (Value::Table(base), Value::Table(over)) => Value::Table(merge_tables(base, over)),
        (Value::List(base), Value::List(over))
            if key == "rules" && !over.is_empty() && all_have_id(&base) && all_have_id(&over) =>
        {
            Value::List(merge_by_id(base, over))
        }
        (_, over) => over,
    };
    Node { value, at }
}

fn merge_tables(mut base: Table, over: Table) -> Table {
    for (key, (key_at, value)) in over {
        let merged = match base.remove(&key) {
            Some((_, below)) => merge_named(&key, below, value),
            None => value,
        };
        base.insert(key, (key_at, merged));
    }
    base
}

/// A rule of the same id is replaced whole: its expression and its examples belong together.
fn merge_by_id(base: Vec<Node>, over: Vec<Node>) -> Vec<Node> {
    let mut rules: Vec<Node> = base
        .into_iter()
        .filter(|below| !over.iter().any(|above| id(above) == id(below)))
        .collect();
    rules.extend(over);
    rules
}

fn all_have_id(items: &[Node]) -> bool {
    items.iter().all(|item| id(item).is_some())
}

fn id(item: &Node) -> Option<&str> {
    let Value::Table(table) = &item.value else {
        return None;
    };
    match table.get("id") {
        Some((
            _,
            Node {
                value: Value::Text(id),
                ..
            },
        )) => Some(id),
        _ => None,
    }
}

fn table(source: &Arc<Source>, parsed: &DeTable<'_>) -> Table {
    parsed
        .iter()
        .map(|(key, value)| {
            let key_at = Spot {
                source: Arc::clone(source),
                offset: key.span().start,
            };
            let node = node(source, value.span().start, value.get_ref());
            (key.get_ref().to_string(), (key_at, node))
        })
        .collect()
}

fn node(source: &Arc<Source>, offset: usize, parsed: &DeValue<'_>) -> Node {
    let value = match parsed {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            Value::Integer(u64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| node(source, item.span().start, item.get_ref()))
                .collect(),
        ),
        DeValue::Table(parsed) => Value::Table(table(source, parsed)),
        DeValue::Float(_) => Value::Other("a float"),
        DeValue::Datetime(_) => Value::Other("a date"),
    };
    Node {
        value,
        at: Spot {
            source: Arc::clone(source),
            offset,
        },
    }
}
