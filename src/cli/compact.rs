//! `compact`: writes the engine's files anew.

use serde_json::json;

use super::args::LookArgs;
use super::failure::Stop;
use super::open;
use super::output::Out;
use super::progress::Progress;

pub fn run(args: &LookArgs) -> Result<(), Stop> {
    let vault = open::to_change(args)?;
    let mut progress = Progress::new("compact", "records");
    let compacted = vault.compact(|at, all| progress.show(at, all));
    progress.clear();
    let compacted = compacted?;
    vault.close()?;
    let (before, after, records) = (compacted.before, compacted.after, compacted.records);
    Out::new(args.json).answer(
        &format!("{records} records, {before} bytes before, {after} bytes now\n"),
        &json!({ "records": records, "before_bytes": before, "after_bytes": after }),
    )
}
