//! The store's own keys: drawn once, sealed in the keyring.

use zeroize::Zeroizing;

use super::format::{self, SealedStoreKeys};
use super::{Suite, fixed};
use crate::key::secret::random_bytes;
use crate::key::{KEY_BYTES, KeyError, Random, SecretKey, StoreId, aead};

/// The last one is the key before `tenant`, or zeros.
const STORE_KEYS: usize = 7;
/// Bytes of the sealed keys.
pub(super) const STORE_KEYS_SEALED_BYTES: usize = STORE_KEYS * KEY_BYTES + aead::TAG_BYTES;
const MASTER_SEAL_LABEL: &str = "strongroom/v1/keyring-store-keys";

/// The store's keys, random and independent of each other.
pub struct StoreKeys {
    /// File tags of tenants.
    pub(crate) tag: SecretKey,
    /// The root record.
    pub(crate) root: SecretKey,
    /// Audit entries.
    pub(crate) audit: SecretKey,
    /// Policy and job records.
    pub(crate) policy: SecretKey,
    /// The MAC of STATE.
    pub(crate) state: SecretKey,
    /// Wraps tenant key files.
    pub(crate) tenant: SecretKey,
    /// Wraps the key files that a rotation of the master key has not reached yet.
    pub(crate) former_tenant: Option<SecretKey>,
}

impl StoreKeys {
    pub(super) fn random(random: &dyn Random) -> Result<Self, KeyError> {
        Ok(Self {
            tag: SecretKey::random(random)?,
            root: SecretKey::random(random)?,
            audit: SecretKey::random(random)?,
            policy: SecretKey::random(random)?,
            state: SecretKey::random(random)?,
            tenant: SecretKey::random(random)?,
            former_tenant: None,
        })
    }

    /// The same keys again, for a keyring that is being changed.
    pub(super) fn copy(&self) -> Self {
        let copy = |key: &SecretKey| SecretKey::copy_of(key.expose());
        Self {
            tag: copy(&self.tag),
            root: copy(&self.root),
            audit: copy(&self.audit),
            policy: copy(&self.policy),
            state: copy(&self.state),
            tenant: copy(&self.tenant),
            former_tenant: self.former_tenant.as_ref().map(copy),
        }
    }

    pub(super) fn seal(
        &self,
        master: &SecretKey,
        suite: Suite,
        store_id: StoreId,
        random: &dyn Random,
    ) -> Result<SealedStoreKeys, KeyError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(STORE_KEYS * KEY_BYTES));
        let Self {
            tag,
            root,
            audit,
            policy,
            state,
            tenant,
            former_tenant,
        } = self;
        for key in [tag, root, audit, policy, state, tenant] {
            plain.extend_from_slice(key.expose());
        }
        match former_tenant {
            Some(key) => plain.extend_from_slice(key.expose()),
            None => plain.resize(STORE_KEYS * KEY_BYTES, 0),
        }
        let nonce = random_bytes(random)?;
        let aad = format::store_keys_aad(suite, store_id);
        let sealed = aead::seal(&master.derive(MASTER_SEAL_LABEL), &nonce, &aad, &plain);
        Ok(SealedStoreKeys {
            nonce,
            sealed: fixed(&sealed),
        })
    }

    pub(super) fn unseal(
        stored: &SealedStoreKeys,
        master: &SecretKey,
        suite: Suite,
        store_id: StoreId,
    ) -> Result<Self, KeyError> {
        let aad = format::store_keys_aad(suite, store_id);
        let key = master.derive(MASTER_SEAL_LABEL);
        let plain = aead::open(&key, &stored.nonce, &aad, &stored.sealed)
            .map_err(|_| KeyError::DamagedHeader)?;
        match plain.as_chunks::<KEY_BYTES>() {
            ([tag, root, audit, policy, state, tenant, former], []) => Ok(Self {
                tag: SecretKey::copy_of(tag),
                root: SecretKey::copy_of(root),
                audit: SecretKey::copy_of(audit),
                policy: SecretKey::copy_of(policy),
                state: SecretKey::copy_of(state),
                tenant: SecretKey::copy_of(tenant),
                former_tenant: (*former != [0; KEY_BYTES]).then(|| SecretKey::copy_of(former)),
            }),
            _ => Err(KeyError::DamagedHeader),
        }
    }
}
