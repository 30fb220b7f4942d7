//! Lower-case hexadecimal: the one form of ids, tags and hashes in texts and file names.

/// The bytes as two digits each.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a text that [`encode`] made of as many; `None` for anything else.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_text() {
        assert_eq!(decode(&encode(&[0x0f, 0xa0])), Some([0x0f, 0xa0]));
        for other in ["0fa", "0FA0", "+fa0", "0fa0 ", "0fa00", "", "0fäé"] {
            assert_eq!(decode::<2>(other), None, "{other}");
        }
    }
}
