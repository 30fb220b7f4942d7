//! Tells placeholders and references from values: what stands for a secret is none.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

use super::text::{case_turns, distinct};

/// Whether the whole value only stands for a secret: `<token>`, `xxxx`, `YOUR_API_KEY`, a published example.
pub(crate) fn is_placeholder(v: &[u8]) -> bool {
    let v = v.trim_ascii();
    // What only begins like a marker is none: a whole one is told by its id.
    if v.starts_with(super::marker::OPEN) {
        return false;
    }
    let inner = v.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    if inner == 0 {
        // `****`, `...`, `---`; a password of symbols alone is read as one only when it varies.
        return distinct(v) < 4;
    }
    if is_wrapped(v) || is_published(v) {
        return true;
    }
    if holds(&STANDS_FOR_SEARCH, STANDS_FOR, v)
        || WHOLE.iter().any(|w| v.eq_ignore_ascii_case(w.as_bytes()))
    {
        return true;
    }
    if v.len() >= 6
        && (distinct(v) == 1
            || (distinct(v) <= 2 && !v.iter().any(u8::is_ascii_digit) && v.len() >= 8))
    {
        return true;
    }
    // `sk-xxxxxxxxxxxx`, `abc…`, `AKIA****************`: a run of one character inside.
    longest_run(v) >= 5 && (longest_run(v) * 3 >= v.len() || filler(v))
        || contains(v, "\u{2026}".as_bytes())
        || contains(v, b"...")
}

/// The published examples of vendors' documentation and test suites, in parts so that no scanner takes this file for a leak.
fn is_published(v: &[u8]) -> bool {
    v.ends_with(b"EXAMPLE")
        || v.ends_with(b"EXAMPLEKEY")
        || PUBLISHED.iter().any(|(a, b)| {
            v.len() == a.len() + b.len() && v.starts_with(a.as_bytes()) && v.ends_with(b.as_bytes())
        })
}

#[rustfmt::skip]
const PUBLISHED: &[(&str, &str)] = &[
    ("sk_test_", "4eC39HqLyjWDarjtT1zdp7dc"), ("sk_test_", "BQokikJOvBiI2HlWgH4olfQ2"),
    ("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6",
    "tq/K1SZFPTOtr/KBHBeksoGMGw=="),
    ("C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67",
    "XIw/Jw=="),
    ("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"), ("QWxhZGRpbjpvcGVu", "IHNlc2FtZQ=="),
    ("dXNlcjpwYXNz", ""), ("dXNlcjpwYXNz", "d29yZA=="), ("dXNlcm5hbWU6", "cGFzc3dvcmQ="),
];

/// Whether the value says where a secret lies instead of being one.
///
/// A quoted value is text; an unquoted one may be code, so calls and members count too.
pub(crate) fn is_reference(v: &[u8], quoted: bool) -> bool {
    let v = v.trim_ascii();
    if v.starts_with(super::marker::OPEN) {
        return false;
    }
    let first = v.first().copied().unwrap_or(0);
    let second = v.get(1).copied().unwrap_or(0);
    if first == b'$'
        && (matches!(second, b'{' | b'(') || (is_name(v.get(1..).unwrap_or(&[])) && looks_named(v)))
    {
        return true;
    }
    if first == b'%' && v.last() == Some(&b'%') && v.len() > 2 {
        return true;
    }
    if first == b'!'
        && v.get(1..)
            .is_some_and(|n| n.iter().all(|b| b.is_ascii_alphabetic()))
    {
        return true;
    }
    if REFERENCE_STARTS.iter().any(|s| {
        v.get(..s.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(s.as_bytes()))
    }) {
        return true;
    }
    if holds(&LOOKUPS_SEARCH, LOOKUPS, v) {
        return true;
    }
    if quoted {
        return false;
    }
    if matches!(first, b'&' | b'@' | b'*')
        && is_name(v.get(1..).unwrap_or(&[]))
        && !v.iter().any(u8::is_ascii_digit)
    {
        return true;
    }
    if matches!(
        first,
        b'(' | b'[' | b'{' | b'<' | b')' | b']' | b'}' | b'>' | b'|' | b',' | b';'
    ) {
        return true;
    }
    // A call, an index or a chain of members.
    let head = v
        .iter()
        .position(|b| {
            !(b.is_ascii_alphanumeric()
                || matches!(b, b'_' | b'.' | b':' | b'>' | b'-' | b'?' | b'!'))
        })
        .unwrap_or(v.len());
    let opener = v.get(head).copied().unwrap_or(0);
    let named = head > 1
        && v.first()
            .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    let plain = digits(v.get(..head).unwrap_or(&[])) == 0;
    let call = named && (opener == b'(' && (plain || v.ends_with(b")")) || opener == b'[' && plain);
    call || is_member_chain(v)
}

fn is_member_chain(v: &[u8]) -> bool {
    let parts: Vec<&[u8]> = v.split(|&b| b == b'.').collect();
    let named = |p: &&[u8]| {
        p.len() >= 2
            && is_name(
                p.strip_suffix(b"?")
                    .or_else(|| p.strip_suffix(b"!"))
                    .unwrap_or(p),
            )
            && !p.iter().any(u8::is_ascii_digit)
    };
    parts.len() >= 2 && parts.iter().all(named) && parts.iter().all(|p| p.len() < 30)
        || contains(v, b"->") && !v.iter().any(u8::is_ascii_digit)
        || contains(v, b"::")
            && v.iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_' | b'<' | b'>'))
}

/// 8-4-4-4-12 hexadecimal digits (RFC 9562).
pub(crate) fn is_uuid(v: &[u8]) -> bool {
    v.len() == 36
        && v.iter().enumerate().all(|(i, b)| {
            if matches!(i, 8 | 13 | 18 | 23) {
                *b == b'-'
            } else {
                b.is_ascii_hexdigit()
            }
        })
}

fn is_wrapped(v: &[u8]) -> bool {
    #[rustfmt::skip]
    let pairs: &[(&[u8], &[u8])] = &[
        (b"<", b">"), (b"{{", b"}}"), (b"${", b"}"), (b"{", b"}"), (b"[", b"]"), (b"%(", b")s"),
        (b"__", b"__"), (b"&lt;", b"&gt;"), (b"((", b"))"), (b"@@", b"@@"), (b"#{", b"}"), (b"<%",
        b"%>"), (b"\\<", b"\\>"), (b"<", b"\\>"),
    ];
    pairs.iter().any(|(open, close)| {
        let inner = v.strip_prefix(*open).and_then(|r| r.strip_suffix(*close));
        inner.is_some_and(|r| {
            r.len() < 60
                && r.iter().all(|b| {
                    b.is_ascii_alphanumeric()
                        || matches!(
                            b,
                            b'_' | b'-'
                                | b' '
                                | b'.'
                                | b':'
                                | b'/'
                                | b'\''
                                | b'|'
                                | b'"'
                                | b'$'
                                | b'('
                                | b')'
                        )
                })
                && digits(r) <= 2
        })
    })
}

fn digits(v: &[u8]) -> usize {
    v.iter().filter(|b| b.is_ascii_digit()).count()
}

fn is_name(v: &[u8]) -> bool {
    !v.is_empty()
        && v.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && !v.first().is_some_and(u8::is_ascii_digit)
}

/// `$DB_PASSWORD` and `$dbPassword` name a variable; `$tr0ngPass1` is a password.
fn looks_named(v: &[u8]) -> bool {
    let upper = !v.iter().any(u8::is_ascii_lowercase);
    upper
        || (digits(v) == 0
            && (v.contains(&b'_')
                || case_turns(v) > 0
                || v.iter().skip(1).all(u8::is_ascii_lowercase)))
}

fn filler(v: &[u8]) -> bool {
    let mut best = (0u8, 0usize);
    let mut run = 0usize;
    let mut last = 0u8;
    for &b in v {
        run = if b == last { run + 1 } else { 1 };
        last = b;
        if run > best.1 {
            best = (b, run);
        }
    }
    matches!(
        best.0,
        b'x' | b'X' | b'*' | b'.' | b'_' | b'#' | b'?' | b'-'
    )
}

fn longest_run(v: &[u8]) -> usize {
    let (mut best, mut run, mut last) = (0usize, 0usize, None);
    for &b in v {
        run = if last == Some(b) { run + 1 } else { 1 };
        last = Some(b);
        best = best.max(run);
    }
    best
}

fn contains(v: &[u8], word: &[u8]) -> bool {
    v.windows(word.len().max(1)).any(|w| w == word)
}

/// Whether `v` holds one of `words`, in any case. The search is built once.
fn holds(search: &OnceLock<Option<AhoCorasick>>, words: &[&str], v: &[u8]) -> bool {
    let search = search.get_or_init(|| {
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(words)
            .ok()
    });
    search.as_ref().is_some_and(|s| s.is_match(v))
}

static STANDS_FOR_SEARCH: OnceLock<Option<AhoCorasick>> = OnceLock::new();
static LOOKUPS_SEARCH: OnceLock<Option<AhoCorasick>> = OnceLock::new();

/// What reads a value from elsewhere, anywhere in it.
const LOOKUPS: &[&str] = &[
    "getenv",
    "process.env",
    "os.environ",
    "${",
    "{{",
    "$(",
    "import.meta.env",
];

#[rustfmt::skip]
const STANDS_FOR: &[&str] = &[
    "placeholder", "your_", "your-", "yourapi", "yourtoken", "yourpass", "yoursecret", "_here",
    "-here", "insert_", "insert-", "replace_", "replace-", "replaceme", "replace me", "change_me",
    "change-me", "todo:", "fixme", "my_api_key", "my-api-key", "enter_", "example_", "_example",
    "-example", "example-", "dummy_", "dummy-", "<your", "some_secret", "some-secret", "put_your",
    "not_a_real", "not-a-real", "notreal", "sample_", "fake_", "fake-",
];

#[rustfmt::skip]
const WHOLE: &[&str] = &[
    "example", "redacted", "[redacted]", "<redacted>", "***redacted***", "dummy", "fake", "sample",
    "foobar", "foo", "bar", "xxx", "yyy", "abc", "n/a", "none", "null", "nil", "tbd", "todo",
    "api_key", "apikey", "access_token", "secret_key", "my_password", "my-password", "the_password",
    "some_password", "passw0rd_here",
];

#[rustfmt::skip]
const REFERENCE_STARTS: &[&str] = &[
    "vault:", "op://", "arn:", "ssm:", "secretsmanager:", "secret://", "file:", "env:", "env.",
    "env[", "keyring:", "keychain:", "sops:", "gcp-sm:", "azurekv:", "akv:", "projects/",
    "doppler:", "infisical:", "ref+", "awssm://", "ssm://", "data.", "var.", "local.", "secrets.",
    "credentials(", "config.", "self.", "this.", "settings.", "args.", "opts.", "options.",
    "params.", "req.", "request.", "ctx.", "process.", "os.", "system.", "std::", "env::",
    "environment.", "@microsoft.keyvault", "/run/secrets/", "lookup(", "get_", "getpass", "input(",
    "read_", "prompt", "keyvault:", "bitwarden:", "pass:", "passwordstore",
];
