//! What `export` and `import` share: their words, their rows and their progress.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::args::LookArgs;
use super::audit::args::ActorArgs;
use super::desk;
use super::failure::Stop;
use super::output::{Out, table};

/// How many files a report lists; the totals count all.
const ROWS_MAX: usize = 100_000;

#[derive(Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Whose memory.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
    #[command(flatten)]
    pub actor: ActorArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Go on past damage, write whatever still checks out, and list what does not (exit code 5).
    #[arg(long)]
    pub salvage: bool,
}

#[derive(Args)]
#[group(id = "target", required = true, multiple = false)]
pub struct TargetArgs {
    /// Write to this directory, which must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Write this tar archive, which must not exist; - is stdout.
    #[arg(long, value_name = "FILE|-")]
    pub tar: Option<PathBuf>,
}

#[derive(Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Whose memory. It is created with the first file.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: String,
    #[command(flatten)]
    pub actor: ActorArgs,
    #[command(flatten)]
    pub source: SourceArgs,
    /// Replace files that exist; files under a hold stay.
    #[arg(long)]
    pub overwrite: bool,
    /// Also write to paths that are read-only or denied for agents. Names, redaction, limits
    /// and holds bind all the same.
    #[arg(long)]
    pub as_operator: bool,
    /// Store .png, .jpg and .jpeg files that carry that signature. Without this they are
    /// listed as left out (exit code 3).
    #[arg(long)]
    pub images: bool,
    /// Say what would happen, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
#[group(id = "source", required = true, multiple = false)]
pub struct SourceArgs {
    /// Read this directory, with all that is below it.
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Read this tar archive; - is stdin. Compressed ones are not read.
    #[arg(long, value_name = "FILE|-")]
    pub tar: Option<PathBuf>,
}

/// Whether this is `-`, for stdin or stdout.
pub fn is_pipe(tar: &std::path::Path) -> bool {
    tar.as_os_str() == "-"
}

/// The files of a report, as they come.
pub struct Rows {
    rows: Vec<Row>,
    left_out: u64,
    done: u64,
    is_terminal: bool,
    shown: Option<Instant>,
}

struct Row {
    path: String,
    text: String,
    json: Value,
}

impl Rows {
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            left_out: 0,
            done: 0,
            is_terminal: desk::is_watched(),
            shown: None,
        }
    }

    /// Adds a file, and shows on a terminal how many there are by now.
    pub fn add(&mut self, path: &str, text: String, json: Value) {
        self.done += 1;
        if self.rows.len() < ROWS_MAX {
            let path = path.to_owned();
            self.rows.push(Row { path, text, json });
        } else {
            self.left_out += 1;
        }
        let is_due = self
            .shown
            .is_none_or(|at| at.elapsed() >= Duration::from_millis(100));
        if self.is_terminal && is_due {
            self.shown = Some(Instant::now());
            let _shown = write!(io::stderr().lock(), "\r{} entries", self.done);
        }
    }

    /// Empties the line of the progress.
    pub fn clear(&self) {
        if self.shown.is_some() {
            let _cleared = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    pub fn json(&self) -> Vec<&Value> {
        self.rows.iter().map(|row| &row.json).collect()
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn text(&self, heads: [&str; 2], totals: &[(&str, u64)]) -> String {
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(
            self.rows
                .iter()
                .map(|row| vec![row.path.clone(), row.text.clone()]),
        );
        let mut text = String::new();
        if rows.len() > 1 {
            text = table(&rows, &[]);
            if self.left_out > 0 {
                text.push_str(&format!("… and {} more\n", self.left_out));
            }
            text.push('\n');
        }
        let totals = totals.iter();
        let totals: Vec<Vec<String>> = totals
            .map(|(name, number)| vec![(*name).to_owned(), number.to_string()])
            .collect();
        text.push_str(&table(&totals, &[1]));
        text
    }
}

/// Prints a report: on stderr where stdout carries an archive.
pub fn answer(
    out: &Out,
    to_stderr: bool,
    text: &str,
    json: &Value,
    is_json: bool,
) -> Result<(), Stop> {
    if !to_stderr {
        return out.answer(text, json);
    }
    let text = if is_json {
        format!("{json}\n")
    } else {
        text.to_owned()
    };
    let _printed = io::stderr().lock().write_all(text.as_bytes());
    Ok(())
}
