//! `backup` and `verify-backup`.

use serde_json::json;
use strongroom::{BackupKind, BackupTargets, Step, verify_backup};

use super::backup_args::{BackupArgs, VerifyBackupArgs};
use super::failure::Stop;
use super::output::{Out, say};
use super::progress::Progress;
use super::{open, time};

pub fn run(args: &BackupArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    let mut progress = Progress::new("backup", "records");
    let targets = BackupTargets {
        records: args.to.as_deref(),
        keys: args.keys.as_deref(),
    };
    let made = vault.backup(targets, |step, at, all| {
        if matches!(step, Step::Copy | Step::Check) {
            progress.show(at, all);
        }
    });
    progress.clear();
    let made = made?;
    vault.close()?;
    let mut text = format!("backup {} of commit {}\n", made.id, made.commit);
    if args.to.is_some() {
        text.push_str(&format!("{} records, {} bytes\n", made.records, made.bytes));
    }
    if let Some(tenants) = made.tenants {
        text.push_str(&format!("keys of {tenants} tenants\n"));
    } else {
        say(
            "note: the keys are not in it; nothing can be restored from it without a file that `backup --keys` wrote",
        );
    }
    Out::new(args.look.json).answer(
        &text,
        &json!({
            "id": made.id,
            "made": time::utc(made.made),
            "commit": made.commit,
            "records": made.records,
            "bytes": made.bytes,
            "tenants": made.tenants,
        }),
    )
}

pub fn verify(args: &VerifyBackupArgs) -> Result<(), Stop> {
    let mut progress = Progress::new("verify-backup", "records");
    let found = verify_backup(&args.file, |_, at, all| progress.show(at, all));
    progress.clear();
    let found = found?;
    let made = time::utc(found.made);
    let (holds, kind) = match found.kind {
        BackupKind::Records => (
            format!(
                "{} records of {} tenants at commit {}",
                found.records,
                found.tenants,
                found.commit.unwrap_or(0)
            ),
            "records",
        ),
        BackupKind::Keys => (format!("keys of {} tenants", found.tenants), "keys"),
    };
    let text = format!(
        "backup {} of store {}, made {made}\n{holds}; {} erased tenants known\n\
         whole, and as it was written; whether a key opens it was not tried\n",
        found.id, found.store, found.erased
    );
    Out::new(args.json).answer(
        &text,
        &json!({
            "kind": kind,
            "id": found.id,
            "store": found.store,
            "made": made,
            "commit": found.commit,
            "records": found.records,
            "tenants": found.tenants,
            "erased": found.erased,
        }),
    )
}
