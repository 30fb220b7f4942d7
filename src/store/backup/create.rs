//! Makes a backup of a store in use: all records as they were at the moment of one commit.
//!
//! Everything is copied while writers go on, and commits note which records they change. What
//! was changed is copied again, until little is left; that little is read under the root's lock,
//! where no commit can happen. So the file comes to exactly what the root of that moment names,
//! and writers wait for a few hundred records only, however large the store is.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::audit::{Draft, hex};
use crate::backend::{Copy, Item};
use crate::key::{FileTag, TenantId};
use crate::record::{Run, SetHash};
use crate::seal;
use crate::store::StoreError;
use crate::store::core::{Core, digest};
use crate::store::lineage::Lineage;
use crate::store::open::{listed_spaces, scan_all};
use crate::store::state::State;

use super::check::{End, KeysFile, Survey};
use super::file::Partial;
use super::format::{BackupKind, Header, Part, Writer};
use super::journal::Following;
use super::{BackedUp, BackupError, Step};

/// So many changed records may be left for the moment in which no commit can happen.
const LEFT_MAX: usize = 256;

/// How often what was changed meanwhile is copied before that moment comes anyway.
const ROUNDS_MAX: u64 = 16;

/// Ids of erased tenants in one section.
const ERASED_PER_SECTION: usize = 4_096;

/// The number of the engine's directory that a restored store begins with.
pub(super) const GENERATION: u32 = 1;

/// What was read at the one moment.
struct Moment {
    seq: u64,
    /// How many records the root counts, and their set hash.
    counted: (u64, SetHash),
    /// The slot of STATE that a restored store begins with.
    state: Vec<u8>,
    changed: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    keys: Option<Keys>,
}

struct Keys {
    keyring: Vec<u8>,
    /// By file tag, ascending.
    tenants: Vec<(FileTag, Vec<u8>)>,
}

impl Core {
    /// Writes the records to one file, the keys to another, or only one of both.
    pub(super) fn backup(
        &self,
        records: Option<&Path>,
        keys: Option<&Path>,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<BackedUp, BackupError> {
        self.check_writable()?;
        if records.is_none() && keys.is_none() {
            return Err(writing(io::ErrorKind::InvalidInput.into()));
        }
        self.flush_audit()?;
        let create = |path| Partial::create(path, self.place.as_deref());
        let records = records.map(create).transpose()?;
        let keys = keys.map(create).transpose()?;
        let mut id = [0; 16];
        self.random.fill(&mut id).map_err(StoreError::from)?;
        let made = self.now();
        let header = |kind| Header {
            kind,
            store: self.crypto.id,
            id,
            made,
        };
        let mut records_count = 0;
        let moment = match &records {
            Some(file) => {
                let header = header(BackupKind::Records);
                let moment = self.write_records(file, &header, keys.is_some(), progress)?;
                records_count = self.check_records(file, &moment, progress)?;
                moment
            }
            None => self.moment(None, true)?,
        };
        let found = moment.keys.as_ref();
        if let (Some(file), Some(found)) = (&keys, found) {
            self.write_keys_file(file, &header(BackupKind::Keys), found)?;
        }
        let done = BackedUp {
            id: hex(&id),
            made,
            commit: moment.seq,
            records: records_count,
            bytes: records.as_ref().map_or(Ok(0), Partial::bytes)?,
            tenants: found.map(|found| found.tenants.len() as u64),
        };
        // What the backup holds must not be ahead of what a power cut would leave.
        self.wait_durable(moment.seq)?;
        let mut draft = Draft::new("backup").detail(format!(
            "{}, commit {}, {} records{}",
            done.id,
            done.commit,
            done.records,
            if found.is_some() { ", keys" } else { "" }
        ));
        draft.bytes = done.bytes;
        if records.is_some() {
            self.note_run(Run::Backup, Some(draft))?;
        } else {
            self.note_event(draft)?;
        }
        progress(Step::Name, 0, 0);
        // Keys without records are of use; records without keys are not.
        for file in [keys, records].into_iter().flatten() {
            file.name()?;
        }
        Ok(done)
    }

    fn write_records(
        &self,
        file: &Partial,
        header: &Header,
        with_keys: bool,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<Moment, BackupError> {
        let following = {
            let _no_commit = self.lock_top();
            self.journal.follow()?
        };
        let mut writer = Writer::begin(BufWriter::new(file.file()), header).map_err(writing)?;
        self.copy_all(&mut writer, progress)?;
        for round in 1..=ROUNDS_MAX {
            let changed = following.take()?;
            let is_last = changed.len() <= LEFT_MAX;
            writer.next_layer().map_err(writing)?;
            for key in changed {
                let value = self.backend.get(&key).map_err(StoreError::from)?;
                writer.record(&key, value.as_deref()).map_err(writing)?;
            }
            progress(Step::Follow, round, 0);
            if is_last {
                break;
            }
        }
        let moment = self.moment(Some(following), with_keys)?;
        writer.next_layer().map_err(writing)?;
        for (key, value) in &moment.changed {
            writer.record(key, value.as_deref()).map_err(writing)?;
        }
        self.write_erased(&mut writer)?;
        let end = End {
            seq: moment.seq,
            state: moment.state.clone(),
        };
        writer.end(&end.encode()).map_err(writing)?;
        file.sync()?;
        Ok(moment)
    }

    fn copy_all<W: Write>(
        &self,
        writer: &mut Writer<W>,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<(), BackupError> {
        let mut failed = None;
        let mut done = 0;
        let scanned = scan_all(&*self.backend, &[], |key, value| {
            if let Err(error) = writer.record(key, Some(value)) {
                let kind = error.kind();
                failed = Some(writing(error));
                return Err(StoreError::Io(kind));
            }
            done += 1;
            progress(Step::Copy, done, 0);
            Ok(())
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(scanned?),
        }
    }

    /// What is left to copy, and what vouches for it all, while no commit can happen.
    fn moment(
        &self,
        following: Option<Following<'_>>,
        with_keys: bool,
    ) -> Result<Moment, BackupError> {
        let top = self.lock_top();
        // After a failed write what is stored is not what the root in memory names.
        self.check_writable()?;
        let mut changed = Vec::new();
        if let Some(following) = &following {
            for key in following.take()? {
                let value = self.backend.get(&key).map_err(StoreError::from)?;
                changed.push((key, value));
            }
        }
        let keys = match with_keys {
            true => Some(self.read_keys()?),
            false => None,
        };
        let state = State {
            counter: self.lock_state().counter + 1,
            generation: GENERATION,
            seq: top.root.seq,
            root_digest: digest(&top.sealed),
            clean: true,
        };
        Ok(Moment {
            seq: top.root.seq,
            counted: (top.root.records, top.root.set_hash),
            state: state.encode(self.crypto.id, &self.crypto.state),
            changed,
            keys,
        })
    }

    /// Keyring and key files, none of which changes under the keyring's lock. Those of tenants
    /// that are just being made, or were erased, have no head and are left out.
    fn read_keys(&self) -> Result<Keys, StoreError> {
        let keyring = self.lock_keyring();
        let mut tags = self.known_heads();
        tags.sort_unstable();
        let mut tenants = Vec::new();
        for tag in tags {
            if let Some(bytes) = self.keys.read(Item::Tenant(tag.0), Copy::A)? {
                tenants.push((tag, bytes));
            }
        }
        Ok(Keys {
            keyring: keyring.encode(),
            tenants,
        })
    }

    fn write_keys_file(
        &self,
        file: &Partial,
        header: &Header,
        keys: &Keys,
    ) -> Result<(), BackupError> {
        let mut writer = Writer::begin(BufWriter::new(file.file()), header).map_err(writing)?;
        writer
            .section(Part::Keyring, &keys.keyring)
            .map_err(writing)?;
        for (tag, bytes) in &keys.tenants {
            let payload = [tag.0.as_slice(), bytes].concat();
            writer.section(Part::KeyFile, &payload).map_err(writing)?;
        }
        self.write_erased(&mut writer)?;
        let count = keys.tenants.len() as u64;
        writer.end(&count.to_be_bytes()).map_err(writing)?;
        file.sync()?;
        KeysFile::read(file.path()).map(drop)
    }

    fn write_erased<W: Write>(&self, writer: &mut Writer<W>) -> Result<(), BackupError> {
        for ids in self.erased_ids().chunks(ERASED_PER_SECTION) {
            let payload: Vec<u8> = ids.iter().flat_map(|id| id.0).collect();
            writer.section(Part::Erased, &payload).map_err(writing)?;
        }
        Ok(())
    }

    /// Reads back what was written: it must be whole, and come to what the root counts. Returns
    /// how many records it is.
    fn check_records(
        &self,
        file: &Partial,
        moment: &Moment,
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<u64, BackupError> {
        let mut counted = (0, SetHash::default());
        let listed = listed_spaces();
        let look = |key: &[u8], value: &[u8]| {
            if listed.iter().any(|prefix| key.starts_with(prefix)) {
                let mac = seal::record_mac(&self.crypto.inventory, key, value);
                counted.0 += 1;
                counted.1.add(&mac);
            }
        };
        let survey = Survey::of(file.path(), look, progress)?;
        if counted != moment.counted {
            return Err(StoreError::Damaged("the store's list of records").into());
        }
        Ok(survey.sum.records)
    }

    /// The ids of all erased tenants, those among them that they had before all keys were made
    /// new: a backup from before that knows them under these.
    pub(super) fn erased_ids(&self) -> Vec<TenantId> {
        Lineage::of(&self.erasures()).all_erased()
    }
}

fn writing(error: io::Error) -> BackupError {
    BackupError::writing(&error)
}
