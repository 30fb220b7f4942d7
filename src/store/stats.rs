//! Totals over a store: tenants, sizes, bounds of what expires, and the operator's last runs.

use std::sync::Arc;

use crate::backend::BackendStats;
use crate::clock::UnixMillis;
use crate::path::ROOT;
use crate::record::Run;

use super::{ClockState, Erased, ErasureState, Store, StoreError};

/// Totals over a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Every tenant's totals, by name.
    pub tenants: Vec<TenantStats>,
    /// File tags of tenants that cannot be opened, because their key file is missing or damaged.
    pub unreadable: Vec<String>,
    /// No file was last accessed before this moment; `None` where there are no files. In
    /// milliseconds since 1970. A lower bound: accesses leave it as it is, a sweep raises it.
    pub oldest_access: Option<UnixMillis>,
    /// No file expires before this moment, by the same bounds; `None` is never. Holds do not
    /// count.
    pub due_after: Option<UnixMillis>,
    /// Whether the wall clock is believed.
    pub clock: ClockState,
    /// How many commits were made so far.
    pub commits: u64,
    /// Removals, rotations and erasures that are not finished yet.
    pub pending_removals: u64,
    /// Tenants that were erased, the oldest first.
    pub erased: Vec<Erased>,
    /// The engine's figures.
    pub backend: BackendStats,
    /// How often STATE was written since the store was opened.
    pub state_writes: u64,
    /// What the operator runs from time to time, by name, and when it last came to its end
    /// (`None` is never): an `expire` of all tenants that left none out, a `verify` of
    /// everything that found nothing, a `checkpoint`.
    pub last_runs: Vec<(&'static str, Option<UnixMillis>)>,
}

/// Totals over one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantStats {
    /// Its name.
    pub name: String,
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created: u64,
}

impl Store {
    /// Totals over the store and each tenant, sorted by name.
    pub(crate) fn stats(&self) -> Result<StoreStats, StoreError> {
        self.core.check_open()?;
        let mut tenants = Vec::new();
        let mut unreadable = Vec::new();
        let (mut oldest_access, mut due_after) = (None, None);
        let schedules = self.core.schedules();
        for tag in self.core.known_heads() {
            let tenant = match self.core.listed_tenant(tag) {
                Ok(Some(tenant)) => tenant,
                Ok(None) => continue,
                Err(_) => {
                    unreadable.push(tag.to_string());
                    continue;
                }
            };
            let Some(live) = tenant.live() else { continue };
            let below = &live.head.root.below;
            let oldest = (below.files > 0).then_some(below.oldest);
            oldest_access = earlier(oldest_access, oldest);
            due_after = earlier(
                due_after,
                tenant
                    .schedule(Arc::clone(&schedules))
                    .next_due(ROOT, below),
            );
            tenants.push(TenantStats {
                name: tenant.name.as_str().to_owned(),
                files: below.files,
                bytes: below.bytes,
                created: live.head.created,
            });
        }
        tenants.sort_by(|a, b| a.name.cmp(&b.name));
        unreadable.sort();
        Ok(StoreStats {
            tenants,
            unreadable,
            oldest_access,
            due_after,
            clock: self.core.clock_state(),
            commits: self.core.root().seq,
            pending_removals: self.core.pending_jobs() as u64,
            erased: self
                .erased()
                .into_iter()
                .filter(|erased| erased.state != ErasureState::Rekeyed)
                .collect(),
            backend: self.core.backend.stats()?,
            state_writes: self.core.state_writes(),
            last_runs: Run::ALL
                .map(|(run, name)| (name, self.core.root().runs.last(run)))
                .to_vec(),
        })
    }
}

/// The earlier of two moments, where `None` is never.
fn earlier(a: Option<UnixMillis>, b: Option<UnixMillis>) -> Option<UnixMillis> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
