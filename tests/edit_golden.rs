//! Runs the golden tables of edits and views.
#![expect(
    clippy::expect_used,
    reason = "a table that cannot be read fails the test"
)]

use serde::Deserialize;
use serde::de::DeserializeOwned;
use strongroom::edit;

const PATH: &str = "/memories/a.md";
const CHARS_MAX: usize = 16_000;

#[derive(Deserialize)]
struct Table<T> {
    case: Vec<T>,
}

fn cases<T: DeserializeOwned>(table: &str) -> Vec<T> {
    let table: Table<T> = toml::from_str(table).expect("a golden table");
    assert!(table.case.len() > 20, "the table is read whole");
    table.case
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Insert {
    name: String,
    text: String,
    line: i64,
    insert: String,
    after: Option<String>,
    changed: Option<(u64, u64)>,
    error: Option<String>,
}

#[test]
fn insert_table_holds() {
    for case in cases::<Insert>(include_str!("golden/insert.toml")) {
        let name = &case.name;
        match edit::insert(&case.text, case.line, &case.insert) {
            Ok(edited) => {
                assert_eq!(Some(&edited.text), case.after.as_ref(), "{name}");
                let changed = (edited.first_line, edited.last_line);
                assert_eq!(Some(changed), case.changed, "{name}");
            }
            Err(error) => assert_eq!(Some(error.reply_text(PATH, "")), case.error, "{name}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrReplace {
    name: String,
    text: String,
    old: String,
    new: String,
    chars_max: Option<usize>,
    after: Option<String>,
    snippet: Option<String>,
    error: Option<String>,
}

#[test]
fn str_replace_table_holds() {
    const SUCCESS: &str = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n";
    for case in cases::<StrReplace>(include_str!("golden/str_replace.toml")) {
        let name = &case.name;
        match edit::str_replace(&case.text, &case.old, &case.new) {
            Ok(edited) => {
                assert_eq!(Some(&edited.text), case.after.as_ref(), "{name}");
                let reply = edit::snippet(&edited, case.chars_max.unwrap_or(CHARS_MAX));
                let snippet = case.snippet.unwrap_or_default();
                assert_eq!(reply, format!("{SUCCESS}{snippet}"), "{name}");
            }
            Err(error) => assert_eq!(
                Some(error.reply_text(PATH, &case.old)),
                case.error,
                "{name}"
            ),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    name: String,
    text: String,
    range: Option<(i64, i64)>,
    chars_max: Option<usize>,
    shows: Option<String>,
    error: Option<String>,
}

#[test]
fn view_table_holds() {
    for case in cases::<View>(include_str!("golden/view.toml")) {
        let chars_max = case.chars_max.unwrap_or(CHARS_MAX);
        match edit::view_file(PATH, &case.text, case.range, chars_max) {
            Ok(text) => assert_eq!(Some(text), case.shows, "{}", case.name),
            Err(error) => {
                assert_eq!(
                    Some(error.reply_text(PATH, "")),
                    case.error,
                    "{}",
                    case.name
                );
            }
        }
    }
}
