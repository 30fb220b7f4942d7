//! Answers on stdout, as text or JSON; remarks on stderr.

use std::io;

use serde_json::Value;

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

fn not_printed(error: &io::Error) -> Stop {
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

/// Milliseconds since the Unix epoch as `2026-01-31T08:15:00Z`.
pub fn utc(millis: u64) -> String {
    let seconds = millis / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days, for dates from 1970 on: eras of 400 years that start in March
    // (https://howardhinnant.github.io/date_algorithms.html#civil_from_days).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_civil_dates_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds * 1_000), text);
        }
    }

    #[test]
    fn columns_are_aligned_and_lines_do_not_end_in_spaces() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let rows = [row(&["NAME", "FILES", ""]), row(&["ä", "12", "x"])];
        assert_eq!(table(&rows, &[1]), "NAME  FILES\nä        12  x\n");
    }
}
