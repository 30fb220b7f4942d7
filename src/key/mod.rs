//! Keys: key types, where keys come from, the keyring, tenant key files.
//!
//! ```text
//! passphrase -> Argon2id ─┐
//! key file, key command ──┴-> HKDF-SHA256 -> slot keys -> unwrap the master key
//! master key -> keyring MAC; unseals the random store keys
//! store key `tenant` -> unseals a tenant's base secret and record keys
//! ```
//!
//! Nothing here writes a store: keyring and tenant key files are bytes in,
//! bytes out. Only key *sources* do I/O. The suite is XChaCha20-Poly1305
//! (draft-irtf-cfrg-xchacha-03), HKDF- and HMAC-SHA256 (RFC 5869, 2104),
//! Argon2id (RFC 9106). Stored bytes are described in the modules that read
//! and write them: `keyring::format`, `tenant`, `line`.

mod bytes;
mod command;
mod error;
mod file;
mod id;
mod kdf;
mod keyring;
mod line;
mod plain;
mod secret;
mod source;
mod tenant;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) mod aead;
pub(crate) mod mac;

pub use error::KeyError;
pub use file::generate_key_file;
pub use id::{FileTag, StoreId, TenantId};
pub use kdf::KdfParams;
pub use keyring::{
    CopyName, KEYRING_BYTES_MAX, Keyring, LABEL_BYTES_MAX, MAX_SLOTS, NewSlot, Opened, SlotInfo,
    SlotKind, StoreKeys, Suite,
};
pub use secret::{KEY_BYTES, OsRandom, Random, SecretKey};
pub use source::{Credential, KEY_COMMAND_TIMEOUT, KeySource};
pub use tenant::{
    MAX_EPOCHS, TENANT_FILE_BYTES_MAX, TENANT_NAME_BYTES_MAX, TenantKeys, is_tenant_name,
};

pub(crate) use plain::Plain;
#[allow(unused_imports, reason = "for the seal and store layers")]
pub(crate) use secret::random_bytes;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when a type gains one of the traits (the trick of the
    /// `static_assertions` crate: two candidates make the call ambiguous).
    macro_rules! assert_not_impl {
        ($type:ty: $($bound:path),+) => {
            const _: fn() = || {
                trait AmbiguousIfImpl<A> {
                    fn item() {}
                }
                impl<T: ?Sized> AmbiguousIfImpl<()> for T {}
                $({
                    struct Invalid;
                    impl<T: ?Sized + $bound> AmbiguousIfImpl<Invalid> for T {}
                })+
                let _ = <$type as AmbiguousIfImpl<_>>::item;
            };
        };
    }

    macro_rules! assert_secret {
        ($($type:ty),+) => {
            $(assert_not_impl!(
                $type: std::fmt::Debug, std::fmt::Display, Clone, PartialEq, std::hash::Hash,
                serde::Serialize
            );)+
        };
    }

    assert_secret!(
        SecretKey,
        Credential,
        StoreKeys,
        Keyring,
        TenantKeys,
        aead::Cipher,
        mac::MacKey,
        kdf::SlotKeys
    );

    #[test]
    fn keys_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<SecretKey>();
        shared::<Keyring>();
        shared::<TenantKeys>();
        shared::<aead::Cipher>();
        shared::<mac::MacKey>();
        shared::<KeyError>();
    }

    /// Computed with Python's `cryptography` 48.
    #[test]
    fn derived_keys_match_an_independent_implementation() {
        let key = SecretKey::copy_of(&std::array::from_fn(|i| u8::try_from(i).unwrap()));
        assert_eq!(
            testing::hex(key.derive("strongroom/v1/inventory").expose()),
            "0b6733732545e64a566345a8fdc3012f9404635789bee414701fae7fc7b60bba"
        );
    }

    #[test]
    fn random_keys_differ() {
        let [a, b] = [(); 2].map(|()| SecretKey::random(&OsRandom).ok().unwrap());
        assert_ne!(a.expose(), b.expose());
        assert!(SecretKey::random(&testing::FailingRandom).is_err());
    }
}
