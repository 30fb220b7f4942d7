//! Reads one JSON text strictly: no duplicate fields, no lone surrogates, bounded.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::error::WireError;

/// Lists and objects may be nested this deep (serde_json's own limit).
pub const NESTING_MAX: usize = 127;

/// One object may have this many fields; known or unknown.
pub const FIELDS_MAX: usize = 1_000;

/// A JSON value, as far as a command can need it.
pub(super) enum Json {
    Null,
    Bool,
    /// A whole number, `1.0` included.
    Whole(i64),
    Fraction,
    /// Too large to be held exactly.
    HugeNumber,
    Text(String),
    /// At most the first [`LIST_KEPT`] items; the rest is checked and dropped.
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// The value's kind in words, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool => "a boolean",
            Json::Whole(_) => "a number",
            Json::Fraction => "a fraction",
            Json::HugeNumber => "a number out of range",
            Json::Text(_) => "text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }
}

/// Reads `text` as one JSON value with nothing but white space around it.
pub(super) fn read(text: &str) -> Result<Json, WireError> {
    serde_json::from_str(text).map_err(|error| explain(&error))
}

/// A range has two items; the third shows that there were too many.
const LIST_KEPT: usize = 3;

/// Every field name of the tool, so that messages quote no other.
const KNOWN_FIELDS: [(&str, &str); 14] = [
    ("command", "`command`"),
    ("path", "`path`"),
    ("view_range", "`view_range`"),
    ("file_text", "`file_text`"),
    ("old_str", "`old_str`"),
    ("new_str", "`new_str`"),
    ("insert_line", "`insert_line`"),
    ("insert_text", "`insert_text`"),
    ("old_path", "`old_path`"),
    ("new_path", "`new_path`"),
    ("type", "`type`"),
    ("id", "`id`"),
    ("name", "`name`"),
    ("input", "`input`"),
];
const UNKNOWN_FIELD: &str = "(not one of this tool's)";
const TOO_MANY_FIELDS: &str = "too many fields";

fn shown_field(name: &str) -> &'static str {
    KNOWN_FIELDS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(UNKNOWN_FIELD, |(_, shown)| shown)
}

/// Turns serde_json's error into ours. Its own texts are fixed sentences; the
/// only ones with words of ours are the `custom` ones below (category Data).
fn explain(error: &serde_json::Error) -> WireError {
    let column = error.column();
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    if error.is_data() {
        if reason == TOO_MANY_FIELDS {
            let fields_max = FIELDS_MAX;
            return WireError::TooManyFields { fields_max, column };
        }
        let field = KNOWN_FIELDS
            .iter()
            .map(|(_, shown)| *shown)
            .find(|shown| *shown == reason)
            .unwrap_or(UNKNOWN_FIELD);
        return WireError::DuplicateField { field, column };
    }
    if reason.ends_with("hex escape") {
        return WireError::LoneSurrogate { column };
    }
    if reason == "recursion limit exceeded" {
        return WireError::TooDeep { column };
    }
    let reason = reason.to_owned();
    WireError::NotJson { reason, column }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Bool)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Whole(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Json, E> {
        Ok(i64::try_from(number).map_or(Json::HugeNumber, Json::Whole))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Json, E> {
        // Above 2^53 an f64 no longer tells one whole number from the next.
        const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
        Ok(if number.abs() > EXACT_MAX {
            Json::HugeNumber
        } else if number.fract() == 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and within 2^53, so the cast is exact"
            )]
            Json::Whole(number as i64)
        } else {
            Json::Fraction
        })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut kept = Vec::new();
        while let Some(item) = items.next_element::<Json>()? {
            if kept.len() < LIST_KEPT {
                kept.push(item);
            }
        }
        Ok(Json::List(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(name) = entries.next_key::<String>()? {
            if fields.contains_key(&name) {
                return Err(de::Error::custom(shown_field(&name)));
            }
            if fields.len() == FIELDS_MAX {
                return Err(de::Error::custom(TOO_MANY_FIELDS));
            }
            let value = entries.next_value::<Json>()?;
            fields.insert(name, value);
        }
        Ok(Json::Object(fields))
    }
}
