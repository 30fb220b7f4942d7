//! Commits a planned change: seals it, applies it as one batch, follows it in memory.

use std::sync::Arc;

use crate::audit::Chain;
use crate::record::{Dirent, DirentBody, Head, NodeId, RecordKey, SetHash, Share, Summary};
use crate::seal;

use crate::store::StoreError;
use crate::store::audit::ChainWriter;
use crate::store::core::{Extra, TopChange};
use crate::store::index::{EntryChange, short};
use crate::store::job_list::StoredJob;
use crate::store::sweep::Bounds;
use crate::store::tenant::Live;

use super::{Change, Edit, Own};

/// A directory's id, its set hash before and after, and its changed entries.
type Followed = (NodeId, SetHash, SetHash, Vec<EntryChange>);

impl Change<'_> {
    /// Seals everything, applies it as one batch, and follows it in memory.
    pub(super) fn commit(mut self) -> Result<u64, StoreError> {
        let core = self.reader.core;
        let ((root, holds), followed) = self.seal_directories()?;
        let audit = self.seal_entries()?;
        let created = match &self.reader.live {
            Some(live) => live.head.created,
            None => self.now,
        };
        let head = Head {
            tenant: self.crypto.id,
            root,
            holds,
            created,
            audit,
            epoch: self.epochs.0,
            retired: self.epochs.1,
        };
        let head_key = RecordKey::Head(self.tenant.tag);
        let sealed = core.seal_top(&head_key, &head.encode())?;
        let expected = self.reader.live.as_ref().map(|live| live.sealed.clone());
        let old = expected
            .as_ref()
            .map(|sealed| core.top_mac(&head_key, sealed));
        self.batch.expect.push((head_key.to_bytes(), expected));
        let mut changes = vec![TopChange {
            key: head_key,
            old,
            new: Some(sealed.clone()),
        }];
        let mut job_macs = Vec::new();
        for (id, job, old) in &self.jobs {
            let key = RecordKey::Job(*id);
            let new = match job {
                Some(job) => Some(core.seal_top(&key, &job.encode())?),
                None => None,
            };
            job_macs.push(new.as_ref().map(|new| core.top_mac(&key, new)));
            changes.push(TopChange {
                key,
                old: *old,
                new,
            });
        }
        if let Some(keys) = &self.new_keys {
            core.write_tenant_keys(self.tenant.tag, keys)?;
        }
        let extra = Extra {
            drafts: std::mem::take(&mut self.events),
            ..Extra::default()
        };
        let seq = core.commit_with(extra, std::mem::take(&mut self.batch), changes)?;
        for (directory, from, to, entries) in followed {
            core.indexes
                .follow((self.crypto.id, directory), &from, to, &entries);
        }
        let crypto = Arc::clone(&self.crypto);
        self.tenant.publish(Live {
            crypto,
            head,
            sealed,
            seq,
        });
        for ((id, job, _), mac) in std::mem::take(&mut self.jobs).into_iter().zip(job_macs) {
            match job.zip(mac) {
                Some((job, mac)) => core.start_job(id, StoredJob { job, mac }),
                None => core.forget_job(id),
            }
        }
        Ok(seq)
    }

    /// Seals the audit entries. Returns the chain with them.
    fn seal_entries(&mut self) -> Result<Chain, StoreError> {
        let core = self.reader.core;
        if !core.audit_settings().enabled {
            return Ok(self.audit);
        }
        let paths = &self.crypto.audit_paths;
        let mut writer = ChainWriter::new(core, self.crypto.id, Some(paths), self.audit);
        for (draft, time) in std::mem::take(&mut self.drafts) {
            self.batch.puts.push(writer.append(draft, time)?);
        }
        Ok(writer.chain)
    }

    /// Seals the changed entries, deepest directories first, so that each summary reaches
    /// its parent's entry and at last the head.
    fn seal_directories(&mut self) -> Result<((Summary, Summary), Vec<Followed>), StoreError> {
        let core = self.reader.core;
        let mut order: Vec<(usize, NodeId)> = self
            .directories
            .iter()
            .map(|(id, planned)| (planned.depth, *id))
            .collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut followed = Vec::new();
        let mut root = self.reader.root().summary;
        let mut holds = self.reader.hold_list().summary;
        for (_, id) in order {
            let Some(planned) = self.directories.remove(&id) else {
                continue;
            };
            if planned.entries.is_empty() && planned.bounds.is_none() {
                continue;
            }
            let mut summary = planned.stored.summary;
            let from = summary.set_hash;
            let mut entries: Vec<EntryChange> = Vec::new();
            for (tag, edit) in planned.entries {
                let key = RecordKey::Dirent(self.crypto.id, id, tag).to_bytes();
                let mut share = Share::NOTHING;
                let mut old_share = Share::NOTHING;
                if let Some((old, mac)) = &edit.old {
                    old_share = *old;
                    summary.set_hash.remove(mac);
                    summary.entries = summary.entries.saturating_sub(1);
                }
                match &edit.new {
                    Some(entry) => {
                        share = entry.share();
                        let sealed = self.crypto.seal_entry(&*core.random, &key, entry)?;
                        let mac = seal::record_mac(&self.crypto.inventory, &key, &sealed);
                        summary.set_hash.add(&mac);
                        summary.entries += 1;
                        entries.push((tag, Some(short(&mac))));
                        self.batch.puts.push((key, sealed));
                    }
                    None if edit.old.is_some() => {
                        entries.push((tag, None));
                        self.batch.deletes.push(key);
                    }
                    None => {}
                }
                summary.below = summary
                    .below
                    .replace(old_share, share)
                    .ok_or(StoreError::Damaged("a directory's summary"))?;
            }
            if let Some(Bounds { oldest, born }) = planned.bounds {
                summary.below.oldest = oldest;
                summary.below.born = born;
            }
            if summary.entries == 0 {
                // The bounds in it never shrink by themselves.
                summary.below = Share::NOTHING;
            }
            followed.push((id, from, summary.set_hash, entries));
            match planned.parent {
                None if id == NodeId::HOLDS => holds = summary,
                None => root = summary,
                Some(own) => self.set_summary(own, summary)?,
            }
        }
        Ok(((root, holds), followed))
    }

    /// Puts a directory's new summary into its entry in the parent.
    fn set_summary(&mut self, own: Own, new: Summary) -> Result<(), StoreError> {
        let parent = self
            .directories
            .get_mut(&own.parent)
            .ok_or(StoreError::Damaged("a directory"))?;
        let share = own.entry.share();
        let edit = parent.entries.entry(own.tag).or_insert_with(|| Edit {
            old: own.mac.map(|mac| (share, mac)),
            new: Some(own.entry),
        });
        if let Some(Dirent {
            body: DirentBody::Directory { summary, .. },
            ..
        }) = &mut edit.new
        {
            *summary = new;
        }
        Ok(())
    }
}
