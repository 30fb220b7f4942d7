//! Turns a passphrase or key into the keys of one slot, within cost caps.

use std::fs::File;
use std::io::Read;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use hkdf::Hkdf;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::secret::expand;
use super::{Credential, KEY_BYTES, KeyError, SecretKey};

/// Bytes of a slot's salt.
pub(super) const SALT_BYTES: usize = 32;
/// Most work that is done for one slot: memory times passes, in KiB (4 GiB).
const WORK_KIB_MAX: u64 = 4 * 1024 * 1024;
/// Most lanes; they cost a reader nothing, the cap only keeps the field sane.
const LANES_MAX: u32 = 16;

/// Cost of Argon2id (RFC 9106, version 0x13) for a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KdfParams {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl KdfParams {
    /// 64 MiB, 3 passes, 4 lanes: the second recommendation of RFC 9106,
    /// section 4.
    pub const DEFAULT: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 4,
    };
    /// The least that is accepted: 19 MiB, 2 passes, 1 lane.
    pub const FLOOR: Self = Self {
        memory_kib: 19 * 1024,
        passes: 2,
        lanes: 1,
    };

    /// Whether the parameters are at or above the floor and well formed.
    pub(super) fn in_range(self) -> bool {
        self.memory_kib >= Self::FLOOR.memory_kib
            && self.passes >= Self::FLOOR.passes
            && (1..=LANES_MAX).contains(&self.lanes)
    }

    /// Refuses what costs more than the caps: 4 GiB of work, and half of the
    /// memory that is available (where the system says how much).
    pub(super) fn check_cost(self, available_kib: Option<u64>) -> Result<(), KeyError> {
        let work_kib = u64::from(self.memory_kib) * u64::from(self.passes);
        let memory_kib_max = available_kib.map_or(u64::MAX, |available| available / 2);
        if work_kib > WORK_KIB_MAX || u64::from(self.memory_kib) > memory_kib_max {
            return Err(self.too_expensive());
        }
        Ok(())
    }

    fn too_expensive(self) -> KeyError {
        KeyError::KdfTooExpensive {
            memory_kib: self.memory_kib,
            passes: self.passes,
        }
    }
}

impl Default for KdfParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a slot's credential gives: the key that wraps the master key, and
/// the commitment. XChaCha20-Poly1305 alone does not commit to its key: a
/// crafted slot could open under many passphrases (Len, Grubbs, Ristenpart,
/// "Partitioning Oracle Attacks", 2021). The commitment rules that out.
pub(super) struct SlotKeys {
    pub(super) wrap: SecretKey,
    commitment: SecretKey,
}

impl SlotKeys {
    /// The commitment to store.
    pub(super) fn commitment(&self) -> [u8; KEY_BYTES] {
        *self.commitment.expose()
    }

    /// Whether this is the credential of the slot with `commitment`, in
    /// constant time.
    pub(super) fn commits_to(&self, commitment: &[u8; KEY_BYTES]) -> bool {
        self.commitment.expose().ct_eq(commitment).into()
    }
}

/// Derives slot keys from one credential; a derivation asked for twice (both
/// keyring copies hold the same slot) is run once.
pub(super) struct Stretcher<'a> {
    credential: &'a Credential,
    available_kib: Option<u64>,
    done: Vec<(Option<KdfParams>, [u8; SALT_BYTES], SlotKeys)>,
}

impl<'a> Stretcher<'a> {
    /// `available_kib`: see [`memory_available_kib`].
    pub(super) fn new(credential: &'a Credential, available_kib: Option<u64>) -> Self {
        Self {
            credential,
            available_kib,
            done: Vec::new(),
        }
    }

    /// The slot keys under `salt`; `params` are used for passphrases only.
    pub(super) fn slot_keys(
        &mut self,
        params: Option<KdfParams>,
        salt: &[u8; SALT_BYTES],
    ) -> Result<&SlotKeys, KeyError> {
        let known = self
            .done
            .iter()
            .position(|(p, s, _)| *p == params && s == salt);
        if known.is_none() {
            let keys = derive_slot_keys(self.credential, params, salt, self.available_kib)?;
            self.done.push((params, *salt, keys));
        }
        let done = known.map_or_else(|| self.done.last(), |at| self.done.get(at));
        #[expect(
            clippy::expect_used,
            reason = "it was either found at this place or pushed just now"
        )]
        let (_, _, keys) = done.expect("the derivation is in the list");
        Ok(keys)
    }

    /// How many derivations were run.
    #[cfg(test)]
    pub(super) fn runs(&self) -> usize {
        self.done.len()
    }
}

/// Memory that can be had without swapping, in KiB: `MemAvailable` of Linux;
/// `None` where the system does not say.
pub(super) fn memory_available_kib() -> Option<u64> {
    let mut text = String::new();
    File::open("/proc/meminfo")
        .ok()?
        .take(64 * 1024)
        .read_to_string(&mut text)
        .ok()?;
    parse_meminfo(&text)
}

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn derive_slot_keys(
    credential: &Credential,
    params: Option<KdfParams>,
    salt: &[u8; SALT_BYTES],
    available_kib: Option<u64>,
) -> Result<SlotKeys, KeyError> {
    // A passphrase and a key never lead to the same slot keys: the labels differ.
    let (input, wrap, commitment) = match credential.passphrase() {
        Some(passphrase) => (
            &argon2id(
                passphrase.as_bytes(),
                params.unwrap_or_default(),
                salt,
                available_kib,
            )?,
            "strongroom/v1/slot-passphrase/wrap",
            "strongroom/v1/slot-passphrase/commitment",
        ),
        None => (
            credential.raw_key().ok_or(KeyError::WrongCredential)?,
            "strongroom/v1/slot-raw-key/wrap",
            "strongroom/v1/slot-raw-key/commitment",
        ),
    };
    let hkdf = Hkdf::<Sha256>::new(Some(salt), input.expose());
    Ok(SlotKeys {
        wrap: expand(&hkdf, wrap),
        commitment: expand(&hkdf, commitment),
    })
}

fn argon2id(
    passphrase: &[u8],
    params: KdfParams,
    salt: &[u8; SALT_BYTES],
    available_kib: Option<u64>,
) -> Result<SecretKey, KeyError> {
    if !params.in_range() {
        return Err(KeyError::KdfOutOfRange);
    }
    params.check_cost(available_kib)?;
    let argon_params = Params::new(
        params.memory_kib,
        params.passes,
        params.lanes,
        Some(KEY_BYTES),
    )
    .map_err(|_| KeyError::KdfOutOfRange)?;
    // The memory is ours and not the crate's, because the crate gives its own
    // back without zeroing it.
    let mut memory = Zeroizing::new(Vec::new());
    let blocks = argon_params.block_count();
    memory
        .try_reserve_exact(blocks)
        .map_err(|_| params.too_expensive())?;
    memory.resize(blocks, Block::default());
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, argon_params);
    SecretKey::build(|out| {
        argon
            .hash_password_into_with_memory(passphrase, salt, out, memory.as_mut_slice())
            .map_err(|_| KeyError::KdfOutOfRange)
    })
}

#[cfg(test)]
mod tests {
    use argon2::{AssociatedData, ParamsBuilder};

    use super::*;
    use crate::key::testing::{hex, raw_credential};

    /// RFC 9106, section 5.3: the crate is the algorithm we mean.
    #[test]
    fn argon2id_matches_rfc_9106() {
        let params = ParamsBuilder::new()
            .m_cost(32)
            .t_cost(3)
            .p_cost(4)
            .data(AssociatedData::new(&[4; 12]).unwrap())
            .build()
            .unwrap();
        let argon =
            Argon2::new_with_secret(&[3; 8], Algorithm::Argon2id, Version::V0x13, params).unwrap();
        let mut out = [0; 32];
        argon
            .hash_password_into(&[1; 32], &[2; 16], &mut out)
            .unwrap();
        assert_eq!(
            hex(&out),
            "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"
        );
    }

    /// RFC 5869, appendices A.1 to A.3: the crate is the HKDF we mean.
    #[test]
    fn hkdf_matches_rfc_5869() {
        let range = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
        for (salt, input, info, expected) in [
            (
                Some(range(0x00, 0x0c)),
                vec![0x0b; 22],
                range(0xf0, 0xf9),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
            ),
            (
                Some(range(0x60, 0xaf)),
                range(0x00, 0x4f),
                range(0xb0, 0xff),
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c\
                 59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71\
                 cc30c58179ec3e87c14c01d5c1f3434f1d87",
            ),
            (
                None,
                vec![0x0b; 22],
                Vec::new(),
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
            ),
        ] {
            let mut out = vec![0; expected.len() / 2];
            Hkdf::<Sha256>::new(salt.as_deref(), &input)
                .expand(&info, &mut out)
                .unwrap();
            assert_eq!(hex(&out), expected);
        }
    }

    /// Computed with Python's `cryptography` 48 (OpenSSL's Argon2id and HKDF).
    #[test]
    fn slot_keys_match_an_independent_implementation() {
        let passphrase = Credential::from_passphrase("correct horse").unwrap();
        let keys = derive_slot_keys(&passphrase, Some(KdfParams::FLOOR), &[7; 32], None).unwrap();
        assert_eq!(
            hex(keys.wrap.expose()),
            "30eb48be31e986ea7d15541a8551992d6126c59866c1d02c92e42c4a461f02c7"
        );
        assert_eq!(
            hex(&keys.commitment()),
            "b78382f4de1d06110ffd417648b434c4d6adb82824272d9189b4af80ba2d612b"
        );

        let key = raw_credential(|i| i);
        let keys = derive_slot_keys(&key, None, &[7; 32], None).unwrap();
        assert_eq!(
            hex(keys.wrap.expose()),
            "e3b28eb2d92525f4979e9c35b952620a3ab29a3185773a2969c023cb4bfd24e4"
        );
        assert_eq!(
            hex(&keys.commitment()),
            "c2c122731fdc3e2de683f7b4b21f0bf1bc7d09a30d5e23be375567067d22a077"
        );
        assert!(keys.commits_to(&keys.commitment()));
        assert!(!keys.commits_to(&[0; 32]));
    }

    #[test]
    fn cost_caps_hold_at_their_edges() {
        let cost = |memory_kib, passes, available| {
            KdfParams {
                memory_kib,
                passes,
                lanes: 1,
            }
            .check_cost(available)
            .is_ok()
        };
        assert!(cost(2 * 1024 * 1024, 2, None));
        assert!(!cost(2 * 1024 * 1024 + 1, 2, None));
        assert!(!cost(u32::MAX, u32::MAX, None));
        assert!(cost(64 * 1024, 3, Some(128 * 1024)));
        assert!(!cost(64 * 1024, 3, Some(128 * 1024 - 1)));
    }

    #[test]
    fn range_holds_at_its_edges() {
        let range = |memory_kib, passes, lanes| {
            KdfParams {
                memory_kib,
                passes,
                lanes,
            }
            .in_range()
        };
        assert!(range(19 * 1024, 2, 1) && range(19 * 1024, 2, 16));
        assert!(!range(19 * 1024 - 1, 2, 1));
        assert!(!range(19 * 1024, 1, 1));
        assert!(!range(19 * 1024, 2, 0));
        assert!(!range(19 * 1024, 2, 17));
        assert!(KdfParams::DEFAULT.in_range());
    }

    #[test]
    fn meminfo_is_read_strictly() {
        let text = "MemTotal:  9 kB\nMemFree: 1 kB\nMemAvailable:    7405060 kB\n";
        assert_eq!(parse_meminfo(text), Some(7_405_060));
        assert_eq!(parse_meminfo("MemAvailable: 12\n"), None);
        assert_eq!(parse_meminfo("MemAvailable: -1 kB\n"), None);
        assert_eq!(parse_meminfo(""), None);
    }

    #[test]
    fn the_same_derivation_is_run_once() {
        let key = raw_credential(|_| 1);
        let mut stretcher = Stretcher::new(&key, None);
        stretcher.slot_keys(None, &[1; 32]).unwrap();
        stretcher.slot_keys(None, &[1; 32]).unwrap();
        assert_eq!(stretcher.runs(), 1);
        stretcher.slot_keys(None, &[2; 32]).unwrap();
        assert_eq!(stretcher.runs(), 2);
    }
}
