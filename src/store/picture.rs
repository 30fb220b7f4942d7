//! What lies where, how old it is and when it goes: one tenant added up, or many.

use std::collections::BTreeMap;

use crate::clock::UnixMillis;
use crate::record::DirentBody;

use super::core::Core;
use super::reader::{Reader, SCAN_RECORDS};
use super::tenant::Tenant;
use super::walk::Directory;
use super::{Abort, StoreError};

const DAY: UnixMillis = 24 * 3_600 * 1_000;

/// Where one band ends and the next begins, in days.
const BAND_DAYS: [u64; 5] = [1, 7, 30, 90, 365];

/// Files, and the bytes of their contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Amount {
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
}

/// Files between two limits of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Band {
    /// Below so many days; `None` for the last band, which has no end.
    pub under_days: Option<u64>,
    /// What lies in it.
    pub amount: Amount,
}

/// Sizes by directory, ages, and when what expires. Expired files are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// All files.
    pub all: Amount,
    /// By directory right below `/memories`, with all that is below it; `/memories` itself
    /// stands for the files right in it.
    pub directories: BTreeMap<String, Amount>,
    /// By the time since the last access.
    pub last_access: Vec<Band>,
    /// By the time until they expire, if nobody opens them.
    pub expires: Vec<Band>,
    /// Those that never do, by the policy.
    pub never: Amount,
    /// Those that a hold without an end keeps from it.
    pub held: Amount,
}

impl Default for Picture {
    fn default() -> Self {
        let bands = || {
            let ends = BAND_DAYS.map(Some).into_iter().chain([None]);
            let band = |under_days| Band {
                under_days,
                amount: Amount::default(),
            };
            ends.map(band).collect()
        };
        Self {
            all: Amount::default(),
            directories: BTreeMap::new(),
            last_access: bands(),
            expires: bands(),
            never: Amount::default(),
            held: Amount::default(),
        }
    }
}

impl From<(u64, u64)> for Amount {
    fn from((files, bytes): (u64, u64)) -> Self {
        Self { files, bytes }
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl Picture {
    /// Takes in another one's figures.
    fn add(&mut self, other: Self) {
        self.all.add(other.all);
        self.never.add(other.never);
        self.held.add(other.held);
        for (path, amount) in other.directories {
            self.directories.entry(path).or_default().add(amount);
        }
        let bands = [
            (&mut self.last_access, other.last_access),
            (&mut self.expires, other.expires),
        ];
        for (mine, theirs) in bands {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.amount.add(theirs.amount);
            }
        }
    }
}

/// Puts a file into the band that its time falls into.
fn put(bands: &mut [Band], time: UnixMillis, amount: Amount) {
    let fits = |band: &&mut Band| band.under_days.is_none_or(|days| time < days * DAY);
    if let Some(band) = bands.iter_mut().find(fits) {
        band.amount.add(amount);
    }
}

impl Core {
    /// Adds a tenant's files to the picture.
    pub(super) fn picture(&self, tenant: &Tenant, picture: &mut Picture) -> Result<(), StoreError> {
        let seen = self.read(tenant, |reader| {
            // A read that meets a write begins anew, so nothing may be added before its end.
            let mut seen = Picture::default();
            reader.look(&reader.root(), None, &mut seen)?;
            Ok::<_, Abort<()>>(seen)
        });
        match seen {
            Ok(seen) => picture.add(seen),
            Err(Abort::Failed(error)) => return Err(error),
            Err(Abort::Refused(())) => {}
        }
        Ok(())
    }

    /// The bytes of all keys and values that are stored.
    pub(super) fn live_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.backend.scan(&[], after.as_deref(), SCAN_RECORDS)?;
            let is_last = page.len() < SCAN_RECORDS;
            for (key, value) in page {
                bytes += (key.len() + value.len()) as u64;
                after = Some(key);
            }
            if is_last {
                return Ok(bytes);
            }
        }
    }
}

impl Reader<'_> {
    /// Adds what lies below a directory; `top` is the directory right below `/memories` in
    /// which it lies.
    fn look(
        &self,
        directory: &Directory,
        top: Option<&str>,
        seen: &mut Picture,
    ) -> Result<(), StoreError> {
        for entry in self.children(directory)? {
            let path = directory.path_of(&entry.name);
            if let Some(below) = directory.child(&entry) {
                self.look(&below, Some(top.unwrap_or(&path)), seen)?;
            }
            let (DirentBody::File(meta), Some(expiry)) = (&entry.body, &self.expiry) else {
                continue;
            };
            let amount = Amount {
                files: 1,
                bytes: meta.bytes,
            };
            seen.all.add(amount);
            let in_directory = top.unwrap_or(&directory.path).to_owned();
            seen.directories
                .entry(in_directory)
                .or_default()
                .add(amount);
            let accessed = expiry.jumps.settle(meta.accessed.max(directory.moved_at));
            let age = expiry.now.saturating_sub(accessed);
            put(&mut seen.last_access, age, amount);
            match expiry.due_at(&path, meta, directory.moved_at) {
                Some(due) => put(&mut seen.expires, due.saturating_sub(expiry.now), amount),
                None if expiry
                    .schedule
                    .due_at(&path, meta.created, accessed)
                    .is_some() =>
                {
                    seen.held.add(amount);
                }
                None => seen.never.add(amount),
            }
        }
        Ok(())
    }
}
