//! `restore`: a store from a backup, or one tenant's files into a store that is there.

use std::path::Path;

use serde_json::json;
use strongroom::transfer::{ImportOptions, ImportReport};
use strongroom::{Erasures, RestoreSources, Restored, Step, TenantSource, Vault, restore};

use super::backup_args::RestoreArgs;
use super::failure::{Exit, Failure, Stop};
use super::output::{Out, say};
use super::progress::Progress;
use super::transfer::Rows;
use super::{import, keys, open, time};

pub fn run(args: &RestoreArgs) -> Result<(), Stop> {
    match &args.tenant {
        Some(tenant) => one_tenant(args, tenant),
        None => whole(args),
    }
}

fn whole(args: &RestoreArgs) -> Result<(), Stop> {
    let mut erased = Erasures::new();
    for file in &args.erasures {
        erased.add_file(file)?;
    }
    if let Some(old) = &args.replaces {
        let old = Vault::builder()
            .path(old)
            .key_source(keys::source(&args.look.store.key)?)
            .read_only(true)
            .open()?;
        erased.add_store(&old);
        old.close()?;
    }
    let mut progress = Progress::new("restore", "records");
    let sources = RestoreSources {
        records: &args.from,
        keys: args.keys.as_deref().unwrap_or(Path::new("")),
        erased: &erased,
    };
    let restored = restore(sources, &args.look.store.store, |step, at, all| {
        if matches!(step, Step::Check | Step::Records) {
            progress.show(at, all);
        }
    });
    progress.clear();
    let restored = restored?;
    let text = text(&restored);
    if restored.without_keys > 0 {
        say(&format!(
            "note: {} tenants of the backup have no key in the file of keys, and cannot be read unless they were erased",
            restored.without_keys
        ));
    }
    Out::new(args.look.json).answer(
        &text,
        &json!({
            "id": restored.id,
            "made": time::utc(restored.made),
            "commit": restored.commit,
            "records": restored.records,
            "tenants": restored.tenants,
            "without_keys": restored.without_keys,
            "erased": restored.erased,
        }),
    )
}

fn text(restored: &Restored) -> String {
    let mut text = format!(
        "the store at commit {}, {}: {} records, {} tenants\n",
        restored.commit,
        time::utc(restored.made),
        restored.records,
        restored.tenants
    );
    if restored.erased > 0 {
        text.push_str(&format!(
            "{} erased tenants known; those among them that the backup has are erased again when the store is first opened\n",
            restored.erased
        ));
    }
    text
}

fn one_tenant(args: &RestoreArgs, tenant: &str) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    let into = vault.tenant(args.into.as_deref().unwrap_or(tenant))?;
    let source = TenantSource {
        records: &args.from,
        keys: args.keys.as_deref(),
        tenant,
    };
    let options = ImportOptions::new().overwrite(args.overwrite).images(true);
    let mut rows = Rows::new();
    let report = vault.restore_tenant(source, &into, options, |path, outcome| {
        import::add(&mut rows, path, outcome);
    });
    rows.clear();
    let report = report?;
    let closed = vault.close();
    let json = json!({
        "tenant": tenant,
        "complete": report.failure.is_none() && report.refused == 0,
        "stored": report.stored,
        "bytes": report.bytes,
        "removed": report.removed,
        "exists": report.exists,
        "refused": report.refused,
        "entries": rows.json(),
        "entries_left_out": rows.left_out(),
    });
    let text = rows.text(["PATH", "RESULT"], &import::totals(&report));
    Out::new(args.look.json).answer(&text, &json)?;
    ended(report, args.overwrite)?;
    Ok(closed?)
}

fn ended(report: ImportReport, is_overwriting: bool) -> Result<(), Stop> {
    if let Some(error) = report.failure {
        return Err(Failure::from(&error)
            .and_next("What is listed as stored is stored whole.")
            .into());
    }
    if report.exists > 0 && !is_overwriting {
        say("files that exist were not changed; use --overwrite to replace them");
    }
    if report.refused > 0 {
        return Err(Failure::new(
            Exit::Refused,
            format!("restore every file: {} refused", report.refused),
            "Look at the reasons. The backup still has these files, and `restore` without --tenant makes a store of it.",
        )
        .into());
    }
    Ok(())
}
