//! Finds the `tool_use` id in a line that could not be read as JSON.

/// An id may have this many characters; longer ones are not answered to.
pub const TOOL_USE_ID_CHARS_MAX: usize = 256;

/// Whether `id` may be echoed: 1 to 256 visible ASCII characters.
pub(super) fn is_valid(id: &str) -> bool {
    (1..=TOOL_USE_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
}

/// Looks for the field `id` of the outermost object, as well as a damaged or cut
/// line allows.
///
/// Fields of inner objects and text inside strings are passed over. Two ids that
/// differ, an id with escapes, or a field `command` beside it (a bare input,
/// whose `id` would be an unknown field) give none: a wrong id is worse than
/// no id.
pub(super) fn find(line: &[u8]) -> Option<String> {
    let mut found: Option<&str> = None;
    let mut depth = 0_usize;
    let mut rest = line;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some((text, after)) = split_string(rest) else {
                    break; // cut inside this string
                };
                rest = after;
                let Some(value) = after_colon(after).filter(|_| depth == 1) else {
                    continue;
                };
                if text == b"command" {
                    return None;
                }
                if text == b"id" {
                    let id = string_value(value)?;
                    if found.is_some_and(|before| before != id) {
                        return None;
                    }
                    found = Some(id);
                    // The value itself is passed over by the next turn.
                }
            }
            _ => {}
        }
    }
    found.map(str::to_owned)
}

/// Splits after the closing quote of a string whose opening quote is gone.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (text, rest) = bytes.split_at_checked(end)?;
    Some((text, rest.get(1..)?))
}

/// What follows the colon, if a colon follows: then the string was a field name.
fn after_colon(bytes: &[u8]) -> Option<&[u8]> {
    Some(
        bytes
            .trim_ascii_start()
            .strip_prefix(b":")?
            .trim_ascii_start(),
    )
}

fn string_value(bytes: &[u8]) -> Option<&str> {
    let (text, _) = split_string(bytes.strip_prefix(b"\"")?)?;
    let text = std::str::from_utf8(text).ok()?;
    (is_valid(text) && !text.contains('\\')).then_some(text)
}
