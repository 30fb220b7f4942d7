//! Reads typed values out of a policy tree, with messages that point at the line.

use std::time::Duration;

use super::error::{PolicyError, shown};
use super::node::{Node, Spot, Table, Value};
use super::units::{
    BYTES_HELP, DURATION_HELP, format_bytes, format_duration, parse_bytes, parse_duration,
};

/// Every section and its keys; for "did you mean" and "belongs in".
const KEYS: [(&str, &[&str]); 9] = [
    ("", super::load::ROOT_KEYS),
    ("limits", super::limits::LIMIT_KEYS),
    ("view", super::limits::VIEW_KEYS),
    ("write", super::limits::WRITE_KEYS),
    ("paths", super::limits::PATH_KEYS),
    ("retention", super::retention::KEYS),
    ("redaction", super::redaction::KEYS),
    ("audit", super::audit::KEYS),
    ("tenants", super::tenants::KEYS),
];

/// A table of the policy and its dotted name (`limits`, `tenants.view`; empty for the root).
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) name: String,
    table: &'a Table,
    at: &'a Spot,
}

/// A key of a section with its value.
pub(super) struct Field<'a> {
    name: String,
    node: &'a Node,
}

impl<'a> Section<'a> {
    /// The root of a policy text.
    pub(super) fn root(node: &'a Node) -> Result<Self, PolicyError> {
        let root = Field {
            name: String::new(),
            node,
        };
        root.section()
    }

    /// Refuses any key that is not in `accepted`; the first in the text is reported.
    pub(super) fn accept(&self, accepted: &[&str]) -> Result<(), PolicyError> {
        let unknown = self
            .table
            .iter()
            .filter(|(key, _)| !accepted.contains(&key.as_str()))
            .map(|(key, (at, _))| (at.position(), key))
            .min_by_key(|(at, _)| (at.line, at.column));
        let Some((at, key)) = unknown else {
            return Ok(());
        };
        let here = match self.name.as_str() {
            "" => "at the top of a policy".to_owned(),
            name => format!("in [{name}]"),
        };
        let hint = near(key, accepted)
            .map(|near| format!(", did you mean {near}?"))
            .or_else(|| elsewhere(key).map(|section| format!(". {key} belongs {section}.")))
            .unwrap_or_else(|| ".".to_owned());
        Err(PolicyError::Key {
            at,
            what: format!(
                "unknown key {} {here}{hint} Accepted keys: {}",
                shown(key),
                accepted.join(", ")
            ),
        })
    }

    /// The key's field, if the key is there.
    pub(super) fn field(&self, key: &str) -> Option<Field<'a>> {
        let (_, node) = self.table.get(key)?;
        Some(Field {
            name: match self.name.as_str() {
                "" => key.to_owned(),
                section => format!("{section}.{key}"),
            },
            node,
        })
    }

    /// The key's field. Only a broken shipped `default` policy lacks one.
    pub(super) fn required(&self, key: &str) -> Result<Field<'a>, PolicyError> {
        self.field(key).ok_or_else(|| PolicyError::Key {
            at: self.at.position(),
            what: format!("{key} is missing in [{}]. Write a value for it", self.name),
        })
    }

    /// The table under `key`, if it is there.
    pub(super) fn section(&self, key: &str) -> Result<Option<Section<'a>>, PolicyError> {
        self.field(key).map(|field| field.section()).transpose()
    }

    /// The tables of the array under `key`; none if the key is not there.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Section<'a>>, PolicyError> {
        self.field(key).map_or(Ok(Vec::new()), |field| {
            field.items()?.iter().map(Field::section).collect()
        })
    }

    /// The keys and their fields, for tables with free keys.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        self.table
            .keys()
            .filter_map(|key| Some((key.as_str(), self.field(key)?)))
    }

    /// An error at the section as a whole.
    pub(super) fn wrong(&self, what: &str) -> PolicyError {
        PolicyError::Value {
            at: self.at.position(),
            what: format!("{} {what}", self.name),
        }
    }
}

impl<'a> Field<'a> {
    /// Where the value stands.
    pub(super) fn at(&self) -> &'a Spot {
        &self.node.at
    }

    /// The dotted key.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A value error at this field: `{name} {what}`.
    pub(super) fn wrong(&self, what: &str) -> PolicyError {
        PolicyError::Value {
            at: self.node.at.position(),
            what: format!("{} {what}", self.name),
        }
    }

    fn wrong_type(&self, wanted: &str) -> PolicyError {
        let found = self.node.value.type_name();
        self.wrong(&format!("must be {wanted}, but is {found}"))
    }

    fn wrong_type_help(&self, wanted: &str, help: &str) -> PolicyError {
        let found = self.node.value.type_name();
        self.wrong(&format!("must be {wanted}, but is {found}. {help}"))
    }

    pub(super) fn section(&self) -> Result<Section<'a>, PolicyError> {
        match &self.node.value {
            Value::Table(table) => Ok(Section {
                name: self.name.clone(),
                table,
                at: &self.node.at,
            }),
            _ => Err(self.wrong_type("a table")),
        }
    }

    /// The items of an array, each under this field's name.
    pub(super) fn items(&self) -> Result<Vec<Field<'a>>, PolicyError> {
        match &self.node.value {
            Value::List(items) => Ok(items
                .iter()
                .map(|node| Field {
                    name: self.name.clone(),
                    node,
                })
                .collect()),
            _ => Err(self.wrong_type("an array")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, PolicyError> {
        match self.node.value {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    pub(super) fn text(&self) -> Result<&'a str, PolicyError> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// The strings of an array.
    pub(super) fn texts(&self) -> Result<Vec<String>, PolicyError> {
        self.items()?
            .iter()
            .map(|item| item.text().map(str::to_owned))
            .collect()
    }

    /// A whole number between floor and ceiling, both included.
    pub(super) fn count(&self, floor: u64, ceiling: u64) -> Result<u64, PolicyError> {
        match self.node.value {
            Value::Integer(number) => number
                .filter(|number| (floor..=ceiling).contains(number))
                .ok_or_else(|| {
                    self.wrong(&format!(
                        "is out of range. Write a whole number from {floor} to {ceiling}"
                    ))
                }),
            _ => Err(self.wrong_type(&format!("a whole number from {floor} to {ceiling}"))),
        }
    }

    /// A byte size between floor and ceiling, both included.
    pub(super) fn bytes(&self, floor: u64, ceiling: u64) -> Result<u64, PolicyError> {
        let range = || {
            let (floor, ceiling) = (format_bytes(floor), format_bytes(ceiling));
            self.wrong(&format!(
                "is out of range. Write a size from {floor} to {ceiling}"
            ))
        };
        let bytes = match &self.node.value {
            Value::Integer(number) => number.ok_or_else(range)?,
            Value::Text(text) => parse_bytes(text)
                .map_err(|reason| self.wrong(&format!("is not a size: {reason}. {BYTES_HELP}")))?,
            _ => return Err(self.wrong_type_help("a size", BYTES_HELP)),
        };
        if (floor..=ceiling).contains(&bytes) {
            Ok(bytes)
        } else {
            Err(range())
        }
    }

    /// A byte size, or `None` for the word `off`.
    pub(super) fn bytes_or_off(
        &self,
        floor: u64,
        ceiling: u64,
    ) -> Result<Option<u64>, PolicyError> {
        match &self.node.value {
            Value::Text(text) if text == "off" => Ok(None),
            _ => self.bytes(floor, ceiling).map(Some),
        }
    }

    /// A duration between floor and ceiling, both included.
    pub(super) fn duration(
        &self,
        floor: Duration,
        ceiling: Duration,
    ) -> Result<Duration, PolicyError> {
        let Value::Text(text) = &self.node.value else {
            return Err(self.wrong_type_help("a duration", DURATION_HELP));
        };
        let duration = parse_duration(text).map_err(|reason| {
            self.wrong(&format!("is not a duration: {reason}. {DURATION_HELP}"))
        })?;
        if (floor..=ceiling).contains(&duration) {
            return Ok(duration);
        }
        let (floor, ceiling) = (format_duration(floor), format_duration(ceiling));
        Err(self.wrong(&format!(
            "is out of range. Write a duration from {floor} to {ceiling}"
        )))
    }

    /// A duration, or `None` for the word `never`.
    pub(super) fn duration_or_never(
        &self,
        floor: Duration,
        ceiling: Duration,
    ) -> Result<Option<Duration>, PolicyError> {
        match &self.node.value {
            Value::Text(text) if text == "never" => Ok(None),
            _ => self.duration(floor, ceiling).map(Some),
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, PolicyError> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let accepted = format!("one of \"{}\"", words.join("\", \""));
        let Value::Text(text) = &self.node.value else {
            return Err(self.wrong_type(&accepted));
        };
        choices
            .iter()
            .find(|(word, _)| word == text)
            .map(|(_, choice)| *choice)
            .ok_or_else(|| {
                let hint = near(text, &words).map_or_else(
                    || ".".to_owned(),
                    |near| format!(", did you mean \"{near}\"?"),
                );
                self.wrong(&format!("has an unknown value{hint} Write {accepted}"))
            })
    }
}

/// The candidate that differs from `word` by a slip or two.
pub(super) fn near<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let slips = match word.chars().count() {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= slips)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The section in which `key` is a key.
fn elsewhere(key: &str) -> Option<String> {
    let (section, _) = KEYS.iter().find(|(_, keys)| keys.contains(&key))?;
    Some(match *section {
        "" => "at the top of the policy, before any [section]".to_owned(),
        section => format!("in [{section}]"),
    })
}

/// Levenshtein distance; long words are not compared.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, above) in b.chars().zip(row.iter().skip(1)) {
            left = (left + 1)
                .min(above + 1)
                .min(diagonal + usize::from(from != to));
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near() {
        let keys = ["max_files", "max_file_bytes", "max_total_bytes"];
        assert_eq!(near("max_filse", &keys), Some("max_files"));
        assert_eq!(near("max_file", &keys), Some("max_files"));
        assert_eq!(near("maxfilebytes", &keys), Some("max_file_bytes"));
        assert_eq!(near("colour", &keys), None);
    }

    #[test]
    fn distance_counts_single_changes() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
