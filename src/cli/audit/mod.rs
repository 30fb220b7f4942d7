//! `audit` and `checkpoint`: reading, checking and exporting the audit log.

use strongroom::{AuditRecord, AuditReport, Checkpoint, Vault};

use super::failure::{Exit, Failure, Stop};
use super::output::table;

pub mod args;
mod check;
mod checkpoint;
mod export;
mod moment;
mod show;
mod verify;

use args::AuditCommand;

pub use checkpoint::run as checkpoint;

pub fn run(command: &AuditCommand) -> Result<(), Stop> {
    match command {
        AuditCommand::Show(args) => show::run(args),
        AuditCommand::Verify(args) => verify::run(args),
        AuditCommand::Export(args) => export::run(args),
        AuditCommand::Check(args) => check::run(args),
    }
}

/// Reads the chains that are asked for: one tenant's, the store's own, or all of them.
fn read(
    vault: &Vault,
    tenant: Option<&str>,
    store_events: bool,
    mut each: impl FnMut(Option<&str>, &AuditRecord),
) -> Result<AuditReport, Stop> {
    let report = if store_events {
        vault.audit_store_events(|record| each(None, record))?
    } else {
        vault.audit(tenant, each)?
    };
    if let Some(name) = tenant
        && report.entries == 0
        && report.problems.is_empty()
        && !vault
            .stats()?
            .tenants
            .iter()
            .any(|known| known.name == name)
    {
        return Err(Failure::new(
            Exit::NotFound,
            format!("find the tenant {name}: it has no memory in this store"),
            "Run `strongroom tenant list` for the names.",
        )
        .into());
    }
    Ok(report)
}

/// Fails if a chain is damaged.
fn whole(report: &AuditReport, what: &str) -> Result<(), Stop> {
    if report.problems.is_empty() {
        return Ok(());
    }
    let whose: Vec<String> = report
        .problems
        .iter()
        .map(|(whose, _)| printable(whose))
        .collect();
    Err(Failure::new(
        Exit::Integrity,
        format!("{what}: damaged: {}", whose.join(", ")),
        "Keep the directory as it is, and run `strongroom verify --read-only`. Chains that are not listed are intact.",
    )
    .into())
}

/// What is wrong with which chain, as a table; nothing if nothing is.
fn problems(report: &AuditReport) -> String {
    if report.problems.is_empty() {
        return String::new();
    }
    let mut rows = vec![["DAMAGED", "PROBLEM"].map(str::to_owned).to_vec()];
    for (whose, what) in &report.problems {
        rows.push(vec![printable(whose), what.clone()]);
    }
    format!("\n{}", table(&rows, &[]))
}

fn problems_json(report: &AuditReport) -> serde_json::Value {
    let problems = report.problems.iter();
    problems
        .map(|(chain, what)| serde_json::json!({ "chain": chain, "what": what }))
        .collect()
}

/// The checkpoint that a line after `--checkpoint` is.
pub fn parse_checkpoint(line: &str) -> Result<Checkpoint, Stop> {
    Checkpoint::parse(line).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "read --checkpoint: this is no checkpoint",
            "Write the whole line that `strongroom checkpoint` printed, in quotes.",
        )
        .into()
    })
}

/// What an embedder wrote, so that a table stays a table and a terminal obeys nothing in it.
fn printable(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '"' | '\'' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_terminal_sees_no_character_that_it_would_obey() {
        assert_eq!(printable("Dr. Müller \"x\""), "Dr. Müller \"x\"");
        assert_eq!(
            printable("a\n\u{1b}[2J\u{202e}b\\"),
            "a\\n\\u{1b}[2J\\u{202e}b\\\\"
        );
    }
}
