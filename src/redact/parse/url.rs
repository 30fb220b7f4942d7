//! Reads the user part of URLs: `scheme://user:password@host`, also with unescaped characters in it.

use super::super::placeholder;
use super::super::text::{is_random, is_word};
use super::{Scene, Span};

/// Longest authority that is read, in bytes.
const AUTHORITY_MAX: usize = 512;

/// Reads the password or token in the authority of the URL whose `://` is at `hit`.
pub(super) fn read(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    if !text.before(hit.0).is_ascii_alphanumeric() {
        return;
    }
    let start = hit.1;
    let stop = text.skip(start, AUTHORITY_MAX, |b| {
        !b.is_ascii_whitespace() && !matches!(b, b'"' | b'`' | b'<' | b'\\')
    });
    let plain = text.skip(start, AUTHORITY_MAX, |b| !matches!(b, b'/' | b'?' | b'#'));
    let plain = plain.min(stop);
    let within = text.cut(start, plain);
    let Some(at) = (match within.iter().rposition(|&b| b == b'@') {
        Some(n) => Some(start + n),
        None => late_at(scene, start, plain, stop),
    }) else {
        return;
    };
    let user = text.cut(start, at);
    let Some(colon) = user.iter().position(|&b| b == b':').map(|n| start + n) else {
        // `https://<token>@host`: a lone user name is a secret when it looks made by a machine.
        if user.len() >= 16 && is_random(user) && is_live(scene, user) && !user.contains(&b'.') {
            found.push((start, at));
        }
        return;
    };
    let password = text.cut(colon + 1, at);
    let name = text.cut(start, colon);
    if is_live(scene, password) && !is_template(password) {
        found.push((colon + 1, at));
    }
    if name.len() >= 16
        && is_random(name)
        && is_live(scene, name)
        && !name.contains(&b'.')
        && !name.contains(&b'%')
    {
        found.push((start, colon));
    }
}

/// An `@` behind a slash or hash that stands in the password itself: `user:pa/ss@host:5432/db`.
fn late_at(scene: Scene<'_>, start: usize, plain: usize, stop: usize) -> Option<usize> {
    let text = scene.text;
    let authority = text.cut(start, plain);
    let colon = authority.iter().position(|&b| b == b':')?;
    let port = authority.get(colon + 1..)?;
    if !port.is_empty() && port.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let at = text
        .cut(plain, stop)
        .iter()
        .rposition(|&b| b == b'@')
        .map(|n| plain + n)?;
    let host = text.skip(at + 1, 253, |b| is_word(b) || matches!(b, b'.' | b'-'));
    (host > at + 1).then_some(at)
}

fn is_live(scene: Scene<'_>, v: &[u8]) -> bool {
    !v.is_empty()
        && !scene.ids.is_all_markers(v)
        && !placeholder::is_placeholder(v)
        && !placeholder::is_reference(v, true)
}

/// `user:password@host` and `user:pass@host` stand for a password in every manual.
fn is_template(v: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"password",
        b"pass",
        b"passwd",
        b"pwd",
        b"token",
        b"secret",
        b"pw",
        b"x-oauth-basic",
        b"x-token-auth",
    ];
    WORDS.contains(&v)
        || v.eq_ignore_ascii_case(b"PASSWORD") && v.iter().all(u8::is_ascii_uppercase)
}
