//! `expire`: takes away what the policy's `[retention]` says is expired.

use serde_json::{Value, json};
use strongroom::clock::UnixMillis;
use strongroom::{ClockState, Error, ExpireReport, StoreError, Swept, Vault};

use super::failure::{Exit, Failure, Stop};
use super::keep_args::ExpireArgs;
use super::open::{self, Opened};
use super::output::{Out, say, showable, table};
use super::progress::Progress;
use super::{tenants, time};

pub fn run(args: &ExpireArgs) -> Result<(), Stop> {
    let mut vault = Some(open(args)?);
    let mut report = Report::new();
    let ended = expire_all(args, &mut vault, &mut report);
    let closed = vault.map_or(Ok(()), Opened::close);
    if ended.is_ok() || !report.done.is_empty() {
        let out = Out::new(args.look.json);
        out.answer(&report.text(args.dry_run), &report.json(args.dry_run))?;
    }
    ended?;
    if let Some(failure) = report.failure() {
        return Err(failure.into());
    }
    Ok(closed?)
}

/// What went, and which tenants could not be looked at.
struct Report {
    clock: ClockState,
    /// The time that was confirmed, if it was asked for and needed.
    confirmed: Option<UnixMillis>,
    done: Vec<Done>,
    next: Option<UnixMillis>,
    /// Audit entries that went because of their age.
    pruned: u64,
    /// Names, or file tags where the name cannot be read, and the error.
    damaged: Vec<(String, String)>,
    /// Names of tenants that were left out, since the process that holds the store takes no
    /// more writes once it has seen damage.
    not_reached: Vec<String>,
}

struct Done {
    tenant: String,
    swept: Swept,
    /// With markers in place of what looks like a secret.
    paths: Vec<String>,
}

/// The report says all about the clock, so no warning comes before it.
fn open(args: &ExpireArgs) -> Result<Opened, Stop> {
    open::without_warning(&args.look.store, args.dry_run)
}

/// Takes the vault out of its place while it is opened again.
fn expire_all(
    args: &ExpireArgs,
    vault: &mut Option<Opened>,
    report: &mut Report,
) -> Result<(), Stop> {
    let Some(first) = vault.as_ref() else {
        return Ok(());
    };
    if args.confirm_clock {
        report.confirmed = confirm_clock(first)?;
    }
    if let Some(name) = &args.tenant {
        match tenants::existing(first, name) {
            Err(tenants::Missing::Damaged(error)) => {
                report.damaged.push((name.clone(), error.to_string()));
                return Ok(());
            }
            found => drop(found?),
        }
    }
    let mut is_stopped = false;
    let mut waiting = vec![args.tenant.clone()];
    while let Some(tenant) = waiting.pop() {
        if is_stopped && vault.as_ref().is_some_and(Opened::is_shared) {
            // The store is another process's to open again.
            report.not_reached.extend(tenant);
            continue;
        }
        if is_stopped {
            // Where damage was seen the store takes no more writes; what is intact is swept
            // all the same.
            vault.take().map_or(Ok(()), Opened::close)?;
            *vault = Some(open(args)?);
        }
        let Some(vault) = vault.as_ref() else { break };
        let damaged_before = report.damaged.len();
        let not_reached = expire(vault, tenant.as_deref(), args.dry_run, report)?;
        is_stopped = report.damaged.len() > damaged_before;
        waiting.extend(not_reached.into_iter().rev().map(Some));
    }
    report.done.sort_by(|a, b| a.tenant.cmp(&b.tenant));
    report.not_reached.sort();
    Ok(())
}

fn confirm_clock(vault: &Vault) -> Result<Option<UnixMillis>, Stop> {
    if vault.clock() == ClockState::Trusted {
        say("the clock was believed already; nothing had to be confirmed");
        return Ok(None);
    }
    vault.confirm_clock()?;
    Ok(Some(vault.now()))
}

/// Sweeps one tenant or all. Returns those that were not reached because another is damaged.
fn expire(
    vault: &Vault,
    tenant: Option<&str>,
    dry_run: bool,
    report: &mut Report,
) -> Result<Vec<String>, Error> {
    let mut progress = Progress::new("expire", "tenants");
    let done = vault.expire(tenant, dry_run, |done, all| progress.show(done, all));
    progress.clear();
    match (done, tenant) {
        (Ok(mut done), tenant) => {
            if tenant.is_some() {
                // The handle is new, and yet stopped: opening it again would not help.
                let stopped = std::mem::take(&mut done.not_reached).into_iter();
                let why = StoreError::WritesStopped.to_string();
                done.failed.extend(stopped.map(|name| (name, why.clone())));
            }
            report.add(vault, done)
        }
        (Err(error), Some(name)) if tenants::is_damage(&error) => {
            report.damaged.push((name.to_owned(), error.to_string()));
            Ok(Vec::new())
        }
        (Err(error), _) => Err(error),
    }
}

impl Report {
    fn new() -> Self {
        Self {
            clock: ClockState::Trusted,
            confirmed: None,
            done: Vec::new(),
            next: None,
            pruned: 0,
            damaged: Vec::new(),
            not_reached: Vec::new(),
        }
    }

    fn add(&mut self, vault: &Vault, done: ExpireReport) -> Result<Vec<String>, Error> {
        let engine = vault.policy().redaction.engine()?;
        for (tenant, swept) in done.tenants {
            let paths = swept.paths.iter().map(|path| showable(&engine, path));
            let paths = paths.collect();
            self.done.push(Done {
                tenant,
                swept,
                paths,
            });
        }
        self.clock = done.clock;
        self.next = match (self.next, done.next_due) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.pruned += done.pruned;
        self.damaged.extend(done.failed);
        Ok(done.not_reached)
    }

    fn text(&self, dry_run: bool) -> String {
        if self.clock != ClockState::Trusted {
            return String::new();
        }
        let mut text = String::new();
        if let Some(now) = self.confirmed {
            let now = time::utc(now);
            text.push_str(&format!(
                "The clock is believed from here on: it is {now}.\n"
            ));
        }
        if self.done.is_empty() {
            text.push_str("Nothing is expired.\n");
        } else {
            text.push_str(&self.table());
        }
        if dry_run && !self.done.is_empty() {
            let mut rows = vec![["TENANT", "PATH"].map(str::to_owned).to_vec()];
            for done in &self.done {
                let paths = done.paths.iter();
                rows.extend(paths.map(|path| vec![done.tenant.clone(), path.clone()]));
            }
            text.push_str(&format!("\n{}\n", table(&rows, &[])));
        }
        if !self.damaged.is_empty() {
            let mut rows = vec![["TENANT", "DAMAGE"].map(str::to_owned).to_vec()];
            let damaged = self.damaged.iter();
            rows.extend(damaged.map(|(tenant, error)| vec![tenant.clone(), error.clone()]));
            text.push_str(&format!("\n{}\n", table(&rows, &[])));
        }
        if !self.not_reached.is_empty() {
            let names = self.not_reached.join(", ");
            text.push_str(&format!("Not reached: {names}\n"));
        }
        if self.pruned > 0 {
            let pruned = self.pruned;
            text.push_str(&format!(
                "Audit entries older than the policy keeps: {pruned}\n"
            ));
        }
        let next = self.next.map_or("none".to_owned(), time::utc);
        text.push_str(&format!("Next expiry: {next}\n"));
        if dry_run {
            text.push_str("A dry run: nothing changed.\n");
        }
        text
    }

    fn table(&self) -> String {
        let mut rows = vec![
            ["TENANT", "FILES", "BYTES", "DIRECTORIES"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for done in &self.done {
            let swept = &done.swept;
            let numbers = [swept.files, swept.bytes, swept.directories];
            let numbers = numbers.map(|number| number.to_string());
            rows.push(
                std::iter::once(done.tenant.clone())
                    .chain(numbers)
                    .collect(),
            );
        }
        table(&rows, &[1, 2, 3])
    }

    fn json(&self, dry_run: bool) -> Value {
        let tenant = |done: &Done| {
            json!({
                "tenant": done.tenant,
                "files": done.swept.files,
                "bytes": done.swept.bytes,
                "directories": done.swept.directories,
                "paths": done.paths,
            })
        };
        let damaged =
            |(tenant, error): &(String, String)| json!({ "tenant": tenant, "error": error });
        json!({
            "dry_run": dry_run,
            "clock": time::clock_json(self.clock),
            "confirmed": self.confirmed.map(time::utc),
            "tenants": self.done.iter().map(tenant).collect::<Vec<_>>(),
            "next": self.next.map(time::utc),
            "audit_entries": self.pruned,
            "damaged": self.damaged.iter().map(damaged).collect::<Vec<_>>(),
            "not_reached": self.not_reached,
        })
    }

    fn failure(&self) -> Option<Failure> {
        if let Some(disbelief) = time::disbelief(self.clock) {
            return Some(Failure::new(
                Exit::Other,
                format!("expire anything: {disbelief}"),
                "Nothing was deleted, and nothing expires meanwhile. If the clock is wrong, set it right. If it is right, run `strongroom expire --confirm-clock`.",
            ));
        }
        tenants::unfinished("sweep", self.damaged.len(), self.not_reached.len())
    }
}
