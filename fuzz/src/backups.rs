//! Backups written by docs/FORMAT.md, and real ones to be changed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arbitrary::{Arbitrary, Result, Unstructured};
use sha2::{Digest, Sha256};
use strongroom::backend::{MemoryBackend, MemoryKeyStore};
use strongroom::{BackupTargets, Vault};

use crate::keys::{Counted, key_source};

/// The bytes of both files of a small store's backup: records, keys.
pub static REAL: LazyLock<[Vec<u8>; 2]> = LazyLock::new(make);

/// A file of this process that is written anew for each input.
pub struct Scratch {
    path: PathBuf,
    file: Option<File>,
}

impl Scratch {
    /// One that does not exist yet, and goes when this is dropped.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let process = std::process::id();
        Self {
            path: directory.join(format!("strongroom-fuzz-{name}-{process}")),
            file: None,
        }
    }

    /// One without a name, so that nothing of it is left however the process ends.
    #[must_use]
    pub fn unnamed(name: &str) -> Self {
        let named = Self::named(name);
        let file = File::create(&named.path).expect("a scratch file can be made");
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Self {
            path,
            file: Some(file),
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts bytes in place of what an unnamed one held.
    pub fn write(&self, bytes: &[u8]) {
        let file = self.file.as_ref().expect("it is open");
        let length = bytes.len() as u64;
        let written = file.write_all_at(bytes, 0);
        written
            .and_then(|()| file.set_len(length))
            .expect("the scratch file can be written");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.file.is_none() {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// Where the sections of a whole backup begin; the header is the first.
#[must_use]
pub fn sections(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = HEADER_BYTES;
    while let Some(length) = bytes.get(at + 5..at + 9) {
        starts.push(at);
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        at += 9 + length as usize + 32;
    }
    starts
}

const HEADER_BYTES: usize = 53;

fn make() -> [Vec<u8>; 2] {
    let vault = Vault::builder()
        .on(
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        )
        .key_source(key_source())
        .random(Arc::new(Counted::default()))
        .create(true)
        .open()
        .expect("a store in memory opens");
    for (tenant, path) in [("one", "/memories/a.md"), ("two", "/memories/d/b.md")] {
        let tenant = vault.tenant(tenant).expect("a tenant's name");
        tenant
            .create(path, "text\n")
            .expect("a store in memory takes a file");
    }
    let files = [Scratch::named("records"), Scratch::named("keys")];
    let targets = BackupTargets {
        records: Some(files[0].path()),
        keys: Some(files[1].path()),
    };
    vault
        .backup(targets, |_, _, _| ())
        .expect("a backup is made");
    vault.close().expect("a store in memory closes");
    files
        .each_ref()
        .map(|file| std::fs::read(file.path()).expect("the backup was written"))
}

/// A backup whose hashes fit whatever stands in its sections.
#[derive(Debug)]
pub struct Built(pub Vec<u8>);

const SECTIONS_MAX: usize = 6;

impl<'a> Arbitrary<'a> for Built {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let is_keys = bool::arbitrary(u)?;
        let mut file = b"SRBACKUP\x01\x01\xfe\xfe".to_vec();
        file.push(if is_keys { 2 } else { 1 });
        let store: [u8; 16] = [7; 16];
        file.extend_from_slice(&store);
        file.extend_from_slice(&[0; 24]);
        let mut hash = Sha256::digest(&file);
        let mut layer = 0_u32;
        let mut tag = 0_u8;
        let mut keyrings = 0;
        let mut keys = 0_u64;
        let mut section =
            |file: &mut Vec<u8>, kind: u8, layer: u32, content: &[u8], is_whole: bool| {
                let mut head = vec![kind];
                head.extend_from_slice(&layer.to_be_bytes());
                let length = content.len() as u32 + u32::from(!is_whole);
                head.extend_from_slice(&length.to_be_bytes());
                hash = Sha256::new()
                    .chain_update(hash)
                    .chain_update(&head)
                    .chain_update(content)
                    .finalize();
                file.extend_from_slice(&head);
                file.extend_from_slice(content);
                file.extend_from_slice(&hash);
            };
        let root = sealed(u)?;
        if !is_keys {
            section(&mut file, 1, 0, &record(&[1], Some(&root)), true);
        }
        for _ in 0..SECTIONS_MAX {
            if u.is_empty() {
                break;
            }
            if u.ratio(1, 24)? {
                // Anything at all.
                let content: Vec<u8> = Vec::arbitrary(u)?;
                let whole = u.ratio(7, 8)?;
                section(&mut file, u.int_in_range(0..=6)?, layer, &content, whole);
                continue;
            }
            match (is_keys, u.int_in_range(0..=3)?) {
                (_, 0) => section(
                    &mut file,
                    4,
                    layer,
                    &vec![9; 16 * u.int_in_range(0..=3)?],
                    true,
                ),
                (true, 1) if keyrings == 0 => {
                    keyrings += 1;
                    section(&mut file, 3, layer, &Vec::<u8>::arbitrary(u)?, true);
                }
                (true, _) => {
                    tag = tag.wrapping_add(u.int_in_range(1..=2)?);
                    let mut content = vec![tag; 16];
                    content.extend(Vec::<u8>::arbitrary(u)?);
                    keys += 1;
                    section(&mut file, 2, layer, &content, true);
                }
                (false, _) => {
                    layer += u.int_in_range(0..=1)?;
                    // The next layer's keys begin anew; in the first they follow the root's.
                    layer = layer.max(1);
                    let content = records(u)?;
                    section(&mut file, 1, layer, &content, true);
                    layer += 1;
                }
            }
        }
        let end = if is_keys {
            if keyrings == 0 {
                section(&mut file, 3, layer, b"keyring", true);
            }
            keys.to_be_bytes().to_vec()
        } else {
            let seq = 5_u64.to_be_bytes();
            let mut end = seq.to_vec();
            end.push(1);
            end.extend_from_slice(&store);
            end.extend_from_slice(&[0; 8]);
            end.extend_from_slice(&[0, 0, 0, 1]);
            end.extend_from_slice(&seq);
            end.extend_from_slice(&Sha256::digest(&root));
            end.push(1);
            end.extend_from_slice(&[4; 32]);
            end
        };
        section(&mut file, 5, layer, &end, true);
        if u.ratio(1, 16)? {
            file.push(0);
        }
        Ok(Self(file))
    }
}

/// Records of one layer, with keys that ascend.
fn records(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut number = 0_u64;
    for _ in 0..u.int_in_range(0..=4)? {
        number += u.int_in_range(1..=3)?;
        let mut key = vec![*u.choose(&[7, 7, 7, 7, 7, 7, 2])?];
        if key[0] == 7 {
            key.extend_from_slice(&[5; 16]);
            key.extend_from_slice(&number.to_be_bytes());
        } else {
            key.extend_from_slice(&[number as u8; 16]);
        }
        let value = sealed(u)?;
        let value = u.ratio(3, 4)?.then_some(value);
        content.extend(record(&key, value.as_deref()));
    }
    Ok(content)
}

fn record(key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let mut out = vec![u8::from(value.is_some()), key.len() as u8];
    out.extend_from_slice(key);
    if let Some(value) = value {
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
    out
}

/// What looks like a sealed value from outside.
fn sealed(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut value = vec![1, 0, 0, 0, 1];
    value.resize(5 + 24 + 16 + u.int_in_range(0..=32)?, 8);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;

    #[test]
    fn at_least_three_in_ten_built_backups_are_accepted() {
        let scratch = Scratch::unnamed("test");
        let count = 2_000;
        let mut accepted = [0, 0];
        for Built(bytes) in built(count, 200) {
            scratch.write(&bytes);
            let is_ok = strongroom::verify_backup(scratch.path(), |_, _, _| ()).is_ok();
            accepted[usize::from(bytes[12] - 1)] += usize::from(is_ok);
        }
        println!("{accepted:?} (records, keys) of {count} accepted");
        assert!(
            accepted.iter().all(|n| n * 100 > count * 10),
            "{accepted:?}"
        );
        assert!(
            accepted.iter().sum::<usize>() * 10 > count * 3,
            "{accepted:?}"
        );
    }

    #[test]
    fn the_real_backup_is_accepted() {
        let scratch = Scratch::unnamed("real");
        for bytes in REAL.iter() {
            scratch.write(bytes);
            strongroom::verify_backup(scratch.path(), |_, _, _| ()).expect("it is whole");
        }
    }
}
