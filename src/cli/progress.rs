//! Progress on the terminal.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::desk;

/// How often the line is written at most.
const EVERY: Duration = Duration::from_millis(100);

/// A line on the terminal that is written over and over. Nothing where stderr is no terminal.
pub struct Progress<'a> {
    what: &'a str,
    unit: &'a str,
    is_terminal: bool,
    shown: Option<Instant>,
}

impl<'a> Progress<'a> {
    /// The line is `what: 3 of 10 unit`, or `what: 3 unit` where there is no telling how many
    /// there are.
    pub fn new(what: &'a str, unit: &'a str) -> Self {
        Self {
            what,
            unit,
            is_terminal: desk::is_watched(),
            shown: None,
        }
    }

    pub fn show(&mut self, done: u64, all: u64) {
        let is_due = self.shown.is_none_or(|at| at.elapsed() >= EVERY);
        if !self.is_terminal || !is_due {
            return;
        }
        self.shown = Some(Instant::now());
        let (what, unit) = (self.what, self.unit);
        let _shown = match all {
            // How many there are is not known.
            0 => write!(io::stderr().lock(), "\r\x1b[K{what}: {done} {unit}"),
            _ => write!(
                io::stderr().lock(),
                "\r\x1b[K{what}: {done} of {all} {unit}"
            ),
        };
    }

    /// Empties the line.
    pub fn clear(&self) {
        if self.shown.is_some() {
            let _cleared = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
