//! Describes a store to open or create: where it lies, its keys, its clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use subtle::ConstantTimeEq;

use crate::backend::{Backend, Copy, Item, KeyStore, MemoryBackend, MemoryKeyStore};
use crate::clock::{Clock, SystemClock};
use crate::error::Error;
#[cfg(doc)]
use crate::key::KeyError;
use crate::key::{Credential, KdfParams, KeySource, Keyring, NewSlot, OsRandom, Random, Suite};
use crate::policy::{self, Policy};
use crate::store::{self, Ground, OpenMode, StoreDirectory, StoreError};

use super::rotate::{MasterRotated, NewKey};
use super::vault::Vault;

/// Describes a store to open or create. Made by [`Vault::builder`].
#[must_use]
pub struct VaultBuilder {
    place: Place,
    key: Option<KeySource>,
    mode: OpenMode,
    create: bool,
    keep_copy: bool,
    accept_loss: bool,
    policy: Option<Policy>,
    kdf: KdfParams,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

enum Place {
    Nowhere,
    Directory(PathBuf),
    Ground(Arc<dyn Backend>, Arc<dyn KeyStore>),
}

impl VaultBuilder {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Nowhere,
            key: None,
            mode: OpenMode::ReadWrite,
            create: false,
            keep_copy: false,
            accept_loss: false,
            policy: None,
            kdf: KdfParams::DEFAULT,
            clock: Arc::new(SystemClock),
            random: Arc::new(OsRandom),
        }
    }

    /// The store's directory, on a local disk. Default: none; this or
    /// [`VaultBuilder::in_memory`] must be called.
    pub fn path(mut self, directory: impl AsRef<Path>) -> Self {
        self.place = Place::Directory(directory.as_ref().to_path_buf());
        self
    }

    /// A store in memory with a key of its own, gone when it is dropped. For tests.
    pub fn in_memory(self) -> Self {
        let key = zeroize::Zeroizing::new("a store in memory needs no secret".to_owned());
        self.on(
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        )
        .key_source(KeySource::Passphrase(key))
        .kdf(KdfParams::FLOOR)
        .create(true)
    }

    /// A backend and key store of the caller's, in place of a directory. For tests and for
    /// other engines.
    pub fn on(mut self, backend: Arc<dyn Backend>, keys: Arc<dyn KeyStore>) -> Self {
        self.place = Place::Ground(backend, keys);
        self
    }

    /// Where the key comes from. Default: none; it must be named.
    pub fn key_source(mut self, source: KeySource) -> Self {
        self.key = Some(source);
        self
    }

    /// The key is in this file (see [`generate_key_file`](crate::generate_key_file)).
    /// Short for [`KeySource::KeyFile`].
    pub fn key_file(self, file: impl AsRef<Path>) -> Self {
        self.key_source(KeySource::KeyFile(file.as_ref().to_path_buf()))
    }

    /// Creates the store if there is none. Default: false.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The policy of a store that is created. Default: the shipped policy `default`. A
    /// store that exists keeps its own.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Writes no record and repairs nothing. Default: false. The lock file is still
    /// written, and the engine needs to write its own files when it opens them.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.mode = if read_only {
            OpenMode::ReadOnly
        } else {
            OpenMode::ReadWrite
        };
        self
    }

    /// Copies the engine's files before opening them after a crash, however large they
    /// are. Default: false, which copies up to 256 MiB.
    pub fn keep_copy(mut self, keep_copy: bool) -> Self {
        self.keep_copy = keep_copy;
        self
    }

    /// Opens a store although its data is not what STATE or its keyring say, if it is whole in
    /// itself: what was acknowledged after it is lost for good. Starts a new era, which is
    /// audited. For a directory that is opened for writing. Default: false, which refuses it.
    ///
    /// A store that has lost nothing is opened as ever.
    pub fn accept_loss(mut self, accept_loss: bool) -> Self {
        self.accept_loss = accept_loss;
        self
    }

    /// The cost of deriving a key from a passphrase, for a store that is created. Default:
    /// [`KdfParams::DEFAULT`].
    pub fn kdf(mut self, params: KdfParams) -> Self {
        self.kdf = params;
        self
    }

    /// Where the time comes from. Default: the system's clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where randomness comes from. Default: the operating system.
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`Error::code`] tells the kinds apart: no store, locked by another process, wrong
    /// key, damaged or rolled back, and so on.
    pub fn open(&self) -> Result<Vault, Error> {
        let source = self.key.as_ref().ok_or(Error::NoKeySource)?;
        match &self.place {
            Place::Nowhere => Err(Error::NoPath),
            Place::Directory(path) => {
                let path = path.clone();
                let credential = || Ok(source.resolve(Some(&path))?);
                self.open_directory(&path, credential)
            }
            Place::Ground(backend, keys) => {
                let ground = Ground {
                    backend: Arc::clone(backend),
                    keys: Arc::clone(keys),
                    clock: Arc::clone(&self.clock),
                    random: Arc::clone(&self.random),
                    place: None,
                };
                let credential = source.resolve(None)?;
                self.open_ground(ground, &credential)
            }
        }
    }

    /// Gives the store every key new, after a leak: the master key, all keys of the store and of
    /// each tenant, and everything stored sealed anew under them. Needs the store to itself.
    ///
    /// The slot of the builder's key stays, or `new` comes in its place; all others go, and
    /// there must be none unless `may_drop`. Interrupted at any moment, it either counts as a
    /// whole or has changed nothing. What audit entries from before are about can no longer be
    /// read afterwards: export the log first.
    ///
    /// # Errors
    /// [`KeyError::OtherSlots`], and as [`VaultBuilder::open`] or any read. The store is
    /// unchanged then.
    pub fn rotate_full(
        &self,
        new: Option<&NewKey<'_>>,
        may_drop: bool,
        progress: impl FnMut(u64, u64),
    ) -> Result<MasterRotated, Error> {
        let vault = self.open()?;
        let rotated = vault.rotate_whole(new, may_drop, progress);
        // Where it worked, the vault is closed already.
        let closed = vault.close();
        let rotated = rotated?;
        closed?;
        Ok(rotated)
    }

    /// Shows to whoever holds the store that this key opens it, without opening it: what
    /// [`Vault::is_proof`] accepts there for the same challenge. Takes no lock.
    ///
    /// # Errors
    /// [`Error::NoPath`] without a directory, and as [`VaultBuilder::open`] for the key.
    pub fn prove(&self, challenge: &[u8]) -> Result<Proof, Error> {
        let source = self.key.as_ref().ok_or(Error::NoKeySource)?;
        let Place::Directory(path) = &self.place else {
            return Err(Error::NoPath);
        };
        let copies = store::keyring_copies(path)?;
        let opened = open_keyring(&copies, &source.resolve(Some(path))?)?;
        Ok(Proof {
            proof: opened.keyring.prove(challenge),
            answer: opened.keyring.answer(challenge),
        })
    }

    /// The lock comes before the key: a store in use is reported at once, without the cost
    /// of deriving a key.
    fn open_directory(
        &self,
        path: &Path,
        credential: impl Fn() -> Result<Credential, Error>,
    ) -> Result<Vault, Error> {
        let mut made_with = None;
        let directory = match StoreDirectory::lock(path, self.mode) {
            Err(StoreError::NotAStore) if self.create && self.mode == OpenMode::ReadWrite => {
                self.create_directory(path, made_with.insert(credential()?))?
            }
            locked => locked?,
        };
        let copies = directory.keyring_copies()?;
        // Asking a second time could mean a second prompt, or a second run of a command.
        let credential = made_with.map_or_else(credential, Ok)?;
        let opened = open_keyring(&copies, &credential)?;
        let store = directory.open(
            opened.keyring,
            opened.repair.is_some(),
            Arc::clone(&self.clock),
            Arc::clone(&self.random),
            self.keep_copy,
            self.accept_loss && self.mode == OpenMode::ReadWrite,
        )?;
        let vault = Vault::new(store, Arc::clone(&self.random))?;
        vault.shared.store.finish_open()?;
        Ok(vault)
    }

    fn create_directory(
        &self,
        path: &Path,
        credential: &Credential,
    ) -> Result<StoreDirectory, Error> {
        let keyring = self.new_keyring(credential)?;
        let policy = self.policy_text()?;
        match StoreDirectory::create(path, keyring, &policy, &self.clock, &self.random) {
            // Another process may have made the store in the meantime.
            Err(StoreError::AlreadyExists) => match StoreDirectory::lock(path, self.mode) {
                Err(StoreError::NotAStore) => Err(StoreError::AlreadyExists.into()),
                locked => Ok(locked?),
            },
            Err(error) => Err(error.into()),
            Ok(()) => Ok(StoreDirectory::lock(path, self.mode)?),
        }
    }

    fn open_ground(&self, ground: Ground, credential: &Credential) -> Result<Vault, Error> {
        let read = |copy| {
            Ok::<_, Error>(
                ground
                    .keys
                    .read(Item::Keyring, copy)
                    .map_err(StoreError::from)?,
            )
        };
        let mut copies = [read(Copy::A)?, read(Copy::B)?];
        if self.create && copies.iter().all(Option::is_none) {
            let keyring = self.new_keyring(credential)?;
            let bytes = keyring.encode();
            for (at, copy) in [Copy::A, Copy::B].into_iter().enumerate() {
                ground
                    .keys
                    .write(Item::Keyring, copy, &bytes)
                    .map_err(StoreError::from)?;
                if let Some(slot) = copies.get_mut(at) {
                    *slot = Some(bytes.clone());
                }
            }
            store::create(&ground, keyring, &self.policy_text()?, 1)?;
        }
        let opened = open_keyring(&copies, credential)?;
        let checked = store::check(ground, &opened.keyring)?;
        let store = store::start(checked, opened.keyring, self.mode)?;
        Vault::new(store, Arc::clone(&self.random))
    }

    fn new_keyring(&self, credential: &Credential) -> Result<Keyring, Error> {
        let slot = NewSlot {
            label: "first",
            created_ms: self.clock.now(),
            params: self.kdf,
        };
        Ok(Keyring::create(
            Suite::XChaCha20Poly1305,
            credential,
            slot,
            &*self.random,
        )?)
    }

    fn policy_text(&self) -> Result<String, Error> {
        match &self.policy {
            Some(policy) => {
                // A policy that was changed in code may be one that would not load again.
                let text = policy.to_toml();
                policy::load(&text, "the new policy")?;
                Ok(text)
            }
            None => Ok(policy::load_named_or_path("default")?.to_toml()),
        }
    }
}

/// What shows that a key opens a store, and tells whether the other side's does.
pub struct Proof {
    proof: [u8; 32],
    answer: [u8; 32],
}

impl Proof {
    /// What [`Vault::is_proof`] accepts.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.proof
    }

    /// Whether [`Vault::answer_proof`] made this for the same challenge. In constant time.
    #[must_use]
    pub fn is_answer(&self, answer: &[u8]) -> bool {
        self.answer.as_slice().ct_eq(answer).into()
    }
}

fn open_keyring(
    copies: &[Option<Vec<u8>>; 2],
    credential: &Credential,
) -> Result<crate::key::Opened, Error> {
    let [a, b] = copies;
    Ok(Keyring::open([a.as_deref(), b.as_deref()], credential)?)
}
