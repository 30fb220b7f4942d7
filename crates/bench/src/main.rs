//! One workload on this store, on its engine alone ("the limit"), and on other memory tools:
//! in one run, on one disk, in turns.
//!
//! ```text
//! crates/bench/setup PEERS
//! cargo run --release -p strongroom-bench -- --peers PEERS --json bench.json
//! ```

mod commands;
mod contender;
mod cost;
mod crowd;
mod fixture;
mod limit;
mod probe;
mod report;
mod scale;
mod start;
mod workload;

use std::path::PathBuf;

use report::Report;
use serde_json::json;

/// Whatever ends a run ends it.
pub type Res<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str =
    "usage: strongroom-bench [--quick] [--peers DIR] [--dir DIR] [--json FILE] [--only SECTION]...

Measures strongroom beside its bare engine and other memory tools.

  --quick         fewer files and rounds
  --peers DIR     where crates/bench/setup has installed the peers
  --dir DIR       on which disk to work; default: the directory for temporary files
  --json FILE     writes all figures there too
  --only SECTION  commands, crowd, scale, start, cost; may be given several times
  --million       the section scale with a store of a million files too (10 GB of disk)
";

/// What is asked of a run.
pub struct Options {
    pub quick: bool,
    pub million: bool,
    pub peers: Option<PathBuf>,
    pub home: PathBuf,
    json: Option<PathBuf>,
    only: Vec<String>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Res<Self> {
        let mut options = Self {
            quick: false,
            million: false,
            peers: None,
            home: std::env::temp_dir(),
            json: None,
            only: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(USAGE);
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--million" => options.million = true,
                "--peers" => options.peers = Some(value()?.into()),
                "--dir" => options.home = value()?.into(),
                "--json" => options.json = Some(value()?.into()),
                "--only" => options.only.push(value()?),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }

    fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == section)
    }
}

fn main() -> Res<()> {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().map(String::as_str) == Some(start::CHILD) {
        return start::child(args.skip(1));
    }
    if args.peek().map(String::as_str) == Some(start::ENGINE_CHILD) {
        return start::engine_child(args.skip(1));
    }
    let mut options = Options::parse(args)?;
    let scratch = tempfile::tempdir_in(&options.home)?;
    options.home = scratch.path().to_path_buf();
    let mut report = Report::default();
    type Section = fn(&Options, &mut Report) -> Res<()>;
    let sections: [(&str, Section); 5] = [
        ("cost", cost::run),
        ("commands", commands::run),
        ("crowd", crowd::run),
        ("scale", scale::run),
        ("start", start::run),
    ];
    for (name, run) in sections {
        if options.wants(name) {
            run(&options, &mut report)?;
        }
    }
    if let Some(file) = &options.json {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let about = json!({
            "quick": options.quick, "processors": processors,
            "strongroom": env!("CARGO_PKG_VERSION"), "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        });
        std::fs::write(file, format!("{:#}\n", report.to_json(about)))?;
    }
    Ok(())
}
