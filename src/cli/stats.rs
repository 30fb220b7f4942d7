//! `stats` and `tenant list`: totals over the store and its tenants, and a picture of what lies in it.

use serde_json::{Map, Value, json};
use strongroom::redact::Engine;
use strongroom::{
    Amount, Band, ErasureState, Error, Picture, StoreStats, Vault, erasure_state_word,
};

use super::args::LookArgs;
use super::failure::{Exit, Failure, Stop};
use super::keep_args::StatsArgs;
use super::open;
use super::output::{Out, showable, table};
use super::progress::Progress;
use super::tenants;
use super::time::{clock_json, clock_word, utc};

/// How many directories are listed; the others are added up.
const DIRECTORIES_MAX: usize = 20;

/// The longest bar, in characters.
const BAR_MAX: u64 = 30;

pub fn run(args: &StatsArgs) -> Result<(), Stop> {
    let vault = open::to_look(&args.look)?;
    let mut shown = Shown::default();
    let mut picture = Picture::default();
    let mut damaged = Vec::new();
    let stats = vault.stats()?;
    if let Some(name) = &args.tenant {
        let tenant = tenants::existing(&vault, name)?;
        tenant.add_to_picture(&mut picture)?;
        shown.amount(&picture);
    } else {
        damaged.extend(stats.unreadable.iter().cloned());
        add_all(&vault, &stats, &mut picture, &mut damaged)?;
        shown.store(&stats, vault.live_bytes()?);
    }
    shown.directories(
        &picture,
        &vault.policy().redaction.engine().map_err(Error::from)?,
    );
    shown.bands("last_access", "LAST ACCESS", &picture.last_access, &[]);
    let kept = [("never", picture.never), ("held", picture.held)];
    shown.bands("expires", "EXPIRES", &picture.expires, &kept);
    if args.tenant.is_none() {
        shown.runs(&stats);
        shown.json.insert("damaged".to_owned(), json!(damaged));
    }
    let closed = vault.close();
    Out::new(args.look.json).answer(&shown.text, &Value::Object(shown.json))?;
    match damaged.len() {
        0 => Ok(closed?),
        many => Err(Failure::new(
            Exit::Integrity,
            format!(
                "add up the whole store: {many} of its tenants cannot be read: {}",
                damaged.join(", ")
            ),
            "Keep the directory as it is, and run `strongroom verify --read-only`. The others are in the figures.",
        )
        .into()),
    }
}

/// Adds up every tenant. Those that are damaged are named.
fn add_all(
    vault: &Vault,
    stats: &StoreStats,
    picture: &mut Picture,
    damaged: &mut Vec<String>,
) -> Result<(), Stop> {
    let mut progress = Progress::new("stats", "tenants");
    let all = stats.tenants.len() as u64;
    for (done, tenant) in stats.tenants.iter().enumerate() {
        let added = vault
            .tenant(&tenant.name)
            .and_then(|tenant| tenant.add_to_picture(picture));
        match added {
            Err(error) if tenants::is_damage(&error) => damaged.push(tenant.name.clone()),
            added => added?,
        }
        progress.show(done as u64 + 1, all);
    }
    progress.clear();
    Ok(())
}

/// The answer in both its forms.
#[derive(Default)]
struct Shown {
    text: String,
    json: Map<String, Value>,
}

impl Shown {
    fn numbers(&mut self, numbers: &[(&str, u64)]) -> Vec<Vec<String>> {
        let row = |(name, number): &(&str, u64)| vec![name.replace('_', " "), number.to_string()];
        for (name, number) in numbers {
            self.json.insert((*name).to_owned(), (*number).into());
        }
        numbers.iter().map(row).collect()
    }

    fn amount(&mut self, picture: &Picture) {
        let Amount { files, bytes, .. } = picture.all;
        let rows = self.numbers(&[("files", files), ("bytes", bytes)]);
        self.text.push_str(&table(&rows, &[1]));
    }

    /// The store's totals, and how much of the disk holds nothing any more.
    fn store(&mut self, stats: &StoreStats, live: u64) {
        let disk = stats.backend.disk_bytes;
        let is_purged = |erased: &&strongroom::Erased| erased.state == ErasureState::Purged;
        let purged = stats.erased.iter().filter(is_purged).count();
        let sum = |of: fn(&strongroom::TenantStats) -> u64| stats.tenants.iter().map(of).sum();
        let mut rows = self.numbers(&[
            ("tenants", stats.tenants.len() as u64),
            ("files", sum(|tenant| tenant.files)),
            ("bytes", sum(|tenant| tenant.bytes)),
            ("disk_bytes", disk),
            ("live_bytes", live),
            ("dead_bytes", disk.saturating_sub(live)),
            ("commits", stats.commits),
            ("pending_removals", stats.pending_removals),
            ("erased_tenants", stats.erased.len() as u64),
            ("erased_and_purged", purged as u64),
        ]);
        for (name, time) in [
            ("no_access_before", stats.oldest_access.map(utc)),
            ("no_expiry_before", stats.due_after.map(utc)),
        ] {
            let shown = time.clone().unwrap_or("-".to_owned());
            rows.push(vec![name.replace('_', " "), shown]);
            self.json.insert(name.to_owned(), time.into());
        }
        rows.push(vec!["clock".to_owned(), clock_word(stats.clock).to_owned()]);
        let clock = clock_json(stats.clock);
        self.json.insert("clock".to_owned(), clock);
        self.text.push_str(&table(&rows, &[1]));
    }

    /// The largest directories right below `/memories`, and the rest.
    fn directories(&mut self, picture: &Picture, engine: &Engine) {
        let mut sizes: Vec<(String, Amount)> = picture
            .directories
            .iter()
            .map(|(path, amount)| (showable(engine, path), *amount))
            .collect();
        sizes.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(&b.0)));
        let others = sizes.split_off(sizes.len().min(DIRECTORIES_MAX));
        let json = |(path, amount): &(String, Amount)| json!({ "path": path, "files": amount.files, "bytes": amount.bytes });
        let mut listed: Vec<Value> = sizes.iter().map(json).collect();
        if !others.is_empty() {
            let rest = |of: fn(&Amount) -> u64| others.iter().map(|(_, amount)| of(amount)).sum();
            let (files, bytes): (u64, u64) = (rest(|a| a.files), rest(|a| a.bytes));
            listed.push(json!({ "path": null, "files": files, "bytes": bytes }));
            let name = format!("{} others", others.len());
            self.rows(
                "DIRECTORY",
                sizes.into_iter().chain([(name, (files, bytes).into())]),
            );
        } else {
            self.rows("DIRECTORY", sizes.into_iter());
        }
        self.json.insert("directories".to_owned(), listed.into());
    }

    /// Files by bands of time, then those that no band holds.
    fn bands(&mut self, name: &str, title: &str, bands: &[Band], others: &[(&str, Amount)]) {
        let mut listed = Vec::new();
        let mut rows = Vec::new();
        let mut from = 0;
        for band in bands {
            let Amount { files, bytes, .. } = band.amount;
            listed.push(json!({ "under_days": band.under_days, "files": files, "bytes": bytes }));
            let label = match band.under_days {
                Some(1) => "under 1 day".to_owned(),
                Some(days) => format!("under {days} days"),
                None => format!("{from} days or more"),
            };
            from = band.under_days.unwrap_or(from);
            rows.push((label, band.amount));
        }
        self.json.insert(name.to_owned(), listed.into());
        for (what, amount) in others {
            let Amount { files, bytes, .. } = *amount;
            self.json.insert(
                (*what).to_owned(),
                json!({ "files": files, "bytes": bytes }),
            );
            rows.push(((*what).to_owned(), *amount));
        }
        self.rows(title, rows.into_iter());
    }

    /// A table with a bar for the files of each row.
    fn rows(&mut self, title: &str, rows: impl Iterator<Item = (String, Amount)>) {
        let rows: Vec<_> = rows.collect();
        let most = rows.iter().map(|(_, amount)| amount.files).max();
        let most = most.unwrap_or(0).max(1);
        let mut cells = vec![vec![
            title.to_owned(),
            "FILES".to_owned(),
            "BYTES".to_owned(),
        ]];
        for (label, amount) in rows {
            let wide = amount.files.saturating_mul(BAR_MAX).div_ceil(most);
            cells.push(vec![
                label,
                amount.files.to_string(),
                amount.bytes.to_string(),
                "#".repeat(usize::try_from(wide).unwrap_or(0)),
            ]);
        }
        self.text.push('\n');
        self.text.push_str(&table(&cells, &[1, 2]));
    }

    /// When what the operator runs from time to time last came to its end.
    fn runs(&mut self, stats: &StoreStats) {
        let mut rows = vec![vec!["LAST".to_owned(), "ENDED".to_owned()]];
        let mut json = Map::new();
        for (name, time) in &stats.last_runs {
            let time = time.map(utc);
            rows.push(vec![
                (*name).to_owned(),
                time.clone().unwrap_or("never".to_owned()),
            ]);
            json.insert((*name).to_owned(), time.into());
        }
        self.text.push('\n');
        self.text.push_str(&table(&rows, &[]));
        self.json.insert("last_runs".to_owned(), json.into());
    }
}

pub fn list_tenants(args: &LookArgs) -> Result<(), Stop> {
    let vault = open::to_look(args)?;
    let stats = vault.stats()?;
    vault.close()?;
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
