//! Rule 4: percent escapes are never decoded, and refused where decoding would give trouble.
//!
//! `%XX` and `%uXXXX` count, also escapes that only appear once others are decoded
//! (`%%32%65` gives `%2e`). Everything else with a `%` in it is literal text.

use super::ESCAPE_LAYERS_MAX;
use super::chars;

/// What percent escapes would turn into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A character of `. / \ % :`, or one that rule 3 refuses.
    Character(char),
    /// A surrogate (`%ud800`).
    Surrogate,
    /// Bytes that UTF-8 never has: the first escape of them.
    Bytes(u8),
    /// More layers than [`ESCAPE_LAYERS_MAX`].
    Layers,
}

/// Looks through the escapes of one component.
pub(super) fn check(component: &str) -> Result<(), Trouble> {
    if !component.contains('%') {
        return Ok(());
    }
    let mut text = component.to_owned();
    for _ in 0..ESCAPE_LAYERS_MAX {
        let decoded = decode_layer(&text)?;
        if decoded == text {
            return Ok(());
        }
        text = decoded;
    }
    Err(Trouble::Layers)
}

/// The component with `-` in place of each escape, for suggestions.
pub(super) fn without_escapes(component: &str) -> String {
    let mut plain = String::with_capacity(component.len());
    for token in Tokens(component) {
        match token {
            Token::Text(character) => plain.push(character),
            Token::Byte(_) | Token::Unit(_) => plain.push('-'),
        }
    }
    plain
}

fn decode_layer(text: &str) -> Result<String, Trouble> {
    let mut decoded = String::with_capacity(text.len());
    let mut run = Vec::new();
    for token in Tokens(text) {
        if let Token::Byte(byte) = token {
            run.push(byte);
            continue;
        }
        decode_run(&mut run, &mut decoded)?;
        match token {
            Token::Text(character) => decoded.push(character),
            Token::Unit(unit) => {
                let character = char::from_u32(unit.into()).ok_or(Trouble::Surrogate)?;
                push_decoded(character, &mut decoded)?;
            }
            Token::Byte(_) => {}
        }
    }
    decode_run(&mut run, &mut decoded)?;
    // What stood in the text unescaped has passed rule 3 already, so this finds what decoding made.
    match chars::first_refused(&decoded) {
        Some(refused) => Err(Trouble::Character(refused.character)),
        None => Ok(decoded),
    }
}

/// Decodes and empties a run of adjacent `%XX`.
///
/// Two or more must be UTF-8 as a whole. One alone that is not ASCII is text (`100%accuracy`,
/// `20%decrease`), unless no decoder could make sense of it or it leads an overlong form.
fn decode_run(run: &mut Vec<u8>, decoded: &mut String) -> Result<(), Trouble> {
    match run.as_slice() {
        [] => {}
        [byte @ 0x80..=0xff] => {
            if matches!(byte, 0xc0 | 0xc1 | 0xe0 | 0xf0 | 0xf5..=0xff) {
                return Err(Trouble::Bytes(*byte));
            }
            // Lower case, so that a second layer finds the same text.
            decoded.push_str(&format!("%{byte:02x}"));
        }
        bytes => {
            let run = str::from_utf8(bytes).map_err(|error| {
                let at = error.valid_up_to();
                Trouble::Bytes(bytes.get(at).copied().unwrap_or_default())
            })?;
            for character in run.chars() {
                push_decoded(character, decoded)?;
            }
        }
    }
    run.clear();
    Ok(())
}

fn push_decoded(character: char, decoded: &mut String) -> Result<(), Trouble> {
    if matches!(character, '.' | '/' | '\\' | '%' | ':') {
        return Err(Trouble::Character(character));
    }
    decoded.push(character);
    Ok(())
}

enum Token {
    Text(char),
    /// `%XX`.
    Byte(u8),
    /// `%uXXXX`.
    Unit(u16),
}

/// Cuts text into escapes and single characters.
struct Tokens<'a>(&'a str);

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let mut rest = self.0.chars();
        let first = rest.next()?;
        if first == '%' {
            let tail = rest.as_str();
            if let Some((code, rest)) = hex(tail, 2) {
                self.0 = rest;
                return Some(Token::Byte(code.to_le_bytes()[0]));
            }
            if let Some((code, rest)) = tail
                .strip_prefix(['u', 'U'])
                .and_then(|digits| hex(digits, 4))
            {
                self.0 = rest;
                return Some(Token::Unit(code));
            }
        }
        self.0 = rest.as_str();
        Some(Token::Text(first))
    }
}

/// Reads exactly `digits` hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<(u16, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    if !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u16::from_str_radix(number, 16).ok()?, rest))
}
