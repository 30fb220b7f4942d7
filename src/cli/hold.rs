//! `hold add`, `remove` and `list`: what must be kept, whatever the policy says.

use serde_json::{Value, json};
use strongroom::path::{Guard, MemoryPath};
use strongroom::wire::Reply;
use strongroom::{HoldInfo, Tenant};

use super::failure::{Exit, Failure, Stop};
use super::keep_args::{HoldAddArgs, HoldListArgs, HoldRemoveArgs};
use super::output::{Out, table};
use super::{open, tenants, time};

pub fn add(args: &HoldAddArgs) -> Result<(), Stop> {
    let path = path(&args.path)?;
    check_reason(&args.reason)?;
    let vault = open::to_change(&args.look)?;
    let until = match &args.until {
        Some(text) => Some(time::until(text, vault.now(), "--until")?),
        None => None,
    };
    let tenant = tenants::existing(&vault, &args.tenant)?;
    accepted(
        "add the hold",
        tenant.add_hold(path.as_str(), &args.reason, until)?,
    )?;
    vault.close()?;
    let (tenant, path) = (&args.tenant, path.as_str());
    let end = until.map_or("until it is removed".to_owned(), |until| {
        format!("until {}", time::utc(until))
    });
    Out::new(args.look.json).answer(
        &format!("Held for {tenant}: {path}, {end}\n"),
        &json!({ "tenant": tenant, "path": path, "until": until.map(time::utc) }),
    )
}

pub fn remove(args: &HoldRemoveArgs) -> Result<(), Stop> {
    let path = path(&args.path)?;
    let vault = open::to_change(&args.look)?;
    let tenant = tenants::existing(&vault, &args.tenant)?;
    accepted("remove the hold", tenant.remove_hold(path.as_str())?)?;
    vault.close()?;
    let (tenant, path) = (&args.tenant, path.as_str());
    Out::new(args.look.json).answer(
        &format!("No longer held for {tenant}: {path}\nThe policy counts for it again.\n"),
        &json!({ "tenant": tenant, "removed": path }),
    )
}

pub fn list(args: &HoldListArgs) -> Result<(), Stop> {
    let vault = open::to_look(&args.look)?;
    let mut held = Vec::new();
    let mut damaged = Vec::new();
    if args.all_tenants {
        let stats = vault.stats()?;
        damaged = stats.unreadable;
        for tenant in stats.tenants {
            match vault.tenant(&tenant.name).and_then(|handle| handle.holds()) {
                Ok(holds) => held.push((tenant.name, holds)),
                Err(error) if tenants::is_damage(&error) => damaged.push(tenant.name),
                Err(error) => return Err(error.into()),
            }
        }
    } else {
        let tenant: Tenant = tenants::existing(&vault, &args.tenant)?;
        held.push((args.tenant.clone(), tenant.holds()?));
    }
    vault.close()?;
    Out::new(args.look.json).answer(&text(&held), &as_json(&held))?;
    if damaged.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Integrity,
        format!("list all holds: damaged: {}", damaged.join(", ")),
        "Keep the directory as it is, and run `strongroom verify --read-only`. The others are listed.",
    )
    .into())
}

/// Only the guard binds an operator; names may have come under an earlier policy.
fn path(raw: &str) -> Result<MemoryPath, Stop> {
    Guard::new()
        .portable_names(false)
        .check(raw)
        .map_err(|error| {
            Failure::new(
                Exit::Refused,
                format!("use the path: {error}"),
                "Write a path below /memories as a listing shows it.",
            )
            .into()
        })
}

/// A line of a table must stay one, and a terminal must not obey it.
fn check_reason(reason: &str) -> Result<(), Stop> {
    if !reason.trim().is_empty() && !reason.contains(char::is_control) {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        "add the hold: its reason is empty, or holds a line break or another control character",
        "Write in one line after --reason why this is kept.",
    )
    .into())
}

/// A refusal is a failure here. Its text names what is missing, or what is against it.
fn accepted(what: &str, reply: Reply) -> Result<(), Stop> {
    if !reply.is_error {
        return Ok(());
    }
    let text = reply.as_text().unwrap_or_default();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let is_missing = ["The path ", "There is no hold "]
        .iter()
        .any(|start| text.starts_with(start));
    let (exit, next) = if is_missing {
        (
            Exit::NotFound,
            "Check the path and --tenant; `strongroom hold list` shows the holds.",
        )
    } else {
        (Exit::Refused, "Nothing changed.")
    };
    Err(Failure::new(exit, format!("{what}: {text}"), next).into())
}

fn text(held: &[(String, Vec<HoldInfo>)]) -> String {
    let head = ["TENANT", "PATH", "SINCE", "UNTIL", "REASON"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (tenant, holds) in held {
        rows.extend(holds.iter().map(|hold| {
            vec![
                tenant.clone(),
                hold.path.clone(),
                time::utc(hold.created),
                hold.until.map_or("-".to_owned(), time::utc),
                // Whoever set it through the library may have written anything.
                hold.reason.replace(char::is_control, " "),
            ]
        }));
    }
    table(&rows, &[])
}

fn as_json(held: &[(String, Vec<HoldInfo>)]) -> Value {
    let mut all = Vec::new();
    for (tenant, holds) in held {
        all.extend(holds.iter().map(|hold| {
            json!({
                "tenant": tenant,
                "path": hold.path,
                "since": time::utc(hold.created),
                "until": hold.until.map(time::utc),
                "reason": hold.reason,
            })
        }));
    }
    Value::Array(all)
}
