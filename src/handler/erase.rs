//! Erasing a tenant, and certificates of it that can be checked later.

use serde_json::{Value, json};

use crate::audit::hex;
use crate::error::Error;
use crate::path::TenantName;
use crate::store::{Abort, Erased, ErasureState, StoreError};

use super::Vault;

/// What kind of certificate this is.
pub(super) const CERTIFICATE: &str = "strongroom-erasure-1";

/// What no certificate can speak of.
const NOT_COVERED: [&str; 4] = [
    "copies of the store's directory `keys` made before the erasure, with a key of the store",
    "snapshots and backups of the disk from before the erasure",
    "blocks that an SSD, or a file system that writes to new places, keeps of overwritten files",
    "what was exported, or shown to a model, before the erasure",
];

/// What a check of a certificate found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasureCheck {
    /// This store made the certificate, and nothing in it was changed.
    pub is_genuine: bool,
    /// The store knows of this erasure, and the certificate says no more than it does.
    pub is_known: bool,
    /// Records or key files of the tenant that are still there.
    pub has_remains: bool,
    /// Files of the store that hold a part of the wrapped keys, by their path inside it.
    pub files_with_keys: Vec<String>,
    /// How many files were looked at; `None` for a store that does not lie in a directory.
    pub files: Option<u64>,
    /// The state that the certificate speaks of.
    pub state: Option<ErasureState>,
}

impl ErasureCheck {
    /// Whether the certificate holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.is_genuine && self.is_known && !self.has_remains && self.files_with_keys.is_empty()
    }
}

impl Vault {
    /// Erases a tenant: it does not exist from the first moment on, its keys are destroyed, and
    /// its records removed. Returns once all of this is done. What is interrupted goes on when
    /// the store is next opened for writing. Its audit entries stay, without what they were
    /// about.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTenant`], [`StoreError::Held`] where a hold keeps anything of it,
    /// or as any write.
    pub fn erase_tenant(
        &self,
        name: &str,
        progress: impl FnMut(u64, u64),
    ) -> Result<Erased, Error> {
        let store = &self.shared.store;
        let job = match store.begin_erasure(&TenantName::parse(name)?) {
            Ok(job) => job,
            Err(Abort::Refused(None)) => return Err(StoreError::NoSuchTenant.into()),
            Err(Abort::Refused(Some(_))) => return Err(StoreError::Held.into()),
            Err(Abort::Failed(error)) => return Err(error.into()),
        };
        let waited = store.wait_for_job(job, progress);
        match (waited, store.erased_by(job)) {
            (Ok(()), Some(erased)) => Ok(erased),
            // What is left is to write the engine's files anew, which needs room.
            (Err(StoreError::NoSpace), Some(erased)) if erased.state == ErasureState::Deleted => {
                Ok(erased)
            }
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(StoreError::Damaged("the list of unfinished work").into()),
        }
    }

    /// The tenants that were erased, the oldest first.
    #[must_use]
    pub fn erased(&self) -> Vec<Erased> {
        let mut all = self.shared.store.erased();
        all.retain(|erased| erased.state != ErasureState::Rekeyed);
        all
    }

    /// The tenants of this name that were erased, the oldest first.
    ///
    /// # Errors
    /// [`Error::TenantName`].
    pub fn erased_as(&self, name: &str) -> Result<Vec<Erased>, Error> {
        let name = TenantName::parse(name)?;
        let store = &self.shared.store;
        let mut all = self.erased();
        all.retain(|erased| store.was_named(erased, name.as_str()));
        Ok(all)
    }

    /// A certificate of an erasure: one JSON object with a keyed hash that only this store's
    /// keys can make. `name` is written into it where it is the tenant's.
    #[must_use]
    pub fn certificate(&self, erased: &Erased, name: Option<&str>) -> Value {
        let store = &self.shared.store;
        let name = name.filter(|name| store.was_named(erased, name));
        let wrapped: Vec<String> = erased.traces.iter().map(|trace| hex(trace)).collect();
        let mut certificate = json!({
            "certificate": CERTIFICATE,
            "store": store.id().to_string(),
            "tenant": name,
            "tenant_id": erased.tenant_id,
            "former_tenant_ids": erased.former_ids,
            "file_tag": erased.file_tag,
            "state": state_word(erased.state),
            "started_ms": erased.started,
            "deleted_ms": erased.deleted,
            "purged_ms": erased.purged,
            "audit_last": erased.audit_last,
            "audit_tip": erased.audit_tip,
            "wrapped_key_traces": wrapped,
            "not_covered": NOT_COVERED,
        });
        let mac = hex(&store.certify(certificate.to_string().as_bytes()));
        if let Some(members) = certificate.as_object_mut() {
            members.insert("mac".to_owned(), mac.into());
        }
        certificate
    }

    /// Checks a certificate: its keyed hash, and that the raw files of the store hold nothing
    /// of the tenant's wrapped keys.
    ///
    /// # Errors
    /// When the store's files cannot be read.
    pub fn verify_erasure(&self, certificate: &str) -> Result<ErasureCheck, Error> {
        let store = &self.shared.store;
        let mut check = ErasureCheck {
            is_genuine: false,
            is_known: false,
            has_remains: false,
            files_with_keys: Vec::new(),
            files: None,
            state: None,
        };
        let Some((signed, mac, members)) = take_apart(certificate) else {
            return Ok(check);
        };
        check.is_genuine = store.is_certified(signed.as_bytes(), &mac);
        if !check.is_genuine {
            return Ok(check);
        }
        let text = |name: &str| {
            members
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let id = text("tenant_id");
        check.state = [
            ErasureState::Running,
            ErasureState::Deleted,
            ErasureState::Purged,
        ]
        .into_iter()
        .find(|state| state_word(*state) == text("state"));
        let known = store
            .erased()
            .into_iter()
            .find(|erased| erased.tenant_id == id);
        check.is_known = known.as_ref().is_some_and(|erased| {
            check
                .state
                .is_some_and(|state| rank(state) <= rank(erased.state))
        });
        check.has_remains = store.has_remains(id)?;
        if let Some(erased) = known
            && let Some((files, found)) = store.find_in_files(&erased.traces)?
        {
            // The record of the erasure itself is sealed, so it holds no trace in plain.
            check.files = Some(files);
            check.files_with_keys = found;
        }
        Ok(check)
    }
}

/// The word for a state, as it stands in a certificate.
#[must_use]
pub fn state_word(state: ErasureState) -> &'static str {
    match state {
        ErasureState::Running => "running",
        ErasureState::Deleted => "deleted",
        ErasureState::Purged => "purged",
        ErasureState::Rekeyed => "rekeyed",
    }
}

fn rank(state: ErasureState) -> u8 {
    match state {
        ErasureState::Running => 0,
        ErasureState::Deleted => 1,
        ErasureState::Purged | ErasureState::Rekeyed => 2,
    }
}

type Members = serde_json::Map<String, Value>;

/// The text that was signed, the keyed hash, and the members.
fn take_apart(certificate: &str) -> Option<(String, [u8; 32], Members)> {
    let mut members: Members = serde_json::from_str(certificate).ok()?;
    let mac = members.remove("mac")?;
    let mac = mac.as_str()?;
    let mut bytes = [0; 32];
    if mac.len() != 64 || !mac.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(mac.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    let is_one = members.get("certificate").and_then(Value::as_str) == Some(CERTIFICATE);
    let signed = Value::Object(members.clone()).to_string();
    is_one.then_some((signed, bytes, members))
}
