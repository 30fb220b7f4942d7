//! Expiry and holds, for the person who runs the store.

use crate::clock::UnixMillis;
use crate::error::Error;
use crate::path::{Guard, MemoryPath};
use crate::record::{HOLD_REASON_BYTES_MAX, Hold, Run};
use crate::store::{Abort, ClockState, StoreError, Surveyed, Swept};

use super::{Line, Stop, Tenant, Vault, refuse, texts};

/// The most holds that one tenant may have.
const HOLDS_MAX: usize = 1_000;

/// A sweep of many tenants is made durable after so many of them, and at its end.
const TENANTS_PER_SYNC: usize = 256;

/// What one run of expiry did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpireReport {
    /// Whether the clock was believed. If not, nothing was taken away.
    pub clock: ClockState,
    /// What went, by tenant name; tenants of which nothing went are left out.
    pub tenants: Vec<(String, Swept)>,
    /// When the next file expires, of those that are left; `None` is never.
    pub next_due: Option<UnixMillis>,
    /// Audit entries that were older than the policy keeps them.
    pub pruned: u64,
    /// Tenants (by name, or by file tag where the name cannot be read) that could not be
    /// swept, and why.
    pub failed: Vec<(String, String)>,
    /// Names of tenants that were not swept because damage in another one stops all writes
    /// of this handle. A handle that is opened anew reaches them.
    pub not_reached: Vec<String>,
}

/// A hold on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldInfo {
    /// The path that it keeps, with all that is below it.
    pub path: String,
    /// The operator's reason.
    pub reason: String,
    /// When it was set, in milliseconds since 1970.
    pub created: UnixMillis,
    /// From when on it no longer holds; `None` is never.
    pub until: Option<UnixMillis>,
}

impl Vault {
    /// Takes away what the policy's `[retention]` says is expired, in all tenants or one.
    /// `progress` is told how many of how many tenants are done.
    ///
    /// What is expired does not exist for any command from that moment on; this removes it
    /// from the store. A tenant that is damaged is reported, and the others are swept.
    ///
    /// # Errors
    /// When the store itself cannot go on. What was done until then is kept.
    pub fn expire(
        &self,
        tenant: Option<&str>,
        dry_run: bool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<ExpireReport, Error> {
        let store = &self.shared.store;
        let mut report = ExpireReport {
            clock: store.clock_state(),
            tenants: Vec::new(),
            next_due: None,
            pruned: 0,
            failed: Vec::new(),
            not_reached: Vec::new(),
        };
        if report.clock != ClockState::Trusted {
            return Ok(report);
        }
        if !dry_run {
            store.advance_clock()?;
        }
        let keep = u64::try_from(self.policy().audit.keep.as_millis()).unwrap_or(u64::MAX);
        let kept_since = store.now().saturating_sub(keep);
        if !dry_run {
            report.pruned = store.prune_audit(None, kept_since)?;
        }
        // Held to the end: a tenant that does not exist has no key file to open it by.
        let only = tenant.map(|name| self.tenant(name)).transpose()?;
        let surveyed = match &only {
            Some(tenant) => vec![Surveyed {
                tag: tenant.tag(),
                due: Some(0),
                has_old_entries: true,
            }],
            None => store.survey(kept_since)?,
        };
        let now = store.now();
        let all = surveyed.len() as u64;
        for (done, one) in surveyed.into_iter().enumerate() {
            let is_due = one.due.is_some_and(|due| due <= now);
            // The others are left closed. They come in the order in which they could be next.
            if is_due || one.has_old_entries || is_sooner(one.due, report.next_due) {
                self.expire_one(&one, is_due, dry_run, kept_since, &mut report)?;
            }
            if (done + 1) % TENANTS_PER_SYNC == 0 {
                store.settle()?;
            }
            progress(done as u64 + 1, all);
        }
        store.settle()?;
        let is_whole =
            tenant.is_none() && report.failed.is_empty() && report.not_reached.is_empty();
        if !dry_run && is_whole && store.clock_state() == ClockState::Trusted {
            store.note_run(Run::Expire, None)?;
        }
        report.tenants.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(report)
    }

    /// Sweeps one tenant, if something may be due, and looks when something will be. Damage
    /// goes into the report.
    fn expire_one(
        &self,
        one: &Surveyed,
        is_due: bool,
        dry_run: bool,
        kept_since: UnixMillis,
        report: &mut ExpireReport,
    ) -> Result<(), Error> {
        let store = &self.shared.store;
        let tenant = match store.listed_tenant(one.tag) {
            Ok(Some(tenant)) => tenant,
            Ok(None) => return Ok(()),
            Err(error) if error.is_damage() => {
                report.failed.push((one.tag.to_string(), error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let name = tenant.name().as_str().to_owned();
        let next = &mut report.next_due;
        let swept = if is_due {
            store.sweep(&tenant, &MemoryPath::root(), dry_run, next)
        } else {
            store.next_expiry(&tenant, *next).map(|soonest| {
                *next = soonest;
                Swept::default()
            })
        };
        let done = swept.and_then(|swept| {
            if !dry_run && one.has_old_entries {
                report.pruned += store.prune_audit(Some(&tenant), kept_since)?;
            }
            Ok(swept)
        });
        match done {
            Ok(swept) if swept.files > 0 || swept.directories > 0 => {
                report.tenants.push((name, swept));
            }
            Ok(_) => {}
            Err(error) if error.is_damage() => report.failed.push((name, error.to_string())),
            Err(StoreError::WritesStopped) => report.not_reached.push(name),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether the wall clock is believed. While it is not, nothing expires and time stands
    /// still for the store; see [`Vault::confirm_clock`].
    #[must_use]
    pub fn clock(&self) -> ClockState {
        self.shared.store.clock_state()
    }

    /// The time that counts for the store, in milliseconds since 1970: the wall clock's while
    /// it is believed, else the trusted time, which stands still.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        self.shared.store.now()
    }

    /// Believes the wall clock from here on, wherever it stands: after the machine's clock
    /// was wrong, or the store idle for more than 400 days.
    ///
    /// # Errors
    /// As any write.
    pub fn confirm_clock(&self) -> Result<(), Error> {
        Ok(self.shared.store.confirm_clock()?)
    }
}

impl Tenant {
    /// Holds a path, with all that is below it, against expiry, delete, rename and edits,
    /// until the hold is removed or `until` has come. In place of a hold on the same path.
    ///
    /// # Errors
    /// A reply with `is_error` where the path is refused, does not exist, the reason is
    /// longer than 1,024 bytes or the tenant has 1,000 holds already; otherwise as
    /// [`Tenant::run`].
    pub fn add_hold(
        &self,
        path: &str,
        reason: &str,
        until: Option<UnixMillis>,
    ) -> Result<crate::wire::Reply, Error> {
        let rules = self.rules();
        let line = Line::new(self, &rules, "hold add");
        let done = (|| {
            let path = line.operator_path(path)?;
            if reason.len() > HOLD_REASON_BYTES_MAX {
                return Err(refuse(format!(
                    "Error: the reason is too long, {} of {HOLD_REASON_BYTES_MAX} bytes. Shorten it",
                    reason.len()
                )));
            }
            line.write(|change| {
                let walk = change.reader().walk(&path)?;
                if walk.target().is_none() && !path.is_root() {
                    return Err(refuse(texts::missing(&path)));
                }
                let others = change.reader().holds().iter();
                if others.filter(|(held, _)| held != path.as_str()).count() >= HOLDS_MAX {
                    return Err(refuse(format!("Error: there are {HOLDS_MAX} holds already. Remove some, or hold a directory")));
                }
                let created = line.store().now();
                let hold = Hold { reason: reason.to_owned(), created, until };
                change.put_hold(&path, hold)?;
                Ok(crate::wire::Reply::text(format!("Hold added on {path}")))
            })
        })();
        line.settle(done)
    }

    /// Removes the hold on exactly this path.
    ///
    /// # Errors
    /// A reply with `is_error` where there is none; otherwise as [`Tenant::run`].
    pub fn remove_hold(&self, path: &str) -> Result<crate::wire::Reply, Error> {
        let rules = self.rules();
        let line = Line::new(self, &rules, "hold remove");
        let done = (|| {
            let path = line.operator_path(path)?;
            line.write(|change| {
                if change.remove_hold(&path)? {
                    Ok(crate::wire::Reply::text(format!(
                        "Hold removed from {path}"
                    )))
                } else {
                    Err(refuse(format!("Error: There is no hold on {path}")))
                }
            })
        })();
        line.settle(done)
    }

    /// The holds that are in force, by path.
    ///
    /// # Errors
    /// As [`Tenant::run`].
    pub fn holds(&self) -> Result<Vec<HoldInfo>, Error> {
        let listed = self.shared.store.read(&self.tenant, |reader| {
            let holds = reader.holds().iter().map(|(path, hold)| HoldInfo {
                path: path.clone(),
                reason: hold.reason.clone(),
                created: hold.created,
                until: hold.until,
            });
            Ok::<_, Stop>(holds.collect())
        });
        match listed {
            Ok(holds) => Ok(holds),
            Err(Abort::Failed(error)) => Err(error.into()),
            Err(Abort::Refused(_)) => Ok(Vec::new()),
        }
    }
}

/// Whether the one moment comes before the other, where `None` is never.
fn is_sooner(moment: Option<UnixMillis>, than: Option<UnixMillis>) -> bool {
    moment.is_some_and(|moment| than.is_none_or(|than| moment < than))
}

impl Line<'_> {
    /// Operators may name what agents may not: only the guard binds them, and names that
    /// were stored under an earlier policy must stay within reach.
    fn operator_path(&self, raw: &str) -> Result<MemoryPath, Stop> {
        Guard::new()
            .portable_names(false)
            .check(raw)
            .map_err(|error| refuse(format!("Error: {error}")))
            .inspect(|path| self.draft.borrow_mut().path = Some(path.as_str().to_owned()))
    }
}
