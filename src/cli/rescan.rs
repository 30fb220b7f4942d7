//! `rescan`: brings stored files under the redaction of today's policy and rules.

use serde_json::{Value, json};
use strongroom::{Error, RescanReport, StoreError, Vault};

use super::failure::{Failure, Stop};
use super::keep_args::RescanArgs;
use super::open::{self, Opened};
use super::output::{Out, say, showable, table};
use super::progress::Progress;
use super::tenants;

pub fn run(args: &RescanArgs) -> Result<(), Stop> {
    let mut vault = Some(open(args)?);
    let mut report = Report::default();
    let ended = rescan_all(args, &mut vault, &mut report);
    let closed = vault.map_or(Ok(()), Opened::close);
    if ended.is_ok() || !report.done.is_empty() {
        let out = Out::new(args.look.json);
        out.answer(&report.text(args.dry_run), &report.json(args.dry_run))?;
    }
    ended?;
    if let Some(failure) = report.failure() {
        return Err(failure.into());
    }
    report.remark();
    Ok(closed?)
}

/// What was done, and for which tenants it could not be.
#[derive(Default)]
struct Report {
    done: Vec<(String, Shown)>,
    damaged: Vec<Damaged>,
    /// Names of tenants that were left out, since the process that holds the store takes no
    /// more writes once it has seen damage.
    not_reached: Vec<String>,
}

/// A tenant's report in which no path holds a secret.
struct Shown {
    report: RescanReport,
    skipped: Vec<String>,
    names: Vec<String>,
}

struct Damaged {
    /// The tenant's name, or its file tag where the name cannot be read.
    tenant: String,
    error: String,
}

fn open(args: &RescanArgs) -> Result<Opened, Stop> {
    if args.dry_run {
        open::to_look(&args.look)
    } else {
        open::to_change(&args.look)
    }
}

/// Takes the vault out of its place while it is opened again.
fn rescan_all(
    args: &RescanArgs,
    vault: &mut Option<Opened>,
    report: &mut Report,
) -> Result<(), Stop> {
    let names = match vault.as_ref() {
        Some(vault) => names(args, vault, report)?,
        None => return Ok(()),
    };
    let mut is_stopped = !report.damaged.is_empty();
    for name in names {
        // Another process's store is not this one's to open again.
        let is_shared = vault.as_ref().is_some_and(Opened::is_shared);
        if is_stopped && !is_shared {
            // Where damage was seen the store takes no more writes; what is intact is
            // brought under the policy all the same.
            vault.take().map_or(Ok(()), Opened::close)?;
            *vault = Some(open(args)?);
        }
        let Some(vault) = vault.as_ref() else { break };
        match rescan(args, vault, &name) {
            Ok(shown) => {
                report.done.push((name, shown));
                is_stopped = false;
            }
            Err(Error::Store(StoreError::WritesStopped)) if is_shared => {
                report.not_reached.push(name);
            }
            Err(error) if tenants::is_damage(&error) => {
                report.damaged.push(Damaged {
                    tenant: name,
                    error: error.to_string(),
                });
                is_stopped = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whose memory is to be scanned. Tenants that cannot be opened are noted as damaged.
fn names(args: &RescanArgs, vault: &Vault, report: &mut Report) -> Result<Vec<String>, Stop> {
    if args.all_tenants {
        let stats = vault.stats()?;
        let names = stats.tenants.into_iter().map(|tenant| tenant.name);
        report
            .damaged
            .extend(stats.unreadable.into_iter().map(|tag| Damaged {
                tenant: tag,
                error: "open the tenant: its key file or its head is missing or damaged".to_owned(),
            }));
        return Ok(names.collect());
    }
    let name = args.tenant.as_deref().unwrap_or(tenants::DEFAULT);
    match tenants::existing(vault, name) {
        // Whatever can be read of it is looked at, and the damage reported.
        Ok(_) | Err(tenants::Missing::Damaged(_)) => Ok(vec![name.to_owned()]),
        Err(missing) => Err(missing.into()),
    }
}

fn rescan(args: &RescanArgs, vault: &Vault, name: &str) -> Result<Shown, Error> {
    let mut progress = Progress::new(name, "files");
    let report = vault
        .tenant(name)?
        .rescan(args.dry_run, |done, all| progress.show(done, all));
    progress.clear();
    let report = report?;
    let engine = vault.policy().redaction.engine()?;
    let shown = |paths: &[String]| paths.iter().map(|path| showable(&engine, path)).collect();
    Ok(Shown {
        skipped: shown(&report.skipped),
        names: shown(&report.names),
        report,
    })
}

impl Report {
    fn text(&self, dry_run: bool) -> String {
        let mut rows = vec![
            ["TENANT", "STALE", "CHANGED", "VALUES", "SKIPPED", "NAMES"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let mut paths = Vec::new();
        for (name, shown) in &self.done {
            let report = &shown.report;
            let numbers = [report.stale, report.changed, report.values];
            let lists = [shown.skipped.len(), shown.names.len()];
            rows.push(
                std::iter::once(name.clone())
                    .chain(numbers.map(|number| number.to_string()))
                    .chain(lists.map(|number| number.to_string()))
                    .collect(),
            );
            let row = |what: &str, path: &String| vec![name.clone(), what.to_owned(), path.clone()];
            paths.extend(shown.skipped.iter().map(|path| row("not scanned", path)));
            let secret = "looks like a secret";
            paths.extend(shown.names.iter().map(|path| row(secret, path)));
        }
        let mut text = table(&rows, &[1, 2, 3, 4, 5]);
        if !paths.is_empty() {
            paths.insert(0, ["TENANT", "PROBLEM", "PATH"].map(str::to_owned).to_vec());
            text.push_str(&format!("\n{}", table(&paths, &[])));
        }
        if !self.damaged.is_empty() {
            let mut rows = vec![["TENANT", "DAMAGE"].map(str::to_owned).to_vec()];
            let damaged = self.damaged.iter();
            rows.extend(damaged.map(|one| vec![one.tenant.clone(), one.error.clone()]));
            text.push_str(&format!("\n{}", table(&rows, &[])));
        }
        if !self.not_reached.is_empty() {
            let names = self.not_reached.join(", ");
            text.push_str(&format!("Not reached: {names}\n"));
        }
        if dry_run {
            text.push_str("A dry run: nothing changed.\n");
        }
        text
    }

    fn json(&self, dry_run: bool) -> Value {
        let tenant = |(name, shown): &(String, Shown)| {
            json!({
                "tenant": name,
                "stale": shown.report.stale,
                "changed": shown.report.changed,
                "values": shown.report.values,
                "skipped": shown.skipped,
                "names": shown.names,
            })
        };
        let damaged = |one: &Damaged| json!({ "tenant": one.tenant, "error": one.error });
        json!({
            "dry_run": dry_run,
            "tenants": self.done.iter().map(tenant).collect::<Vec<_>>(),
            "damaged": self.damaged.iter().map(damaged).collect::<Vec<_>>(),
            "not_reached": self.not_reached,
        })
    }

    fn failure(&self) -> Option<Failure> {
        tenants::unfinished("rescan", self.damaged.len(), self.not_reached.len())
    }

    fn remark(&self) {
        let count = |of: fn(&Shown) -> usize| self.done.iter().map(|(_, shown)| of(shown)).sum();
        let (skipped, names): (usize, usize) = (
            count(|shown| shown.skipped.len()),
            count(|shown| shown.names.len()),
        );
        if skipped > 0 {
            say(&format!(
                "not scanned: {skipped}; a text that cannot be scanned cannot be viewed either"
            ));
        }
        if names > 0 {
            say(&format!(
                "names that look like a secret: {names}; names are never changed, rename or delete them"
            ));
        }
    }
}
