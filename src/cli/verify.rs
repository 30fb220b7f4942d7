//! `verify`: checks everything that is stored and lists what is damaged.

use serde_json::{Value, json};
use strongroom::{Depth, VerifyReport};

use super::args::VerifyArgs;
use super::audit::parse_checkpoint;
use super::failure::{Exit, Failure, Stop};
use super::open;
use super::output::{Out, table};

pub fn run(args: &VerifyArgs) -> Result<(), Stop> {
    let checkpoint = args.checkpoint.as_deref();
    let checkpoint = checkpoint.map(parse_checkpoint).transpose()?;
    let vault = if args.accept_loss {
        open::accepting_loss(&args.store)?
    } else {
        open::vault(&args.store, args.read_only)?
    };
    let depth = if args.quick {
        Depth::Quick
    } else {
        Depth::Full
    };
    let report = vault.verify(depth)?;
    // A log that cannot be read shows no checkpoint; why is among the problems.
    let is_there = checkpoint.map(|checkpoint| vault.has_checkpoint(&checkpoint).unwrap_or(false));
    let closed = vault.close();
    let mut text = text(&report, depth);
    let mut json = json(&report, depth);
    if let (Some(is_there), Some(fields)) = (is_there, json.as_object_mut()) {
        let word = if is_there { "there" } else { "MISSING" };
        text.insert_str(0, &format!("the checkpoint's entry is {word}\n\n"));
        fields.insert("checkpoint".to_owned(), is_there.into());
    }
    Out::new(args.json).answer(&text, &json)?;
    if is_there == Some(false) {
        return Err(Failure::new(
            Exit::Integrity,
            format!(
                "verify the store: the checkpoint's entry is not in it; other problems: {}",
                report.problems.len()
            ),
            "The store was put back to a time before the checkpoint, or is another one: compare the ids, and look who replaced it.",
        )
        .into());
    }
    let problems = report.problems.len();
    if problems > 0 {
        let s = if problems == 1 { "" } else { "s" };
        return Err(Failure::new(
            Exit::Integrity,
            format!("verify the store: {problems} problem{s}"),
            "Keep the directory as it is, and restore what is listed from a copy. What is not listed is intact.",
        )
        .into());
    }
    Ok(closed?)
}

fn text(report: &VerifyReport, depth: Depth) -> String {
    let mut rows = vec![
        row("tenants", report.tenants),
        row("directories", report.directories),
        row("files", report.files),
    ];
    if depth == Depth::Full {
        rows.push(row("bytes", report.bytes));
    }
    rows.push(row("problems", report.problems.len() as u64));
    let mut text = table(&rows, &[1]);
    if report.problems.is_empty() {
        return text;
    }
    let mut rows = vec![["TENANT", "PATH", "PROBLEM"].map(str::to_owned).to_vec()];
    for problem in &report.problems {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        rows.push(vec![
            known(&problem.tenant),
            known(&problem.path),
            problem.what.clone(),
        ]);
    }
    text.push('\n');
    text.push_str(&table(&rows, &[]));
    text
}

fn row(name: &str, number: u64) -> Vec<String> {
    vec![name.to_owned(), number.to_string()]
}

fn json(report: &VerifyReport, depth: Depth) -> Value {
    let problems: Vec<Value> = report
        .problems
        .iter()
        .map(|problem| {
            json!({ "tenant": problem.tenant, "path": problem.path, "what": problem.what })
        })
        .collect();
    json!({
        "quick": depth == Depth::Quick,
        "tenants": report.tenants,
        "directories": report.directories,
        "files": report.files,
        "bytes": report.bytes,
        "problems": problems,
    })
}
