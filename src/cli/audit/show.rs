//! `audit show`: the log as an auditor reads it.

use serde_json::{Value, json};
use strongroom::AuditRecord;
use strongroom::audit::Outcome;
use strongroom::clock::UnixMillis;

use super::args::AuditShowArgs;
use super::moment::{self, Day};
use super::printable;
use crate::cli::failure::Stop;
use crate::cli::open;
use crate::cli::output::{Out, table};
use crate::cli::time::utc;

const HEAD: [&str; 9] = [
    "TIME", "TENANT", "ACTOR", "COMMAND", "PATH", "OUTCOME", "RULES", "BYTES", "DETAIL",
];
const BYTES_COLUMN: usize = 7;

pub fn run(args: &AuditShowArgs) -> Result<(), Stop> {
    let filter = Filter::new(args)?;
    let vault = open::to_look(&args.look)?;
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    let mut entries = Vec::new();
    let (tenant, store_events) = (args.chain.tenant.as_deref(), args.chain.store_events);
    let report = super::read(&vault, tenant, store_events, |tenant, record| {
        if filter.fits(record) {
            if args.look.json {
                entries.push(as_json(tenant, record));
            } else {
                rows.push(row(tenant, record));
            }
        }
    })?;
    let closed = vault.close();
    Out::new(args.look.json).answer(
        &format!(
            "{}{}",
            table(&rows, &[BYTES_COLUMN]),
            super::problems(&report)
        ),
        &Value::Array(entries),
    )?;
    super::whole(&report, "show the whole audit log")?;
    Ok(closed?)
}

/// What an entry must be to be shown.
struct Filter<'a> {
    since: Option<UnixMillis>,
    until: Option<UnixMillis>,
    path: Option<&'a str>,
    args: &'a AuditShowArgs,
}

impl<'a> Filter<'a> {
    fn new(args: &'a AuditShowArgs) -> Result<Self, Stop> {
        let moment = |option, text: &Option<String>, day| {
            let text = text.as_deref();
            text.map(|text| moment::parse(option, text, day))
                .transpose()
        };
        Ok(Self {
            since: moment("--since", &args.since, Day::Begin)?,
            until: moment("--until", &args.until, Day::End)?,
            path: args.path.as_deref().map(|path| path.trim_end_matches('/')),
            args,
        })
    }

    fn fits(&self, record: &AuditRecord) -> bool {
        let entry = &record.entry;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        self.since.is_none_or(|since| entry.time >= since)
            && self.until.is_none_or(|until| entry.time < until)
            && is(&self.args.actor, entry.actor.as_deref())
            && is(&self.args.session, entry.session.as_deref())
            && is(&self.args.command, Some(&entry.command))
            && self.path.is_none_or(|wanted| {
                let paths = [&record.path, &record.to];
                paths.into_iter().flatten().any(|path| covers(wanted, path))
            })
    }
}

/// Whether `path` is `wanted` or lies below it.
fn covers(wanted: &str, path: &str) -> bool {
    path.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn row(tenant: Option<&str>, record: &AuditRecord) -> Vec<String> {
    let entry = &record.entry;
    let known = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), printable);
    let path = match (&record.path, &record.to) {
        (Some(path), Some(to)) => format!("{} -> {}", printable(path), printable(to)),
        (path, _) => known(path.as_deref()),
    };
    let rules: Vec<String> = entry
        .rules
        .iter()
        .map(|(rule, count)| format!("{} {count}", printable(rule)))
        .collect();
    vec![
        utc(entry.time),
        known(tenant),
        known(entry.actor.as_deref()),
        printable(&entry.command),
        path,
        outcome(entry.outcome).to_owned(),
        known((!rules.is_empty()).then(|| rules.join(", ")).as_deref()),
        entry.bytes.to_string(),
        known(entry.detail.as_deref()),
    ]
}

fn as_json(tenant: Option<&str>, record: &AuditRecord) -> Value {
    let entry = &record.entry;
    json!({
        "tenant": tenant,
        "seq": entry.seq,
        "time": utc(entry.time),
        "actor": entry.actor,
        "session": entry.session,
        "command": entry.command,
        "path": record.path,
        "to": record.to,
        "outcome": outcome(entry.outcome),
        "rules": entry.rules,
        "bytes": entry.bytes,
        "detail": entry.detail,
    })
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Refused => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_path_covers_itself_and_what_lies_below() {
        assert!(covers("/memories", "/memories"));
        assert!(covers("/memories/a", "/memories/a/b"));
        assert!(!covers("/memories/a", "/memories/ab"));
        assert!(!covers("/memories/a/b", "/memories/a"));
    }
}
