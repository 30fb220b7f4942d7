//! Follows a tenant through the ids that rotations of every key gave it: an erasure must reach
//! backups that know the tenant under an id of before.

use std::collections::HashMap;

use crate::record::{Erasure, ErasureStage, TenantId, Trail};

/// Where former ids lead, and which ids were erased.
pub(super) struct Lineage {
    next: HashMap<TenantId, TenantId>,
    erased: Vec<TenantId>,
}

impl Lineage {
    /// Reads it from the records of all erasures and former ids.
    pub(super) fn of(all: &[Erasure]) -> Self {
        let is_erasure = |job: &&Erasure| job.stage != ErasureStage::Rekeyed;
        let erasures = || all.iter().filter(is_erasure);
        let next = |former: &Erasure| match former.trail {
            Trail::Next(next) => Some(next),
            // Written before ids were named: the next erasure under the name's tag.
            _ => erasures()
                .filter(|job| job.tag == former.tag && job.started >= former.started)
                .min_by_key(|job| job.started)
                .map(|job| job.tenant),
        };
        Self {
            next: all
                .iter()
                .filter(|job| job.stage == ErasureStage::Rekeyed)
                .filter_map(|former| Some((former.tenant, next(former)?)))
                .collect(),
            erased: erasures().map(|job| job.tenant).collect(),
        }
    }

    /// The id that came after this one.
    pub(super) fn next(&self, id: TenantId) -> Option<TenantId> {
        self.next.get(&id).copied()
    }

    /// The ids that a tenant had before this one, in ascending order.
    pub(super) fn former(&self, id: TenantId) -> Vec<TenantId> {
        let leads_there = |former: &TenantId| self.last(*former) == id;
        let mut ids: Vec<TenantId> = self.next.keys().copied().filter(leads_there).collect();
        ids.sort_unstable();
        ids
    }

    /// All ids of erased tenants, former ones included, in ascending order.
    pub(super) fn all_erased(&self) -> Vec<TenantId> {
        let mut ids = self.erased.clone();
        ids.sort_unstable();
        let leads_there = |former: &TenantId| ids.binary_search(&self.last(*former)).is_ok();
        let former: Vec<TenantId> = self.next.keys().copied().filter(leads_there).collect();
        ids.extend(former);
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The newest id of a tenant. Ids are random and never come back, so this ends.
    fn last(&self, mut id: TenantId) -> TenantId {
        for _ in 0..self.next.len() {
            match self.next(id) {
                Some(next) => id = next,
                None => break,
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Chain;
    use crate::key::FileTag;

    fn record(id: u8, tag: u8, stage: ErasureStage, started: u64, trail: Trail) -> Erasure {
        Erasure {
            tag: FileTag([tag; 16]),
            tenant: TenantId([id; 16]),
            stage,
            started,
            deleted: started,
            purged: started,
            audit: Chain::EMPTY,
            traces: Vec::new(),
            trail,
        }
    }

    fn ids(found: Vec<TenantId>) -> Vec<u8> {
        found.iter().map(|id| id.0[0]).collect()
    }

    #[test]
    fn former_ids_are_followed_over_any_number_of_rotations() {
        use ErasureStage::{Purged, Rekeyed};
        let next = |id: u8| Trail::Next(TenantId([id; 16]));
        let all = [
            // Records come in the order of their random ids.
            record(12, 15, Purged, 5, Trail::None),
            record(9, 14, Purged, 5, Trail::None),
            record(9, 14, Purged, 5, Trail::None),
            record(1, 10, Rekeyed, 5, next(2)),
            record(2, 11, Rekeyed, 5, next(3)),
            record(3, 12, Purged, 5, Trail::None),
            // Lives on under 8.
            record(7, 12, Rekeyed, 5, next(8)),
        ];
        let lineage = Lineage::of(&all);
        assert_eq!(ids(lineage.all_erased()), [1, 2, 3, 9, 12]);
        assert_eq!(ids(lineage.former(TenantId([3; 16]))), [1, 2]);
        assert_eq!(ids(lineage.former(TenantId([8; 16]))), [7]);
    }

    /// Records of before say no next id; the tag of the name, and the time, do.
    #[test]
    fn former_ids_without_a_trail_lead_to_the_next_erasure_of_the_name() {
        use ErasureStage::{Deleted, Rekeyed};
        let all = [
            record(1, 10, Rekeyed, 5, Trail::None),
            record(2, 10, Deleted, 6, Trail::None),
            record(3, 10, Rekeyed, 7, Trail::None),
            record(4, 11, Rekeyed, 1, Trail::None),
        ];
        let lineage = Lineage::of(&all);
        assert_eq!(ids(lineage.all_erased()), [1, 2]);
        assert_eq!(ids(lineage.former(TenantId([2; 16]))), [1]);
        assert_eq!(lineage.next(TenantId([3; 16])), None);
    }
}
