//! Answers on stdout, as text or JSON; remarks on stderr.

use std::io;

use serde_json::Value;
use strongroom::redact::Engine;

use super::desk;
use super::failure::{Exit, Failure, Stop};

/// Where the answer goes. With `json`, [`Out::answer`] prints its JSON form.
pub struct Out {
    json: bool,
}

impl Out {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints the answer in the form that was asked for.
    pub fn answer(&self, text: &str, json: &Value) -> Result<(), Stop> {
        if self.json {
            print(&format!("{json}\n"))
        } else {
            print(text)
        }
    }
}

/// Prints a text as it is, and hands it on at once.
pub fn print(text: &str) -> Result<(), Stop> {
    print_bytes(text.as_bytes())
}

/// Prints bytes as they are, and hands them on at once.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Stop> {
    desk::write_out(bytes).map_err(|error| not_printed(&error))
}

/// One remark on stderr. If that is closed, nobody wants it.
pub fn say(text: &str) {
    desk::write_err(format!("strongroom: {text}\n").as_bytes());
}

/// Why an answer could not be printed.
pub fn not_printed(error: &io::Error) -> Stop {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Stop::PipeClosed,
        io::ErrorKind::StorageFull => Failure::new(
            Exit::NoSpace,
            "print the answer: no space left",
            "Free some space where the output goes, then try again.",
        )
        .into(),
        kind => Failure::new(
            Exit::Other,
            format!("print the answer: {kind}"),
            "Check where the output goes.",
        )
        .into(),
    }
}

/// Rows as text: columns aligned, two spaces between them, those in `right` to the right.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            if right.contains(&at) {
                line.push_str(&format!("{gap}{cell:>width$}"));
            } else {
                line.push_str(&format!("{gap}{cell:<width$}"));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The path with markers in place of what in it looks like a secret.
pub fn showable(engine: &Engine, path: &str) -> String {
    match engine.scrub(path, None) {
        Ok(redacted) => redacted.text.into_owned(),
        Err(_) => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_do_not_end_in_spaces() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let rows = [row(&["NAME", "FILES", ""]), row(&["ä", "12", "x"])];
        assert_eq!(table(&rows, &[1]), "NAME  FILES\nä        12  x\n");
    }
}
