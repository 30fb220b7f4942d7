//! `audit verify`: checks every link, and prints where each chain ends.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strongroom::audit::entry_hash;

use super::args::AuditVerifyArgs;
use super::printable;
use crate::cli::failure::Stop;
use crate::cli::open;
use crate::cli::output::{Out, table};

/// Where one chain begins and ends.
struct Ends {
    first: u64,
    last: u64,
    json: String,
}

pub fn run(args: &AuditVerifyArgs) -> Result<(), Stop> {
    let vault = open::to_look(&args.look)?;
    let mut chains: BTreeMap<Option<String>, Ends> = BTreeMap::new();
    let report = super::read(&vault, args.tenant.as_deref(), false, |tenant, record| {
        let seq = record.entry.seq;
        let ends = chains.entry(tenant.map(str::to_owned)).or_insert(Ends {
            first: seq,
            last: seq,
            json: String::new(),
        });
        ends.last = seq;
        ends.json.clone_from(&record.json);
    })?;
    let closed = vault.close();
    // How far a damaged chain could be read says nothing.
    for (whose, _) in &report.problems {
        chains.remove(&Some(whose.clone()));
        if whose == "the store" {
            chains.remove(&None);
        }
    }
    let mut rows = vec![
        ["TENANT", "FIRST", "LAST", "HASH"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut intact = Vec::new();
    for (tenant, ends) in &chains {
        let hash = crate::hex::encode(&entry_hash(ends.json.as_bytes()));
        intact.push(json!({
            "tenant": tenant, "first": ends.first, "last": ends.last, "hash": hash,
        }));
        rows.push(vec![
            tenant.as_deref().map_or("-".to_owned(), printable),
            ends.first.to_string(),
            ends.last.to_string(),
            hash,
        ]);
    }
    let text = format!("{}{}", table(&rows, &[1, 2]), super::problems(&report));
    let json = json!({
        "chains": Value::Array(intact),
        "entries": report.entries,
        "problems": super::problems_json(&report),
    });
    Out::new(args.look.json).answer(&text, &json)?;
    super::whole(&report, "verify the audit log")?;
    Ok(closed?)
}
