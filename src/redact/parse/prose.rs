//! Reads "the password is …" and its kin in running text.

use super::super::text::{Text, is_random, is_word};
use super::value::{self, is_quote};
use super::{Scene, Span, judge};

/// How many words may stand between the word "password" and its value.
const WORDS_MAX: usize = 9;

/// Reads the passwords that the words around `hit` speak of.
pub(super) fn read(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    if is_word(text.before(hit.0)) || is_word(text.at(hit.1)) {
        return;
    }
    if pair(scene, hit, found) {
        return;
    }
    let from = found.len();
    if let Some(words) = phrase(scene, hit) {
        found.push(words);
        return;
    }
    after(scene, hit.1, found);
    before(scene, hit.0, found);
    let word = text.cut(hit.0, hit.1);
    let digits = judge::is_one_of(word, &["pin"]);
    let machine = judge::is_one_of(word, &["token", "api key", "secret", "key"]);
    let bare = judge::is_one_of(word, &["key"]);
    let mut i = from;
    while let Some(&(start, end)) = found.get(i) {
        let value = text.cut(start, end);
        let fits = if digits {
            (4..=12).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
        } else {
            !machine || (value.len() >= 10 && is_random(value))
        };
        // A key of what? Only those that open something count.
        let (low, high) = (hit.0.min(start).saturating_sub(32), hit.1.max(start));
        let fits = fits
            && (!bare
                || (value.len() >= 16
                    && ["api", "secret", "access", "auth", "license", "service"]
                        .iter()
                        .any(|w| text.find(low, high, w.as_bytes()).is_some())));
        if fits {
            i += 1;
        } else {
            found.remove(i);
        }
    }
}

/// A candidate: its place, and whether it stood between quotes.
fn token(text: Text<'_>, at: usize) -> Option<(Span, bool, usize)> {
    let mut from = text.skip(at, 4, |b| matches!(b, b' ' | b'(' | b'*' | b'\t'));
    if text.at(from) == b'_' && text.at(from + 1) == b'_' {
        from += 2;
    }
    if matches!(text.at(from), b'\n' | b'\r' | 0) {
        return None;
    }
    let bold = text.before(from) == b'*';
    let v = value::read(text, from)?;
    let next = v.span.1 + usize::from(v.quoted);
    Some((v.span, v.quoted || bold, next))
}

/// `the passphrase is correct horse battery staple`: four to eight small words that make no sentence.
fn phrase(scene: Scene<'_>, hit: Span) -> Option<Span> {
    let text = scene.text;
    if !judge::is_one_of(
        text.cut(hit.0, hit.1),
        &["passphrase", "password", "passwort"],
    ) {
        return None;
    }
    let line_end = text.line_end(hit.1, 200);
    let start = [&b" is "[..], b" was ", b": ", b" to "]
        .iter()
        .filter_map(|link| Some(text.find(hit.1, line_end.min(hit.1 + 60), link)? + link.len()))
        .min()?;
    let is_part = |b: u8| b.is_ascii_lowercase() || b == b' ';
    let end = text.skip(start, 120, is_part);
    let ends = matches!(
        text.at(end),
        b'\n' | b'\r' | b'.' | b',' | b';' | b'!' | b')' | 0
    );
    let words: Vec<&[u8]> = text.cut(start, end).split(|&b| b == b' ').collect();
    let fits = ends
        && (4..=8).contains(&words.len())
        && words.iter().all(|w| {
            (3..=12).contains(&w.len())
                && !judge::is_one_of(w, GRAMMAR)
                && !judge::is_one_of(w, NEGATIONS)
                && !judge::is_word_about(w)
                && (w.len() <= 4 || !PARTICIPLE_ENDS.iter().any(|e| w.ends_with(e.as_bytes())))
        });
    fits.then_some((start, end))
}

const PARTICIPLE_ENDS: &[&str] = &["ed", "ing", "ly", "able", "ible"];
/// Words that hold a sentence together, and what is often said of a password.
#[rustfmt::skip]
const GRAMMAR: &[&str] = &[
    "the", "and", "for", "but", "nor", "yet", "you", "your", "our", "their", "his", "her", "its",
    "they", "them", "who", "whom", "whose", "which", "what", "when", "where", "why", "how", "that",
    "this", "these", "those", "there", "here", "then", "than", "with", "without", "from", "into",
    "onto", "over", "under", "about", "after", "before", "during", "until", "unless", "because",
    "while", "since", "though", "although", "if", "whether", "has", "have", "had", "was", "were",
    "are", "been", "does", "did", "can", "cannot", "could", "should", "would", "will", "may",
    "might", "must", "shall", "also", "too", "very", "just", "only", "not", "now", "more", "most",
    "less", "some", "any", "each", "every", "all", "both", "either", "same", "other", "one", "two",
    "per", "via", "using", "used", "use", "set", "get", "got", "let", "make", "made", "gone",
    "known", "given", "taken", "written", "kept", "held", "sent", "case", "characters", "chars",
    "letters", "digits", "words", "secret", "login", "account", "field", "value", "string",
    "variable", "file", "strong", "weak", "valid", "invalid", "default", "empty", "blank", "wrong",
    "sensitive", "private", "public", "safe", "secure", "insecure", "still", "again", "please",
    "minimum", "maximum", "least", "always", "them", "way", "anyone", "everyone", "nobody",
];

fn after(scene: Scene<'_>, end: usize, found: &mut Vec<Span>) {
    let text = scene.text;
    let mut at = text.skip(end, 3, |b| is_quote(b) || b == b'*' || b == b'_');
    let mut linked = false;
    // Right behind "is": a word that ends the sentence there may be the password itself.
    let mut tied = false;
    // "the password's …".
    for is in [&b"'s "[..], "\u{2019}s ".as_bytes()] {
        if text.cut(end, end + is.len()) == is {
            at = end + is.len();
            linked = true;
        }
    }
    for n in 0..WORDS_MAX {
        let blanks = text.skip(at, 3, |b| b == b' ');
        // "the password (prod) is …": what is in brackets says which.
        if n == 0 && text.at(blanks) == b'(' {
            let close = text.skip(blanks, 40, |b| b != b')' && b != b'\n');
            if text.has(close, b") is ") || text.has(close, b") was ") || text.has(close, b"):") {
                at = close + 1;
                continue;
            }
        }
        let mark = text.at(blanks);
        if matches!(mark, b':' | b'=')
            || (mark == b'-' && matches!(text.at(blanks + 1), b' ' | b'>'))
        {
            linked = true;
            at = blanks + 1 + usize::from(text.at(blanks + 1) == b'>');
            continue;
        }
        if text.cut(blanks, blanks + 3) == "\u{2192}".as_bytes()
            || text.cut(blanks, blanks + 3) == "\u{2014}".as_bytes()
        {
            linked = true;
            at = blanks + 3;
            continue;
        }
        let Some((span, quoted, next)) = token(text, blanks) else {
            return;
        };
        if blanks == at && !linked && !quoted {
            return;
        }
        let word = text.cut(span.0, span.1);
        if judge::is_one_of(word, LINKS) {
            linked = true;
            tied = tied || judge::is_one_of(word, &["is", "was"]);
            at = next;
            continue;
        }
        if linked && judge::is_one_of(word, NEGATIONS) {
            return;
        }
        let strong = judge::is_strong(scene, word);
        let close = linked || n == 0;
        let sure = if quoted && close {
            is_chosen(word)
        } else {
            let spoken = close && (strong || judge::is_telling(word));
            let common = linked && judge::is_common(word) && ends_here(text, span.1);
            spoken || common || (tied && is_lone_noun(text, word, span.1))
        };
        if sure && plausible(scene, word) {
            found.push(span);
            return;
        }
        if ends_sentence(text, span.1) && !linked {
            return;
        }
        if linked && !judge::is_one_of(word, FILLERS) {
            linked = false;
            tied = false;
        }
        at = next;
    }
}

/// `X is the password`, `use X as the password`.
fn before(scene: Scene<'_>, start: usize, found: &mut Vec<Span>) {
    let text = scene.text;
    let mut at = start;
    let mut linked = false;
    for _ in 0..6 {
        let end = text.back(at, 3, |b| b == b' ' || b == b'*');
        if end == 0 || matches!(text.before(end), b'\n' | b'.' | b';') {
            return;
        }
        let low = text.back(end, 128, |b| !b.is_ascii_whitespace());
        let word = text.cut(low, end);
        if linked {
            let quoted = is_quote(text.at(low)) && end - low > 2 && is_quote(text.before(end));
            let span = if quoted {
                (low + 1, end - 1)
            } else {
                (low, text.back(end, 2, |b| matches!(b, b',' | b':')))
            };
            let inner = text.cut(span.0, span.1);
            let sure = if quoted {
                is_chosen(inner)
            } else {
                judge::is_strong(scene, inner) || judge::is_telling(inner)
            };
            if sure && plausible(scene, inner) {
                found.push(span);
            }
            return;
        }
        if judge::is_one_of(word, &["is", "as", "was"]) {
            linked = true;
        } else if !judge::is_one_of(
            word,
            &[
                "the", "your", "my", "our", "a", "its", "their", "admin", "root", "db", "database",
                "wifi", "new", "current", "default", "login", "user",
            ],
        ) {
            return;
        }
        at = low;
    }
}

/// `credentials: admin / hunter2`, `log in with admin:hunter2`.
fn pair(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) -> bool {
    let text = scene.text;
    if !judge::is_one_of(
        text.cut(hit.0, hit.1),
        &[
            "creds",
            "credentials",
            "login",
            "logins",
            "log in with",
            "logged in as",
            "user/pass",
            "username/password",
            "user/password",
            "basic auth",
        ],
    ) {
        return false;
    }
    let mut at = text.skip(hit.1, 3, |b| b == b'*' || b == b' ');
    if matches!(text.at(at), b':' | b'=') {
        at += 1;
    }
    for _ in 0..6 {
        at = text.skip(at, 3, |b| b == b' ' || is_quote(b));
        let end = text.skip(at, 64, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@' | b'+')
        });
        if end == at {
            return true;
        }
        let sep = text.skip(end, 3, |b| b == b' ' || is_quote(b));
        if matches!(text.at(sep), b'/' | b':' | b'|') && text.at(sep + 1) != b'/' {
            if let Some((span, quoted, _)) = token(text, sep + 1) {
                let word = text.cut(span.0, span.1);
                let apart = sep > end || text.at(sep) == b':';
                if plausible(scene, word)
                    && (judge::is_strong(scene, word)
                        || judge::is_common(word)
                        || (quoted && apart))
                {
                    found.push(span);
                }
            }
            return true;
        }
        at = end;
        if text.at(at) != b' ' {
            return true;
        }
    }
    true
}

fn plausible(scene: Scene<'_>, word: &[u8]) -> bool {
    word.len() >= 3
        && word.len() <= 128
        && !scene.ids.is_all_markers(word)
        && !super::super::placeholder::is_placeholder(word)
        && !super::super::placeholder::is_reference(word, true)
}

/// Whether a quoted word reads like something chosen rather than like the name of a field or a file.
fn is_chosen(word: &[u8]) -> bool {
    let spaced = word.iter().filter(|&&b| b == b' ').count();
    let digit = word.iter().any(u8::is_ascii_digit);
    word.len() >= 4
        && spaced <= 6
        && !word
            .iter()
            .any(|b| matches!(b, b'(' | b')' | b'<' | b'{' | b'/' | b'='))
        && !judge::is_one_of(
            word,
            &[
                "password",
                "passwd",
                "username",
                "user",
                "secret",
                "required",
                "null",
                "none",
                "true",
                "false",
                "string",
                "pass",
                "pwd",
                "forgot",
                "hidden",
                "bcrypt",
                "argon2",
                "argon2id",
                "vault",
                "optional",
                "incorrect",
                "wrong",
                "invalid",
            ],
        )
        && (digit || !(word.contains(&b'_') || word.contains(&b'.')))
        && !(spaced > 0 && word.first().is_some_and(u8::is_ascii_uppercase))
}

/// A word in small letters that ends its sentence and says nothing about passwords: "the password is bluefish."
fn is_lone_noun(text: Text<'_>, word: &[u8], end: usize) -> bool {
    let ends = matches!(text.at(end), b'\n' | 0 | b'\r')
        || (matches!(text.at(end), b'.' | b'!')
            && (text.at(end + 1).is_ascii_whitespace() || text.at(end + 1) == 0));
    let adjective = ADJECTIVE_ENDS.iter().any(|e| word.ends_with(e.as_bytes()));
    ends && (5..=24).contains(&word.len())
        && word.iter().all(u8::is_ascii_lowercase)
        && !adjective
        && !judge::is_one_of(word, SAID_OF_PASSWORDS)
        && !judge::is_word_about(word)
}

const ADJECTIVE_ENDS: &[&str] = &[
    "ed", "ing", "able", "ible", "ly", "al", "ive", "ent", "ant", "ory", "ous", "ful", "less",
    "est", "ary", "sible", "ic", "wn", "den",
];
#[rustfmt::skip]
const SAID_OF_PASSWORDS: &[&str] = &[
    "correct", "strong", "short", "secret", "secure", "wrong", "empty", "there", "missing",
    "broken", "outdated", "stale", "weak", "right", "valid", "known", "plain", "private", "public",
    "simple", "complex", "unique", "random", "default", "blank", "ready", "below", "above",
    "elsewhere", "gone", "safe", "lost", "stolen", "mandatory", "required", "obsolete", "fresh",
    "yours", "theirs", "ours", "mine", "itself", "everything", "nothing", "something", "anything",
    "enough", "different", "identical", "better", "worse", "longer", "shorter", "older", "newer",
    "another", "again", "today", "tomorrow", "yesterday", "unset", "bcrypt", "argon", "scrypt",
    "vault", "bitwarden", "lastpass", "keychain", "about", "before", "after", "either", "never",
    "always", "fine", "okay", "bogus", "incorrect", "insecure", "leaky", "sound", "crucial",
    "those", "these", "which", "where", "case", "needed", "kept", "sent", "taken", "shown", "given",
    "changed", "set", "null", "false", "true", "unclear", "lengthy", "history", "policy", "legacy",
    "owner", "admin", "local", "remote", "global",
];

fn ends_sentence(text: Text<'_>, at: usize) -> bool {
    matches!(text.at(at), b'.' | b';' | b'\n' | b'!' | b'?' | 0)
        && !text.at(at + 1).is_ascii_alphanumeric()
}

fn ends_here(text: Text<'_>, at: usize) -> bool {
    matches!(
        text.at(at),
        b'.' | b',' | b';' | b'\n' | b'!' | b')' | b'\r' | b'"' | b'*' | 0
    ) || text.has(at, b" for ")
        || text.has(at, b" on ")
        || text.has(at, b" (")
        || text.has(at, b" and ")
        || text.has(at, b" but ")
}

#[rustfmt::skip]
const LINKS: &[&str] = &[
    "is", "was", "to", "as", "are", "be", "equals", "now", "still", "currently", "set", "will",
    "simply", "just", "actually", "called", "literally", "probably", "remains", "became", "being",
];
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "the", "this", "it", "that", "one", "following", "always", "again", "temporarily", "probably",
    "same", "old", "new", "for", "everyone", "both", "here", "likely",
];
#[rustfmt::skip]
const NEGATIONS: &[&str] = &[
    "not", "never", "required", "stored", "hashed", "kept", "in", "too", "case", "optional",
    "encrypted", "wrong", "expired", "sent", "needed", "managed", "generated", "rotated",
    "validated", "checked", "salted", "at", "on", "by", "read", "taken", "available", "unknown",
    "missing", "missing", "weak", "reset", "longer", "shorter", "least", "between",
];
