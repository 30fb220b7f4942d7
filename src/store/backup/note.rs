//! What a restored store is told to do when it is first opened for writing: which tenants, erased
//! since the backup, must not come back.
//!
//! It lies in the store's directory as `RESTORED`, since restoring needs no key and erasing does.
//! Until it is done nothing else is done, and a store with such tenants is not opened for reading.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::audit::{Draft, hex};
use crate::backend::set_private_mode;
use crate::clock::UnixMillis;
use crate::key::{FileTag, TenantId};
use crate::record::{Head, RecordKey};
use crate::store::core::Core;
use crate::store::{OpenMode, Store, StoreError};

const NAME: &str = "RESTORED";

/// What a restore leaves for the first open.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    format: u32,
    backup: String,
    commit: u64,
    made_ms: UnixMillis,
    erased: Vec<String>,
}

impl Note {
    pub(super) fn new(
        backup: [u8; 16],
        commit: u64,
        made_ms: UnixMillis,
        erased: &[TenantId],
    ) -> Self {
        Self {
            format: 1,
            backup: hex(&backup),
            commit,
            made_ms,
            erased: erased.iter().map(ToString::to_string).collect(),
        }
    }

    /// Writes it into a store that nobody knows of yet. Durable with the directory's next sync.
    pub(super) fn write(&self, store: &Path) -> io::Result<()> {
        let path = store.join(NAME);
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        fs::write(&path, text)?;
        set_private_mode(&path)?;
        File::open(&path)?.sync_all()
    }

    fn read(store: &Path) -> Result<Option<Self>, StoreError> {
        let text = match fs::read(store.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| StoreError::io(&error))?,
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(note) if note.format == 1 => Ok(Some(note)),
            _ => Err(StoreError::Damaged(
                "the note of what is to be done after a restore",
            )),
        }
    }

    fn remove(store: &Path) -> io::Result<()> {
        fs::remove_file(store.join(NAME))?;
        File::open(store)?.sync_all()
    }
}

impl Store {
    /// Ends a restore: erases what was erased since the backup, and writes it all down.
    ///
    /// # Errors
    /// [`StoreError::RestoreUnfinished`] where there is something to erase and the store was opened for
    /// reading only.
    pub(in crate::store) fn finish_restore(&self) -> Result<(), StoreError> {
        let Some(path) = self.path() else {
            return Ok(());
        };
        let Some(note) = Note::read(&path)? else {
            return Ok(());
        };
        let heads = self.core.heads_of(&note.erased)?;
        if self.core.mode == OpenMode::ReadOnly {
            return match heads.is_empty() {
                true => Ok(()),
                false => Err(StoreError::RestoreUnfinished),
            };
        }
        let mut jobs = Vec::new();
        for (tag, head, sealed) in &heads {
            let keys = self.core.read_tenant_keys(*tag).ok();
            let name = keys.as_ref().map(|keys| keys.name());
            // Holds do not count: when it was erased, nothing held it any more.
            jobs.push(self.core.erase_head(*tag, name, head, sealed, || ())?);
        }
        for job in jobs {
            match self.wait_for_job(job, |_, _| ()) {
                // All that is left is to write the engine's files anew, once there is room.
                Err(StoreError::NoSpace) => {}
                done => done?,
            }
        }
        let detail = format!(
            "{}, commit {}, made at {} ms, {} of {} erasures applied again",
            note.backup,
            note.commit,
            note.made_ms,
            heads.len(),
            note.erased.len()
        );
        self.core.note_event(Draft::new("restore").detail(detail))?;
        Note::remove(&path).map_err(|error| StoreError::io(&error))
    }
}

impl Core {
    /// The tenants with these ids that are there. Nobody else uses the store yet.
    fn heads_of(&self, ids: &[String]) -> Result<Vec<(FileTag, Head, Vec<u8>)>, StoreError> {
        let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        for tag in self.known_heads() {
            let key = RecordKey::Head(tag).to_bytes();
            let sealed = self.backend.get(&key)?;
            let sealed = sealed.ok_or(StoreError::Damaged("a tenant's head"))?;
            let head = self.open_head(tag, &sealed)?;
            if ids.contains(head.tenant.to_string().as_str()) {
                found.push((tag, head, sealed));
            }
        }
        Ok(found)
    }
}
