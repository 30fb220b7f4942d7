//! The key line: 32 key bytes as one line of text with a checksum.
//!
//! `strongroom-key-1 ` and then 48 characters of base64url (RFC 4648,
//! section 5, no padding): the key (32 bytes) and the first 4 bytes of
//! SHA-256(`strongroom-key-1 checksum` ‖ key).

use base64ct::{Base64UrlUnpadded, Encoding};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::mac::sha256;
use super::{KEY_BYTES, KeyError, SecretKey};

const PREFIX: &str = "strongroom-key-";
const VERSION: &str = "1";
const CHECKSUM_LABEL: &[u8] = b"strongroom-key-1 checksum";
const CHECKSUM_BYTES: usize = 4;
const PAYLOAD_BYTES: usize = KEY_BYTES + CHECKSUM_BYTES;
/// Characters of base64url for 36 bytes.
const PAYLOAD_CHARS: usize = PAYLOAD_BYTES / 3 * 4;

/// The key line of `key`, without a newline.
pub(super) fn write(key: &SecretKey) -> Zeroizing<String> {
    let mut payload = Zeroizing::new([0; PAYLOAD_BYTES]);
    let (head, tail) = payload.split_at_mut(KEY_BYTES);
    head.copy_from_slice(key.expose());
    tail.copy_from_slice(&checksum(key.expose()));

    let mut chars = Zeroizing::new([0; PAYLOAD_CHARS]);
    #[expect(
        clippy::expect_used,
        reason = "36 bytes are 48 characters of base64 (RFC 4648)"
    )]
    let encoded = Base64UrlUnpadded::encode(payload.as_slice(), chars.as_mut_slice())
        .expect("the buffer fits exactly");
    let mut line = Zeroizing::new(String::with_capacity(
        PREFIX.len() + VERSION.len() + 1 + PAYLOAD_CHARS,
    ));
    for part in [PREFIX, VERSION, " ", encoded] {
        line.push_str(part);
    }
    line
}

/// The key of a key line; blanks and line ends around it do not count.
pub(super) fn parse(text: &[u8]) -> Result<SecretKey, KeyError> {
    let rest = text
        .trim_ascii()
        .strip_prefix(PREFIX.as_bytes())
        .ok_or(KeyError::NotAKeyLine)?;
    let version_end = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .ok_or(KeyError::MistypedKeyLine)?;
    let (version, payload) = rest
        .split_at_checked(version_end)
        .ok_or(KeyError::NotAKeyLine)?;
    match version {
        b"" => return Err(KeyError::NotAKeyLine),
        v if v == VERSION.as_bytes() => {}
        _ => return Err(KeyError::NewerKeyLine),
    }
    if !payload.first().is_some_and(u8::is_ascii_whitespace) {
        return Err(KeyError::MistypedKeyLine);
    }
    let chars: &[u8; PAYLOAD_CHARS] = payload
        .trim_ascii()
        .try_into()
        .map_err(|_| KeyError::MistypedKeyLine)?;
    let mut bytes = Zeroizing::new([0; PAYLOAD_BYTES]);
    Base64UrlUnpadded::decode(chars, bytes.as_mut_slice())
        .map_err(|_| KeyError::MistypedKeyLine)?;
    let (key, sum) = bytes
        .split_first_chunk::<KEY_BYTES>()
        .ok_or(KeyError::MistypedKeyLine)?;
    if !bool::from(checksum(key).as_slice().ct_eq(sum)) {
        return Err(KeyError::MistypedKeyLine);
    }
    Ok(SecretKey::copy_of(key))
}

fn checksum(key: &[u8; KEY_BYTES]) -> [u8; CHECKSUM_BYTES] {
    let [a, b, c, d, ..] = sha256(&[CHECKSUM_LABEL, key]);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "strongroom-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9Eia7N";

    fn counting_key() -> SecretKey {
        SecretKey::copy_of(&std::array::from_fn(|i| u8::try_from(i).unwrap()))
    }

    #[test]
    fn matches_an_independent_implementation() {
        assert_eq!(write(&counting_key()).as_str(), LINE);
        assert_eq!(crate::vectors::vector("key_line"), LINE);
    }

    #[test]
    fn blanks_and_line_ends_around_the_line_do_not_count() {
        for text in [
            LINE.to_owned(),
            format!("{LINE}\n"),
            format!("  {LINE} \r\n\n"),
            LINE.replace(' ', "  \t"),
        ] {
            let key = parse(text.as_bytes()).ok().unwrap();
            assert_eq!(key.expose(), counting_key().expose());
        }
    }

    #[test]
    fn mistyped_and_foreign_lines_are_told_apart() {
        let parse = |text: &str| parse(text.as_bytes()).err().unwrap();
        for text in [
            "",
            "hello",
            "strongroom-key",
            "strongroom-key-x AAEC",
            "AAECAwQF",
        ] {
            assert!(matches!(parse(text), KeyError::NotAKeyLine), "{text}");
        }
        for text in [
            &LINE[..LINE.len() - 1],
            &LINE.replace("1 A", "1A"),
            &LINE.replace("AAEC", "AAEB"),
            &LINE.replace("AAEC", "AA+C"),
            &format!("{LINE}A"),
            &format!("{LINE}\n{LINE}"),
            "strongroom-key-1",
            "strongroom-key-1 ",
        ] {
            assert!(matches!(parse(text), KeyError::MistypedKeyLine), "{text}");
        }
        assert!(matches!(
            parse(&LINE.replace("key-1", "key-2")),
            KeyError::NewerKeyLine
        ));
    }

    #[test]
    fn every_single_wrong_character_is_noticed() {
        for at in "strongroom-key-1 ".len()..LINE.len() {
            for wrong in "AZaz09-_+ ".bytes() {
                let mut line = LINE.as_bytes().to_vec();
                if line[at] != wrong {
                    line[at] = wrong;
                    assert!(matches!(parse(&line), Err(KeyError::MistypedKeyLine)));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in any::<[u8; 32]>()) {
            let line = write(&SecretKey::copy_of(&bytes));
            let key = parse(line.as_bytes()).ok().unwrap();
            prop_assert_eq!(key.expose(), &bytes);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(parse(&bytes).is_err());
            let mut line = b"strongroom-key-1 ".to_vec();
            line.extend_from_slice(&bytes);
            prop_assert!(parse(&line).is_err());
        }
    }
}
