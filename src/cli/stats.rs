//! `stats` and `tenant list`: totals over the store and its tenants.

use serde_json::{Value, json};
use strongroom::{ErasureState, StoreStats, erasure_state_word};

use super::args::LookArgs;
use super::failure::Stop;
use super::open;
use super::output::{Out, table};
use super::time::{clock_json, clock_word, utc};

pub fn run(args: &LookArgs) -> Result<(), Stop> {
    let stats = stats(args)?;
    let tenants = stats.tenants.len() as u64;
    let files: u64 = stats.tenants.iter().map(|tenant| tenant.files).sum();
    let bytes: u64 = stats.tenants.iter().map(|tenant| tenant.bytes).sum();
    let erased = stats.erased.len() as u64;
    let is_purged = |state: ErasureState| state == ErasureState::Purged;
    let purged = stats
        .erased
        .iter()
        .filter(|erased| is_purged(erased.state))
        .count() as u64;
    let totals = [
        ("tenants", tenants),
        ("files", files),
        ("bytes", bytes),
        ("disk_bytes", stats.backend.disk_bytes),
        ("commits", stats.commits),
        ("pending_removals", stats.pending_removals),
        ("erased_tenants", erased),
        ("erased_and_purged", purged),
    ];
    let times = [
        ("no_access_before", stats.oldest_access.map(utc)),
        ("no_expiry_before", stats.due_after.map(utc)),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut json = serde_json::Map::new();
    let row = |name: &str, value: String| vec![name.replace('_', " "), value];
    for (name, number) in totals {
        rows.push(row(name, number.to_string()));
        json.insert(name.to_owned(), number.into());
    }
    for (name, time) in times {
        rows.push(row(name, time.clone().unwrap_or("-".to_owned())));
        json.insert(name.to_owned(), time.into());
    }
    rows.push(row("clock", clock_word(stats.clock).to_owned()));
    json.insert("clock".to_owned(), clock_json(stats.clock));
    Out::new(args.json).answer(&table(&rows, &[1]), &Value::Object(json))
}

pub fn list_tenants(args: &LookArgs) -> Result<(), Stop> {
    let stats = stats(args)?;
    let mut rows = vec![
        ["TENANT", "FILES", "BYTES", "CREATED", "STATE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut json = Vec::new();
    for tenant in stats.tenants {
        let created = utc(tenant.created);
        json.push(json!({
            "tenant": tenant.name,
            "files": tenant.files,
            "bytes": tenant.bytes,
            "created": created,
            "state": "live",
        }));
        rows.push(vec![
            tenant.name,
            tenant.files.to_string(),
            tenant.bytes.to_string(),
            created,
            "live".to_owned(),
        ]);
    }
    for erased in stats.erased {
        let state = erasure_state_word(erased.state);
        json.push(json!({
            "tenant": Value::Null,
            "tenant_id": erased.tenant_id,
            "state": state,
            "erased": utc(erased.started),
            "deleted": erased.deleted.map(utc),
            "purged": erased.purged.map(utc),
        }));
        let none = || "-".to_owned();
        let state = format!("erased, {state}");
        rows.push(vec![erased.tenant_id, none(), none(), none(), state]);
    }
    Out::new(args.json).answer(&table(&rows, &[1, 2]), &Value::Array(json))
}

fn stats(args: &LookArgs) -> Result<StoreStats, Stop> {
    let vault = open::to_look(args)?;
    let stats = vault.stats()?;
    vault.close()?;
    Ok(stats)
}
