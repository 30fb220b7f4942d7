//! The open store as an embedder holds it: tenants, policy, keys, figures, checks.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::audit::Draft;
use crate::error::Error;
use crate::key::{Credential, KdfParams, NewSlot, Random, SlotInfo};
use crate::path::TenantName;
use crate::policy::{self, Policy};
use crate::record::Run;
use crate::retention::Schedules;
use crate::store::{Compacted, Depth, Store, StoreStats, VerifyReport};

use super::Tenant;
use super::builder::VaultBuilder;
use super::in_force::InForce;

/// An encrypted memory store with many tenants. Threads share one handle, or clones of it:
/// they are one open store, which [`Vault::close`] closes for all of them.
///
/// ```
/// use strongroom::{Vault, key::KeySource};
///
/// let home = tempfile::tempdir()?;
/// let key = home.path().join("store.key");
/// strongroom::generate_key_file(&key)?;
/// let vault = Vault::builder()
///     .path(home.path().join("store"))
///     .key_source(KeySource::KeyFile(key))
///     .create(true)
///     .open()?;
/// let tenant = vault.tenant("acme/user-17")?;
/// let listing = tenant.view("/memories", None)?;
/// assert!(!listing.is_error);
/// vault.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Vault {
    pub(super) shared: Arc<Shared>,
}

/// What a vault and its tenants' handles share.
pub(super) struct Shared {
    pub(super) store: Store,
    in_force: RwLock<Arc<InForce>>,
    /// One change of the policy at a time; readers of it never wait for the disk.
    changing: Mutex<()>,
    pub(super) random: Arc<dyn Random>,
}

/// A key slot of the store, as `key list` shows it.
pub type Slot = SlotInfo;

impl Shared {
    pub(super) fn fill_random(&self, out: &mut [u8]) -> Result<(), Error> {
        Ok(self.random.fill(out)?)
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Vault {
    /// Starts to describe the store to open.
    pub fn builder() -> VaultBuilder {
        VaultBuilder::new()
    }

    pub(super) fn new(store: Store, random: Arc<dyn Random>) -> Result<Self, Error> {
        let policy = policy::load(&store.policy(), "the store's policy")?;
        store.set_audit(policy.audit.clone());
        let in_force = Arc::new(InForce::new(policy)?);
        store.set_schedules(Schedules::new(Arc::clone(&in_force.policy)));
        let in_force = RwLock::new(in_force);
        Ok(Self {
            shared: Arc::new(Shared {
                store,
                in_force,
                changing: Mutex::new(()),
                random,
            }),
        })
    }

    /// The memory of one tenant. Opening one creates nothing; its first write does.
    ///
    /// # Errors
    /// [`Error::TenantName`] for a name that is none: 1 to 128 bytes, parts of
    /// `A-Z a-z 0-9 . _ @ : -` with `/` between them. [`Code::Key`](crate::Code::Key) when
    /// the tenant exists and its key file does not.
    pub fn tenant(&self, name: &str) -> Result<Tenant, Error> {
        let name = TenantName::parse(name)?;
        let tenant = self.shared.store.tenant(&name)?;
        Ok(Tenant {
            shared: Arc::clone(&self.shared),
            tenant,
            name: name.as_str().into(),
            rules: Arc::new(Mutex::new(None)),
            actor: None,
            session: None,
            is_reader: false,
        })
    }

    /// The policy that binds all commands.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.shared.in_force().policy)
    }

    /// Replaces the policy, for all handles at once. Files that are stored come under its
    /// redaction at their next read, or all at once by [`Tenant::rescan`].
    ///
    /// # Errors
    /// [`Error::Policy`] for a policy that was built in code and would not load, or as any
    /// write.
    pub fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        let text = policy.to_toml();
        let next = Arc::new(InForce::new(policy::load(&text, "the new policy")?)?);
        let _one_at_a_time = self
            .shared
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // What is expired under the old rules must not come back under the new ones.
        self.expire(None, false, |_, _| ())?;
        let before = self.policy().audit.clone();
        if next.policy.audit.enabled {
            // A log that begins tells of the change by which it does; one that ends, too.
            self.shared.store.set_audit(next.policy.audit.clone());
        }
        if let Err(error) = self.shared.store.set_policy(&text) {
            self.shared.store.set_audit(before);
            return Err(error.into());
        }
        self.shared
            .store
            .set_schedules(Schedules::new(Arc::clone(&next.policy)));
        self.shared.store.set_audit(next.policy.audit.clone());
        *self
            .shared
            .in_force
            .write()
            .unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Totals over the store and each tenant.
    ///
    /// # Errors
    /// When a tenant cannot be opened.
    pub fn stats(&self) -> Result<StoreStats, Error> {
        Ok(self.shared.store.stats()?)
    }

    /// Checks everything that is stored. Damage is in the report, not an error. A check of
    /// everything that found nothing is noted, see [`StoreStats::last_runs`].
    ///
    /// Writers of a tenant wait while that tenant is checked; readers do not.
    ///
    /// # Errors
    /// When the check itself cannot go on.
    pub fn verify(&self, depth: Depth) -> Result<VerifyReport, Error> {
        let report = self.shared.store.verify(depth)?;
        if depth == Depth::Full && report.problems.is_empty() {
            // What was found counts, also where it cannot be noted: on a store that is open
            // for reading only, or on a full disk.
            let draft = Draft::new("verify");
            let _noted = self.shared.store.note_run(Run::Verify, Some(draft));
        }
        Ok(report)
    }

    /// The bytes of all stored records, as they are sealed. Reads all of them. What the
    /// engine's files take beyond that ([`StoreStats::backend`]) is dead: overwritten,
    /// deleted, or reserved.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn live_bytes(&self) -> Result<u64, Error> {
        Ok(self.shared.store.live_bytes()?)
    }

    /// The key slots: each opens the store on its own.
    #[must_use]
    pub fn key_slots(&self) -> Vec<Slot> {
        self.shared
            .store
            .with_keyring(|keyring| keyring.slots().cloned().collect())
    }

    /// Adds a key slot, so that `credential` opens the store too. Returns the slot's id.
    ///
    /// # Errors
    /// When all 8 slots are taken, or as any write.
    pub fn add_key(
        &self,
        credential: &Credential,
        label: &str,
        params: KdfParams,
    ) -> Result<u64, Error> {
        let slot = NewSlot {
            label,
            created_ms: self.shared.store.now(),
            params,
        };
        let random = &*self.shared.random;
        Ok(self.shared.store.change_keyring("key add", |keyring| {
            keyring.add_slot(credential, slot, random)
        })?)
    }

    /// Removes a key slot. The last one cannot be removed.
    ///
    /// Whoever kept an old copy of the keyring and the removed credential can still open
    /// that copy: this does not change the store's keys.
    ///
    /// # Errors
    /// When there is no such slot, or as any write.
    pub fn remove_key(&self, id: u64) -> Result<(), Error> {
        Ok(self
            .shared
            .store
            .change_keyring("key remove", |keyring| keyring.remove_slot(id))?)
    }

    /// Whether the store takes writes. It does not once damage was found or a write failed,
    /// and on a handle that is closed or only reads.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check_writable(&self) -> Result<(), Error> {
        Ok(self.shared.store.check_writable()?)
    }

    /// Whether `proof` was made for this challenge by somebody whose key opens this store; see
    /// [`VaultBuilder::prove`].
    #[must_use]
    pub fn is_proof(&self, challenge: &[u8], proof: &[u8; 32]) -> bool {
        self.shared
            .store
            .with_keyring(|keyring| keyring.is_proof(challenge, proof))
    }

    /// Shows whoever made a proof for this challenge that this handle has a key of the store,
    /// see [`Proof::is_answer`](super::Proof::is_answer).
    #[must_use]
    pub fn answer_proof(&self, challenge: &[u8]) -> [u8; 32] {
        self.shared
            .store
            .with_keyring(|keyring| keyring.answer(challenge))
    }

    /// How often a loss was accepted (see
    /// [`VaultBuilder::accept_loss`](super::VaultBuilder::accept_loss)).
    #[must_use]
    pub fn era(&self) -> u32 {
        self.shared.store.era()
    }

    /// The format of the store's bytes. A store keeps the one that it has; a newer one than
    /// this build knows does not open.
    #[must_use]
    pub fn format(&self) -> u8 {
        self.shared.store.format()
    }

    /// Writes the engine's files anew, with only what is stored now in them: deleted
    /// ciphertext goes, and so does the room that it takes. Writes wait meanwhile, reads go on.
    /// `progress` is told how many of how many records are copied.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`](crate::StoreError::NoSpace) where there is no room for a second
    /// copy; the store is unchanged then. Otherwise as any write.
    pub fn compact(&self, progress: impl FnMut(u64, u64)) -> Result<Compacted, Error> {
        Ok(self.shared.store.compact(progress)?)
    }

    /// Makes everything durable and releases the store, with any error that dropping it
    /// would hide. Handles of tenants refuse work afterwards.
    ///
    /// # Errors
    /// When the last sync fails.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.shared.store.close()?)
    }
}
