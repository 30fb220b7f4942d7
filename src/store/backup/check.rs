//! Reads a backup and checks it without any key: that it is whole, and holds what a store has.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::key::TenantId;
use crate::record::{RecordKey, SetHash};
use crate::seal;
use crate::store::state::State;

use super::format::{BackupKind, Fields, Header, Part, Section, Sections, each_record};
use super::{BackupError, Step};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 * 1_024;

/// What the end of a file of records says.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) seq: u64,
    /// The slot of STATE that a store of these records begins with.
    pub(super) state: Vec<u8>,
}

impl End {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.seq.to_be_bytes().to_vec();
        out.extend_from_slice(&self.state);
        out
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let mut from = Fields(payload);
        Some(Self {
            seq: from.u64()?,
            state: from.0.to_vec(),
        })
    }
}

/// How many records, their bytes, and a hash over the set of them, in whatever order they come.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) hash: SetHash,
}

impl Sum {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hash = Sha256::new();
        for part in [key, value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
            self.bytes += part.len() as u64;
        }
        self.hash.add(&hash.finalize().into());
        self.records += 1;
    }
}

/// A whole file of records, as far as that can be seen without a key.
pub(super) struct Survey {
    pub(super) header: Header,
    pub(super) end: End,
    pub(super) state: State,
    /// Over the records of the backup's moment.
    pub(super) sum: Sum,
    pub(super) erased: Vec<TenantId>,
    /// File tags of the tenants that it has.
    pub(super) heads: BTreeSet<[u8; 16]>,
    /// Records that a later layer changes, and the last that does.
    last: HashMap<Vec<u8>, u32>,
}

impl Survey {
    /// Reads the whole file twice: once for its structure, once for what it comes to. `look` is
    /// handed every record of the backup's moment.
    pub(super) fn of(
        path: &Path,
        mut look: impl FnMut(&[u8], &[u8]),
        progress: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<Self, BackupError> {
        let mut last: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut erased = Vec::new();
        let mut end = None;
        let mut order: (u32, Vec<u8>) = (0, Vec::new());
        let header = each_section(path, BackupKind::Records, |section| {
            match section.part {
                Part::Records => each_record(&section.payload, |key, value| {
                    check_record(key, value)?;
                    if order.0 == section.layer && !order.1.is_empty() && *order.1 >= *key {
                        return Err(BackupError::Damaged("its records are out of order"));
                    }
                    order = (section.layer, key.to_vec());
                    if section.layer > 0 {
                        last.insert(key.to_vec(), section.layer);
                    } else if value.is_none() {
                        return Err(BackupError::Damaged("it removes what it never had"));
                    }
                    Ok(())
                })?,
                Part::Erased => erased.extend(tenant_ids(&section.payload)?),
                Part::End => end = End::decode(&section.payload),
                Part::KeyFile | Part::Keyring => {
                    return Err(BackupError::Damaged("it holds keys among its records"));
                }
            }
            Ok(())
        })?;
        let malformed = BackupError::Damaged("its end is malformed");
        let Some((end, (store, state))) = end.and_then(|end| {
            let state = State::unchecked(&end.state)?;
            Some((end, state))
        }) else {
            return Err(malformed);
        };
        if store != header.store || state.seq != end.seq {
            return Err(malformed);
        }
        let mut survey = Self {
            header,
            end,
            state,
            sum: Sum::default(),
            erased,
            heads: BTreeSet::new(),
            last,
        };
        let mut heads = BTreeSet::new();
        let mut has_root = false;
        let mut done = 0;
        survey.sum = survey.each_of(path, |key, value| {
            look(key, value);
            match RecordKey::from_bytes(key) {
                Some(RecordKey::Root) => {
                    has_root = <[u8; 32]>::from(Sha256::digest(value)) == state.root_digest;
                }
                Some(RecordKey::Head(tag)) => {
                    heads.insert(tag.0);
                }
                _ => {}
            }
            done += 1;
            progress(Step::Check, done, 0);
            Ok(())
        })?;
        if !has_root {
            return Err(BackupError::Damaged(
                "its root is not the one that its end names",
            ));
        }
        survey.heads = heads;
        Ok(survey)
    }

    /// Hands every record that the store had at the backup's moment to `each`, and checks in
    /// the end that these were the ones.
    pub(super) fn each(
        &self,
        path: &Path,
        each: impl FnMut(&[u8], &[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        if self.each_of(path, each)? != self.sum {
            return Err(changed_meanwhile());
        }
        Ok(())
    }

    fn each_of(
        &self,
        path: &Path,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), BackupError>,
    ) -> Result<Sum, BackupError> {
        let mut sum = Sum::default();
        let mut end = None;
        let header = each_section(path, BackupKind::Records, |section| {
            match section.part {
                Part::Records => each_record(&section.payload, |key, value| {
                    let is_last = match self.last.get(key) {
                        Some(layer) => *layer == section.layer,
                        None => section.layer == 0,
                    };
                    if let (true, Some(value)) = (is_last, value) {
                        sum.add(key, value);
                        each(key, value)?;
                    }
                    Ok(())
                })?,
                Part::End => end = End::decode(&section.payload),
                _ => {}
            }
            Ok(())
        })?;
        if header != self.header || end.as_ref() != Some(&self.end) {
            return Err(changed_meanwhile());
        }
        Ok(sum)
    }
}

fn changed_meanwhile() -> BackupError {
    BackupError::Damaged("it was changed while it was read")
}

/// A whole file of keys.
pub(super) struct KeysFile {
    pub(super) header: Header,
    pub(super) keyring: Vec<u8>,
    /// Each tenant's file tag and key file.
    pub(super) tenants: Vec<([u8; 16], Vec<u8>)>,
    pub(super) erased: Vec<TenantId>,
}

impl KeysFile {
    pub(super) fn read(path: &Path) -> Result<Self, BackupError> {
        let malformed = || BackupError::Damaged("a section of it is malformed");
        let mut keyring = None;
        let mut tenants: Vec<([u8; 16], Vec<u8>)> = Vec::new();
        let mut erased = Vec::new();
        let mut count = None;
        let header = each_section(path, BackupKind::Keys, |section| {
            match section.part {
                Part::Keyring if keyring.is_none() => keyring = Some(section.payload),
                Part::KeyFile => {
                    let (tag, bytes) = section
                        .payload
                        .split_first_chunk::<16>()
                        .ok_or_else(malformed)?;
                    if tenants.last().is_some_and(|(last, _)| last >= tag) {
                        return Err(BackupError::Damaged("its key files are out of order"));
                    }
                    tenants.push((*tag, bytes.to_vec()));
                }
                Part::Erased => erased.extend(tenant_ids(&section.payload)?),
                Part::End => count = Fields(&section.payload).u64(),
                Part::Keyring | Part::Records => return Err(malformed()),
            }
            Ok(())
        })?;
        if count != Some(tenants.len() as u64) {
            return Err(BackupError::Damaged("its end is malformed"));
        }
        Ok(Self {
            header,
            keyring: keyring.ok_or_else(malformed)?,
            tenants,
            erased,
        })
    }

    pub(super) fn tenant(&self, tag: [u8; 16]) -> Option<&[u8]> {
        let found = self.tenants.iter().find(|(other, _)| *other == tag)?;
        Some(&found.1)
    }
}

/// What a file says that it holds.
pub(super) fn kind_of(path: &Path) -> Result<BackupKind, BackupError> {
    Ok(open(path)?.0.kind)
}

fn open(path: &Path) -> Result<(Header, Sections<BufReader<File>>), BackupError> {
    let file = File::open(path).map_err(|error| BackupError::reading(&error))?;
    Sections::open(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Hands every section to `each`, the end among them.
fn each_section(
    path: &Path,
    kind: BackupKind,
    mut each: impl FnMut(Section) -> Result<(), BackupError>,
) -> Result<Header, BackupError> {
    let (header, mut sections) = open(path)?;
    if header.kind != kind {
        return Err(BackupError::OtherKind {
            holds: header.kind.word(),
            needed: kind.word(),
        });
    }
    while let Some(section) = sections.next()? {
        each(section)?;
    }
    Ok(header)
}

/// A record lies at a place that a store has, in an envelope, or in none.
fn check_record(key: &[u8], value: Option<&[u8]>) -> Result<(), BackupError> {
    let is_sealed = value.is_none_or(|value| seal::epoch_of(value).is_some());
    if RecordKey::from_bytes(key).is_none() || !is_sealed {
        return Err(BackupError::Damaged("it holds what is no record"));
    }
    Ok(())
}

fn tenant_ids(payload: &[u8]) -> Result<Vec<TenantId>, BackupError> {
    let (ids, rest) = payload.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(BackupError::Damaged("a section of it is malformed"));
    }
    Ok(ids.iter().map(|id| TenantId(*id)).collect())
}
