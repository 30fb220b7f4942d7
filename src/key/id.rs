//! The 16-byte names of stores, tenants and tenant key files.

use std::fmt;

use crate::hex;

use super::SecretKey;
use super::mac::MacKey;

/// Bytes of an id or tag.
const ID_BYTES: usize = 16;

macro_rules! id {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; ID_BYTES]);

        /// 32 lower-case hexadecimal digits.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(&self.0))
            }
        }
    };
}

id! {
    /// A store's random id, drawn when it is made.
    StoreId
}

id! {
    /// A tenant's random id. A tenant made again under an old name has another.
    TenantId
}

id! {
    /// A tenant's name as the file system sees it: the first 16 bytes of
    /// HMAC-SHA256(store tag key, tenant name).
    FileTag
}

impl FileTag {
    /// The tag of the tenant `name`; `tag_key` is the store's tag key.
    pub(crate) fn of(tag_key: &MacKey, name: &str) -> Self {
        Self(first_half(tag_key.mac(&[name.as_bytes()])))
    }

    /// The tag of a file name made by `Display`; `None` for anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }
}

impl TenantId {
    /// What tells, of an erased tenant, whether this was its name: the first 16 bytes of
    /// HMAC-SHA256(tenant id, label, name). It stays right when the store's tag key changes.
    pub(crate) fn name_check(self, name: &str) -> [u8; ID_BYTES] {
        const LABEL: &[u8] = b"strongroom/v1/erased-name";
        let mut key = [0; super::KEY_BYTES];
        for (to, from) in key.iter_mut().zip(self.0) {
            *to = from;
        }
        let key = MacKey::new(&SecretKey::copy_of(&key));
        first_half(key.mac(&[LABEL, name.as_bytes()]))
    }
}

fn first_half(hash: [u8; 2 * ID_BYTES]) -> [u8; ID_BYTES] {
    let mut half = [0; ID_BYTES];
    for (to, from) in half.iter_mut().zip(hash) {
        *to = from;
    }
    half
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computed with Python's hmac.
    #[test]
    fn file_tag_matches_an_independent_implementation() {
        let key = SecretKey::copy_of(&std::array::from_fn(|i| u8::try_from(i).unwrap()));
        assert_eq!(
            FileTag::of(&MacKey::new(&key), "default").to_string(),
            "93d04d339a61a84418fc22444a00ca66"
        );
    }

    proptest! {
        #[test]
        fn a_tag_is_read_from_what_it_displays_only(tag in any::<[u8; 16]>()) {
            let text = FileTag(tag).to_string();
            prop_assert_eq!(FileTag::from_hex(&text), Some(FileTag(tag)));
            prop_assert_eq!(FileTag::from_hex(&text[1..]), None);
            let longer = format!("{text}0");
            prop_assert_eq!(FileTag::from_hex(&longer), None);
            let upper = text.to_uppercase();
            prop_assert_eq!(FileTag::from_hex(&upper).is_some(), upper == text);
        }
    }
}
