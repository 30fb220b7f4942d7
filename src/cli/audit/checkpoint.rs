//! `checkpoint`: one line to keep outside the store.

use serde_json::json;

use super::args::CheckpointArgs;
use crate::cli::failure::{Exit, Failure, Stop};
use crate::cli::open;
use crate::cli::output::Out;

pub fn run(args: &CheckpointArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    if !vault.policy().audit.enabled {
        return Err(Failure::new(
            Exit::Refused,
            "write a checkpoint: the policy keeps no audit log",
            "Put a policy with `enabled = true` under [audit] in force, with `strongroom policy set`.",
        )
        .into());
    }
    let checkpoint = vault.checkpoint()?;
    vault.close()?;
    let line = checkpoint.to_string();
    Out::new(args.look.json).answer(
        &format!("{line}\n"),
        &json!({
            "checkpoint": line,
            "store": checkpoint.store,
            "seq": checkpoint.seq,
            "id": checkpoint.id,
        }),
    )
}
