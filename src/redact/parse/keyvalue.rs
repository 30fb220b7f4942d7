//! Reads `key: value` and `key = value` in JSON, YAML, XML, TOML, env files, code and notes.

use super::super::text::{Text, is_blank, is_word};
use super::value::{Value, is_quote};
use super::{Scene, Span, judge, key, value};

/// Reads the value of the key around `hit` when the key is of class `class`.
pub(super) fn read(scene: Scene<'_>, hit: Span, class: key::Class, found: &mut Vec<Span>) {
    let text = scene.text;
    // Keywords such as `pass:` hold what follows the name, to be rarer; the name itself is what counts.
    let hit_end = text.back(hit.1, hit.1 - hit.0, |b| b.is_ascii() && !is_word(b));
    let (start, end) = key::around(text, hit.0, hit_end);
    let Some(link) = link(text, start, end) else {
        return;
    };
    let name = text.cut(start, end);
    let lead = text.back(start, 24, |b| b.is_ascii_alphabetic() || b == b' ');
    if key::classify(name, text.cut(lead, start)) != Some(class) {
        return;
    }
    let Some(v) = value::read(text, link.at) else {
        return;
    };
    if link.quoted_only && !v.quoted {
        return;
    }
    let bytes = text.cut(v.span.0, v.span.1);
    let (v, bytes) = strip_scheme(text, v, bytes);
    if scene.ids.is_all_markers(bytes) {
        return;
    }
    let sure = match class {
        key::Class::Password => judge::is_password(scene, name, v, text.before(v.span.0) == b'='),
        key::Class::Secret => judge::is_secret(scene, name, v, link.env),
    };
    if sure {
        found.push(v.span);
    } else if class == key::Class::Password
        && let Some(span) = passphrase(scene, name, v)
    {
        found.push(span);
    }
}

/// Reads the private members of a JSON Web Key whose `"kty"` stands at `hit`.
///
/// Gives the end of the key.
pub(super) fn jwk(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) -> usize {
    let text = scene.text;
    let low = text.back(hit.0, 6000, |b| b != b'{');
    let high = text.skip(hit.1, 6000, |b| b != b'}');
    let mut at = low;
    while at < high {
        let Some(open) = text
            .cut(at, high)
            .iter()
            .position(|&b| b == b'"')
            .map(|n| at + n)
        else {
            return high;
        };
        let close = text.skip(open + 1, 6000, |b| b != b'"');
        at = close + 1;
        let colon = text.skip(close + 1, 4, is_blank);
        let private = matches!(
            text.cut(open + 1, close),
            b"d" | b"p" | b"q" | b"dp" | b"dq" | b"qi" | b"k"
        );
        if text.at(colon) != b':' {
            continue;
        }
        if let Some(v) = value::read(text, colon + 1) {
            let bytes = text.cut(v.span.0, v.span.1);
            if private && v.quoted && bytes.len() >= 16 && !scene.ids.is_all_markers(bytes) {
                found.push(v.span);
            }
            at = v.span.1 + 1;
        }
    }
    high
}

/// What ties a key to its value.
struct Link {
    /// Where the value may begin.
    at: usize,
    /// Only a quoted value counts.
    quoted_only: bool,
    /// The key is an environment variable.
    env: bool,
}

/// Finds what ties the name `start..end` to a value.
fn link(text: Text<'_>, start: usize, end: usize) -> Option<Link> {
    let quoted_key =
        is_quote(text.at(end)) || (text.at(end) == b'\\' && is_quote(text.at(end + 1)));
    let mut at = text.skip(end, 8, |b| {
        is_quote(b) || matches!(b, b'*' | b']' | b'\\' | b')' | b'}')
    });
    // `password (staging): …` and `token[0] = …`.
    let aside = text.skip(at, 2, |b| b == b' ');
    if text.at(aside) == b'(' && aside > at {
        let close = text.skip(aside, 40, |b| b != b')' && b != b'\n');
        if matches!(text.at(close + 1), b':' | b'=') {
            at = close + 1;
        }
    }
    at = text.skip(at, 24, is_blank);
    let env = text
        .cut(start, end)
        .iter()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    let link = |at: usize| {
        Some(Link {
            at,
            quoted_only: false,
            env,
        })
    };
    match text.at(at) {
        b':' if text.at(at + 1) == b'=' => link(at + 2),
        b':' if text.has(at, b"://") => None,
        b':' if text.at(at + 1) == b':' => {
            // `Password::new("…")`.
            let member = text.skip(at + 2, 24, is_word);
            let open = usize::from(text.at(member) == b'(');
            link(if open == 1 { member + 1 } else { at + 2 }).map(|l| Link {
                quoted_only: true,
                ..l
            })
        }
        b':' => {
            let next = text.skip(at + 1, 8, |b| is_blank(b) || b == b'*');
            link(typed(text, next).unwrap_or(skip_lines(text, at + 1)))
        }
        b'=' if matches!(text.at(at + 1), b'>' | b'=' | b'~') => {
            link(at + 2 + usize::from(text.at(at + 2) == b'='))
        }
        b'=' => link(at + 1),
        b'!' if text.at(at + 1) == b'=' => link(at + 2).map(|l| Link {
            quoted_only: true,
            ..l
        }),
        b'-' if text.at(at + 1) == b'>' => link(at + 2),
        b'|' if text.at(at + 1) != b'|' => link(at + 1),
        b'\t' => link(at + 1),
        b',' if quoted_key && is_argument(text, start, at) => {
            link(skip_lines(text, at + 1)).map(|l| Link {
                quoted_only: true,
                ..l
            })
        }
        b'(' => link(at + 1).map(|l| Link {
            quoted_only: true,
            ..l
        }),
        b'>' if text.before(start) == b'<' || is_tag(text, start) => link(at + 1),
        _ => attribute(text, at, quoted_key)
            .or_else(|| spaced(text, start, end, at))
            .map(|l| Link { env, ..l }),
    }
}

/// Whether the quoted name `start..` and the quoted value after the comma at `comma` are arguments, as in `define('KEY', 'value')`.
fn is_argument(text: Text<'_>, start: usize, comma: usize) -> bool {
    let open = text.back(start, 6, |b| is_quote(b) || is_blank(b) || b == b'\\');
    let Some(v) = value::read(text, text.skip(comma + 1, 60, |b| b.is_ascii_whitespace())) else {
        return false;
    };
    let after = text.skip(v.span.1, 6, |b| is_quote(b) || is_blank(b) || b == b'\\');
    matches!(text.before(open), b'(' | b'[' | b',') && !matches!(text.at(after), b':' | b'=')
}

/// `name="password" value="…"` and `- name: PASSWORD`, `value: …` on the next line.
fn attribute(text: Text<'_>, at: usize, quoted_key: bool) -> Option<Link> {
    let next = if text.at(at) == b'\n' || text.at(at) == b'\r' {
        skip_lines(text, at)
    } else {
        at
    };
    let next = text.skip(next, 2, |b| b == b'"' || b == b'\'');
    let next = if text.at(next) == b',' {
        skip_lines(text, next + 1)
    } else {
        next
    };
    let next = text.skip(next, 2, |b| b == b'"' || b == b'\'');
    if !(quoted_key || next > at) || !text.has(next, b"value") {
        return None;
    }
    let end = text.skip(next + 5, 6, |b| matches!(b, b'"' | b'\'' | b' '));
    matches!(text.at(end), b'=' | b':').then_some(Link {
        at: end + 1,
        quoted_only: false,
        env: true,
    })
}

/// `--password x`, `ENV PASSWORD x`, `requirepass x`, `machine … password x`, `WITH PASSWORD 'x'`.
fn spaced(text: Text<'_>, start: usize, end: usize, at: usize) -> Option<Link> {
    if at == end {
        return None;
    }
    let line = text.line_start(start, 300);
    let head = text.cut(line, start);
    let has = |word: &[u8]| text.find(line, start, word).is_some();
    let option = text.before(start) == b'-' || text.cut(start, end).starts_with(b"-");
    let line_begin = head.iter().all(|b| b.is_ascii_whitespace());
    let setting = head.trim_ascii_end();
    let command = setting.ends_with(b"ENV")
        || setting.ends_with(b"ARG")
        || setting.ends_with(b"setx")
        || setting.ends_with(b"set -x")
        || setting.ends_with(b"set -gx")
        || setting.ends_with(b"setenv")
        || setting.ends_with(b"config set");
    let login = has(b"machine ")
        || has(b"login ")
        || (line_begin
            && text
                .find(line.saturating_sub(120), line, b"login ")
                .is_some());
    if option || command || login || text.cut(start, end).ends_with(b"requirepass") {
        return Some(Link {
            at,
            quoted_only: false,
            env: true,
        });
    }
    if is_quote(text.at(at)) && text.at(at) == b'\'' {
        return Some(Link {
            at,
            quoted_only: true,
            env: false,
        });
    }
    None
}

fn is_tag(text: Text<'_>, start: usize) -> bool {
    let open = text.back(start, 60, |b| {
        is_word(b) || matches!(b, b':' | b'-' | b' ' | b'=' | b'"' | b'.')
    });
    text.before(open) == b'<'
}

/// Skips `str =`, `String =` and the like after the colon of a typed declaration.
fn typed(text: Text<'_>, at: usize) -> Option<usize> {
    let end = text.skip(at, 40, |b| {
        is_word(b)
            || matches!(
                b,
                b'&' | b'[' | b']' | b'<' | b'>' | b'\'' | b'.' | b'?' | b'|'
            )
    });
    let equals = text.skip(end, 3, is_blank);
    (end > at
        && text.at(at).is_ascii_alphabetic() | (text.at(at) == b'&')
        && text.at(equals) == b'='
        && text.at(equals + 1) != b'=')
        .then_some(equals + 1)
}

/// A value may stand on the line after its colon when it is quoted.
fn skip_lines(text: Text<'_>, at: usize) -> usize {
    let next = text.skip(at, 60, |b| b.is_ascii_whitespace());
    if is_quote(text.at(next)) || text.has(next, b"value") {
        next
    } else {
        at
    }
}

/// Leaves out `Bearer ` and the like in front of a token.
fn strip_scheme<'a>(text: Text<'a>, v: Value, bytes: &'a [u8]) -> (Value, &'a [u8]) {
    for scheme in [&b"bearer"[..], b"basic", b"token", b"apikey"] {
        if text.has(v.span.0, scheme)
            && (bytes.len() == scheme.len() || text.at(v.span.0 + scheme.len()) == b' ')
        {
            let at = text.skip(v.span.0 + scheme.len(), 3, |b| b == b' ');
            let end = if v.quoted {
                v.span.1
            } else {
                value::read(text, at).map_or(at, |v| v.span.1)
            };
            let v = Value {
                span: (at, end.max(at)),
                ..v
            };
            return (v, text.cut(at, end));
        }
    }
    (v, bytes)
}

/// `passphrase: correct horse battery staple`, and seed phrases: the rest of the line, if it is only plain words.
fn passphrase(scene: Scene<'_>, name: &[u8], v: Value) -> Option<Span> {
    let text = scene.text;
    let phrase = name.to_ascii_lowercase().ends_with(b"phrase");
    let end = text.line_end(v.span.0, 300);
    let line = text.cut(v.span.0, end).trim_ascii_end();
    let words = line.split(|&b| b == b' ').count();
    let plain = line
        .iter()
        .all(|b| b.is_ascii_lowercase() || *b == b' ' || *b == b'-');
    let telling = line.split(|&b| b == b' ').any(|w| {
        judge::is_one_of(
            w,
            &[
                "is", "the", "must", "be", "for", "to", "in", "of", "and", "a", "required", "not",
            ],
        )
    });
    (phrase && plain && !telling && (3..=24).contains(&words))
        .then_some((v.span.0, v.span.0 + line.len()))
}
