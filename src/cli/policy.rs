//! `policy show`, `check` and `set`.

use serde_json::{Value, json};
use strongroom::Error;
use strongroom::policy::{self, Change, Policy};

use super::examples;
use super::failure::{Exit, Failure, Stop};
use super::open;
use super::output::Out;
use super::policy_args::{PolicyCheckArgs, PolicySetArgs, PolicyShowArgs};

pub fn show(args: &PolicyShowArgs) -> Result<(), Stop> {
    let other = args.diff.as_deref().map(load).transpose()?;
    let vault = open::to_look(&args.look)?;
    let policy = vault.policy();
    vault.close()?;
    let out = Out::new(args.look.json);
    match other {
        Some(other) => {
            let changes = policy.diff(&other);
            out.answer(&lines(&changes), &changes_json(&changes))
        }
        None => {
            let text = policy.to_toml();
            out.answer(&text, &as_json(&text)?)
        }
    }
}

pub fn check(args: &PolicyCheckArgs) -> Result<(), Stop> {
    let out = Out::new(args.json);
    let error = match policy::load_named_or_path(&args.policy) {
        Ok(policy) => return check_rules(&policy, out),
        Err(error) => error,
    };
    let at = error.position();
    let refusal = json!({
        "ok": false,
        "error": error.to_string(),
        "file": at.map(|at| &at.file),
        "line": at.map(|at| at.line),
        "column": at.map(|at| at.column),
    });
    out.answer("", &refusal)?;
    Err(Error::from(error).into())
}

/// Runs the examples of all rules that the policy puts to use.
fn check_rules(policy: &Policy, out: Out) -> Result<(), Stop> {
    let mut redaction = policy.redaction.clone();
    // What an operator allows may be the very value of an example (a card number for tests),
    // which says nothing against the rule.
    redaction.allow.clear();
    let engine = redaction.engine().map_err(Error::from)?;
    let fallen: Vec<String> = engine
        .check_examples()
        .iter()
        .map(ToString::to_string)
        .collect();
    let (rules, examples) = (engine.rules_len(), examples::count(policy)?);
    let text = if fallen.is_empty() {
        let s = |count| if count == 1 { "" } else { "s" };
        format!(
            "ok: {rules} rule{}, {examples} example{}\n",
            s(rules),
            s(examples)
        )
    } else {
        fallen.iter().map(|fallen| format!("{fallen}\n")).collect()
    };
    let json = json!({
        "ok": fallen.is_empty(),
        "rules": rules,
        "examples": examples,
        "fallen": fallen,
    });
    out.answer(&text, &json)?;
    match fallen.len() {
        0 => Ok(()),
        many => Err(Failure::new(
            Exit::Refused,
            format!("check the policy: {many} of {rules} rules fail an example"),
            "Report it with the list: the examples are this build's own.",
        )
        .into()),
    }
}

pub fn set(args: &PolicySetArgs) -> Result<(), Stop> {
    let new = load(&args.policy)?;
    let vault = if args.dry_run {
        open::to_look(&args.look)?
    } else {
        open::to_change(&args.look)?
    };
    let changes = vault.policy().diff(&new);
    let is_set = !args.dry_run && !changes.is_empty();
    if is_set {
        vault.set_policy(&new)?;
    }
    vault.close()?;
    let last = match (changes.is_empty(), args.dry_run) {
        (true, _) => "This policy is in force already; nothing changed.\n",
        (false, true) => "A dry run: nothing changed.\n",
        (false, false) => "This policy is in force now.\n",
    };
    Out::new(args.look.json).answer(
        &format!("{}{last}", lines(&changes)),
        &json!({ "set": is_set, "changes": changes_json(&changes) }),
    )
}

fn load(name_or_path: &str) -> Result<Policy, Stop> {
    Ok(policy::load_named_or_path(name_or_path).map_err(Error::from)?)
}

fn lines(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{change}\n")).collect()
}

fn changes_json(changes: &[Change]) -> Value {
    let change = |change: &Change| json!({ "key": change.key, "before": change.before, "after": change.after });
    changes.iter().map(change).collect()
}

/// The canonical text as JSON: the same keys, tables as objects.
fn as_json(text: &str) -> Result<Value, Stop> {
    toml::from_str(text).map_err(|_| {
        Failure::new(
            Exit::Other,
            "show the policy as JSON",
            "Show it without --json.",
        )
        .into()
    })
}
