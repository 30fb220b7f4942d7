//! `stats` and `tenant list`: totals over the store and its tenants.

use serde_json::{Value, json};
use strongroom::StoreStats;

use super::args::LookArgs;
use super::failure::Stop;
use super::open;
use super::output::{Out, table, utc};

pub fn run(args: &LookArgs) -> Result<(), Stop> {
    let stats = stats(args)?;
    let tenants = stats.tenants.len() as u64;
    let files: u64 = stats.tenants.iter().map(|tenant| tenant.files).sum();
    let bytes: u64 = stats.tenants.iter().map(|tenant| tenant.bytes).sum();
    let totals = [
        ("tenants", tenants),
        ("files", files),
        ("bytes", bytes),
        ("disk_bytes", stats.backend.disk_bytes),
        ("commits", stats.commits),
        ("pending_removals", stats.pending_removals),
    ];
    let rows = totals.map(|(name, number)| vec![name.replace('_', " "), number.to_string()]);
    let json: serde_json::Map<String, Value> = totals
        .into_iter()
        .map(|(name, number)| (name.to_owned(), number.into()))
        .collect();
    Out::new(args.json).answer(&table(&rows, &[1]), &Value::Object(json))
}

pub fn list_tenants(args: &LookArgs) -> Result<(), Stop> {
    let stats = stats(args)?;
    let mut rows = vec![
        ["TENANT", "FILES", "BYTES", "CREATED"]
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
        }));
        rows.push(vec![
            tenant.name,
            tenant.files.to_string(),
            tenant.bytes.to_string(),
            created,
        ]);
    }
    Out::new(args.json).answer(&table(&rows, &[1, 2]), &Value::Array(json))
}

fn stats(args: &LookArgs) -> Result<StoreStats, Stop> {
    let vault = open::to_look(args)?;
    let stats = vault.stats()?;
    vault.close()?;
    Ok(stats)
}
