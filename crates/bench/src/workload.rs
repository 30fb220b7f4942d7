//! The files of the workload and the tool inputs on them: the same for every contender.

use serde_json::{Value, json};

/// So many directories hold the files.
pub const DIRECTORIES: usize = 20;

/// The length of a file, about; lines end where they end.
pub const FILE_BYTES: usize = 4_096;

const WORDS: [&str; 24] = [
    "the",
    "meeting",
    "moved",
    "to",
    "Friday",
    "morning",
    "because",
    "of",
    "a",
    "review",
    "and",
    "notes",
    "from",
    "last",
    "week",
    "say",
    "that",
    "customers",
    "prefer",
    "shorter",
    "answers",
    "with",
    "one",
    "example",
];

/// A command's name and the input for each file.
type Work = (&'static str, fn(usize) -> Value);

/// The commands that write, in the order in which one file goes through them.
pub const WRITES: [Work; 5] = [
    ("create", create),
    ("str_replace", str_replace),
    ("insert", insert),
    ("rename", rename),
    ("delete", delete),
];

/// `/memories/d07/f27.md`.
pub fn path(file: usize) -> String {
    format!("/memories/d{:02}/f{file}.md", file % DIRECTORIES)
}

/// Prose of 4 KB, different in each file, with one line that an edit can find.
pub fn text(file: usize) -> String {
    let mut state = (file as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = format!("# Notes {file}\nstatus: open {file}\n");
    let mut column = 0;
    while text.len() < FILE_BYTES - 12 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = WORDS[(state % WORDS.len() as u64) as usize];
        text.push_str(word);
        column += word.len() + 1;
        text.push(if column > 70 { '\n' } else { ' ' });
        if column > 70 {
            column = 0;
        }
    }
    while text.len() < FILE_BYTES - 1 {
        text.push('.');
    }
    text.push('\n');
    text
}

pub fn create(file: usize) -> Value {
    json!({ "command": "create", "path": path(file), "file_text": text(file) })
}

pub fn view(file: usize) -> Value {
    json!({ "command": "view", "path": path(file) })
}

pub fn str_replace(file: usize) -> Value {
    json!({
        "command": "str_replace", "path": path(file),
        "old_str": format!("status: open {file}"), "new_str": format!("status: done {file}"),
    })
}

pub fn insert(file: usize) -> Value {
    json!({
        "command": "insert", "path": path(file), "insert_line": 10, "insert_text": "One more line.\n",
    })
}

pub fn rename(file: usize) -> Value {
    json!({ "command": "rename", "old_path": path(file), "new_path": renamed(file) })
}

pub fn delete(file: usize) -> Value {
    json!({ "command": "delete", "path": renamed(file) })
}

fn renamed(file: usize) -> String {
    path(file).replace("/f", "/g")
}
