//! Writes a policy as canonical text, and compares two key by key.
//!
//! The text is written by hand, not by a TOML library: its digest is stored with every file,
//! so it may not change with a dependency's taste in quoting.

use std::fmt;

/// A table of the canonical text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The header line, such as `[limits]` or `[[tenants]]`.
    header: String,
    /// The name in a diff, such as `limits` or `tenants."team-a/*"`.
    label: String,
    /// Keys with their TOML values.
    lines: Vec<(String, String)>,
}

impl Block {
    pub(super) fn table(name: &str, lines: Vec<(String, String)>) -> Self {
        Self {
            header: format!("[{name}]"),
            label: name.to_owned(),
            lines,
        }
    }

    /// An item of an array of tables; `id` tells it from its siblings.
    pub(super) fn item(name: &str, id: &str, lines: Vec<(String, String)>) -> Self {
        Self {
            header: format!("[[{name}]]"),
            label: format!("{name}.{}", string(id)),
            lines,
        }
    }

    /// A table inside an item of an array of tables.
    pub(super) fn item_table(
        name: &str,
        id: &str,
        table: &str,
        lines: Vec<(String, String)>,
    ) -> Self {
        Self {
            header: format!("[{name}.{table}]"),
            label: format!("{name}.{}.{table}", string(id)),
            lines,
        }
    }

    fn keys(&self) -> impl Iterator<Item = (String, &str)> {
        self.lines
            .iter()
            .map(|(key, value)| (format!("{}.{key}", self.label), value.as_str()))
    }
}

/// The canonical text: `schema = 1` and the blocks.
pub(super) fn text(blocks: &[Block]) -> String {
    let mut text = String::from("schema = 1\n");
    for block in blocks {
        text.push('\n');
        text.push_str(&block.header);
        text.push('\n');
        for (key, value) in &block.lines {
            text.push_str(key);
            text.push_str(" = ");
            text.push_str(value);
            text.push('\n');
        }
    }
    text
}

/// One key that differs between two policies.
///
/// Displays as `limits.max_files: 10000 -> 500`; a key that one side does not have (it can
/// only be one of a tenant or of a rule) shows as `(none)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The dotted key, such as `limits.max_files` or `tenants."team-a/*".limits.max_files`.
    pub key: String,
    /// The TOML value before.
    pub before: Option<String>,
    /// The TOML value after.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
        write!(
            f,
            "{}: {} -> {}",
            self.key,
            shown(&self.before),
            shown(&self.after)
        )
    }
}

/// The keys that differ: first those that `before` has, then those only `after` has.
pub(super) fn diff(before: &[Block], after: &[Block]) -> Vec<Change> {
    let keys = |blocks: &[Block]| -> Vec<(String, String)> {
        blocks
            .iter()
            .flat_map(Block::keys)
            .map(|(key, value)| (key, value.to_owned()))
            .collect()
    };
    let (before, after) = (keys(before), keys(after));
    let find = |keys: &[(String, String)]| {
        keys.iter()
            .cloned()
            .collect::<std::collections::HashMap<_, _>>()
    };
    let (in_before, in_after) = (find(&before), find(&after));
    let kept = before.iter().map(|(key, value)| Change {
        key: key.clone(),
        before: Some(value.clone()),
        after: in_after.get(key).cloned(),
    });
    let added = after
        .iter()
        .filter(|(key, _)| !in_before.contains_key(key))
        .map(|(key, value)| Change {
            key: key.clone(),
            before: None,
            after: Some(value.clone()),
        });
    kept.chain(added)
        .filter(|change| change.before != change.after)
        .collect()
}

/// A TOML basic string.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A TOML array of strings on one line.
pub(super) fn strings<T: fmt::Display>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| string(&item.to_string())).collect();
    format!("[{}]", items.join(", "))
}
