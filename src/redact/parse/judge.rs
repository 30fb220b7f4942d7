//! Judges a value: a secret, or a placeholder, a reference, a type, a word of prose.

use super::super::placeholder;
use super::super::text::{case_turns, distinct, is_random};
use super::Scene;
use super::value::Value;

/// Whether the value of a password key is a password.
///
/// `tight`: it follows its `=` without a blank, so no word of prose stands there.
pub(super) fn is_password(scene: Scene<'_>, name: &[u8], v: Value, tight: bool) -> bool {
    if !v.quoted
        && name.eq_ignore_ascii_case(b"pass")
        && is_test_result(scene.text.cut(v.span.0, v.span.1))
    {
        return false;
    }
    let bytes = scene.text.cut(v.span.0, v.span.1);
    if bytes.len() < 3 || bytes.len() > 256 || is_nothing(scene, bytes, v.quoted) {
        return false;
    }
    if bytes.contains(&b' ') {
        return v.quoted && !is_sentence(bytes);
    }
    if is_one_of(bytes, NO_PASSWORD) || (!v.quoted && is_name_of(bytes, name)) {
        return false;
    }
    if v.quoted {
        return true;
    }
    if bytes
        .iter()
        .all(|b| b.is_ascii_alphabetic() || *b == b'_' || *b == b'-')
    {
        let whole_word = bytes.iter().all(u8::is_ascii_alphabetic);
        // `password: must be long` is prose, `password: monkey` is a password.
        return tight
            || !is_followed_by_words(scene, v.span.1)
            || is_common(bytes)
            || (!whole_word && !is_reference_word(bytes));
    }
    true
}

/// Whether the value of a token or key is one.
pub(super) fn is_secret(scene: Scene<'_>, name: &[u8], v: Value, env: bool) -> bool {
    let bytes = scene.text.cut(v.span.0, v.span.1);
    if bytes.len() < 6
        || bytes.len() > 1024
        || bytes.contains(&b' ')
        || is_nothing(scene, bytes, v.quoted)
    {
        return false;
    }
    if is_one_of(bytes, NO_PASSWORD) || is_name_of(bytes, name) || looks_like_path(bytes) {
        return false;
    }
    if placeholder::is_uuid(bytes) || is_encoded_pair(bytes) {
        return true;
    }
    if is_identifier(bytes) {
        let word = bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let secret = name.to_ascii_lowercase();
        let chosen =
            secret.windows(6).any(|w| w == b"secret") || secret.windows(3).any(|w| w == b"key");
        return (v.quoted || env) && word && chosen && bytes.len() >= 8;
    }
    let symbols = bytes.iter().filter(|b| b.is_ascii_punctuation()).count();
    (is_random(bytes) && distinct(bytes) >= 5)
        || (bytes.len() >= 8 && symbols > 0 && symbols * 2 < bytes.len() && v.quoted)
}

/// `pass=120`, `PASS: test_login`: a count of tests, or the name of one.
fn is_test_result(value: &[u8]) -> bool {
    (value.len() <= 4 && value.iter().all(u8::is_ascii_digit))
        || (value.contains(&b'_') && value.iter().all(|b| b.is_ascii_lowercase() || *b == b'_'))
}

/// `user:password` in base64, as Docker's configuration keeps it.
fn is_encoded_pair(bytes: &[u8]) -> bool {
    use base64ct::Encoding as _;
    let text = str::from_utf8(bytes).unwrap_or("").trim_end_matches('=');
    let decoded = base64ct::Base64Unpadded::decode_vec(text).unwrap_or_default();
    decoded.len() >= 5
        && decoded.contains(&b':')
        && decoded.iter().all(|b| (b' '..=b'~').contains(b))
}

/// Whether a word of running text is a password by its look.
pub(super) fn is_strong(scene: Scene<'_>, bytes: &[u8]) -> bool {
    let option = bytes.starts_with(b"-") || bytes.windows(2).any(|w| w == b"::");
    if option || bytes.len() < 4 || bytes.len() > 128 || bytes.iter().all(u8::is_ascii_lowercase) {
        return false;
    }
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let symbols = bytes
        .iter()
        .filter(|b| {
            matches!(
                b,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~' | b'+'
            )
        })
        .count();
    let joints = bytes
        .iter()
        .filter(|b| matches!(b, b'-' | b'_' | b'.'))
        .count();
    let mail = bytes.contains(&b'@')
        && bytes.contains(&b'.')
        && !bytes.iter().any(|b| matches!(b, b'!' | b'#' | b'$'));
    if mail {
        return false;
    }
    let mixed = (digits > 0 && letters > 0)
        || (symbols > 0 && letters > 2)
        || (letters == 0 && digits >= 4 && digits == bytes.len())
        || (joints >= 2 && letters > 8)
        || (case_turns(bytes) >= 2 && !is_identifier(bytes));
    mixed
        && !is_one_of(bytes, NO_PASSWORD)
        && !is_measure(bytes)
        && !looks_like_path(bytes)
        && !is_nothing(scene, bytes, false)
}

/// Passwords that many people choose.
pub(super) fn is_common(bytes: &[u8]) -> bool {
    is_one_of(bytes, COMMON)
}

/// Common passwords that mean little else where a password is spoken of.
pub(super) fn is_telling(bytes: &[u8]) -> bool {
    is_one_of(bytes, TELLING)
}

#[rustfmt::skip]
const TELLING: &[&str] = &[
    "letmein", "qwerty", "qwertyuiop", "iloveyou", "princess", "sunshine", "monkey", "dragon",
    "starwars", "football", "baseball", "superman", "batman", "asdfgh", "asdfghjkl", "zxcvbn",
    "zxcvbnm", "swordfish", "opensesame", "pokemon", "liverpool", "passw", "changeme",
    "supersecret", "topsecret", "mypassword", "trustno", "azerty", "toor", "vagrant", "raspberry",
    "changeit", "hunter", "correcthorsebatterystaple",
];

/// Words that talk about a password instead of being one.
pub(super) fn is_word_about(bytes: &[u8]) -> bool {
    is_one_of(bytes, NO_PASSWORD)
}

/// Whether the value is empty talk: a placeholder, a reference to where the secret lies, a type.
fn is_nothing(scene: Scene<'_>, bytes: &[u8], quoted: bool) -> bool {
    scene.ids.is_all_markers(bytes)
        || placeholder::is_placeholder(bytes)
        || placeholder::is_reference(bytes, quoted)
}

fn is_name_of(bytes: &[u8], name: &[u8]) -> bool {
    // `connect(password=password)` and `token: userToken` pass a variable on.
    let last = name
        .rsplit(|b| !b.is_ascii_alphanumeric())
        .next()
        .unwrap_or(name);
    bytes
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && !bytes.iter().any(u8::is_ascii_digit)
        && bytes.len() > last.len()
        && is_reference_word(bytes)
        && (bytes.contains(&b'_') || case_turns(bytes) > 0)
}

fn is_reference_word(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    REFERENCE_ENDS.iter().any(|e| lower.ends_with(e.as_bytes()))
        && (bytes.contains(&b'_') || case_turns(bytes) > 0)
}

#[rustfmt::skip]
const REFERENCE_ENDS: &[&str] = &[
    "password", "passwd", "pwd", "pass", "secret", "token", "key", "value", "input", "field", "var",
    "arg", "param", "env", "name", "ref", "string", "hash", "file", "path", "config", "credential",
    "credentials", "passphrase", "required", "id",
];

/// Words with separators or in camel case, as names of things are: `my-app-secret`, `refreshToken`, `v2`.
fn is_identifier(bytes: &[u8]) -> bool {
    if bytes.len() > 60
        || !bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/'))
    {
        return false;
    }
    let mut parts = bytes.split(|b| matches!(b, b'_' | b'-' | b'.' | b':' | b'/'));
    parts.all(|p| {
        let digits = p.iter().filter(|b| b.is_ascii_digit()).count();
        let tail = p.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let upper = p.iter().filter(|b| b.is_ascii_uppercase()).count();
        let all_upper = upper + digits == p.len();
        let short = p.len() <= 4 && (digits == 0 || digits == p.len());
        let worded = digits == tail
            && tail <= 2
            && (all_upper || upper * 4 <= p.len() + 3)
            && case_turns(p) <= 4;
        short || (worded && (p.len() < 20 || case_turns(p) > 0 || digits == 0) && has_vowels(p))
    })
}

fn has_vowels(part: &[u8]) -> bool {
    let letters = part.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let vowels = part
        .iter()
        .filter(|b| {
            matches!(
                b.to_ascii_lowercase(),
                b'a' | b'e' | b'i' | b'o' | b'u' | b'y'
            )
        })
        .count();
    letters <= 3 || vowels * 5 >= letters
}

fn looks_like_path(bytes: &[u8]) -> bool {
    let start = bytes.first().copied().unwrap_or(0);
    let second = bytes.get(1).copied().unwrap_or(0);
    let slashes = bytes.iter().filter(|&&b| b == b'/').count();
    let rooted = start == b'/'
        || (start == b'~' && second == b'/')
        || (start == b'.' && (second == b'/' || second == b'.'));
    let plain = bytes
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-' | b'~' | b':'));
    let turns = case_turns(bytes) <= 2;
    (rooted && plain && turns && slashes >= 1)
        || bytes.windows(3).any(|w| w == b"://")
        || is_one_of(
            bytes.rsplit(|&b| b == b'.').next().unwrap_or(b""),
            EXTENSIONS,
        ) && bytes.contains(&b'.')
}

const EXTENSIONS: &[&str] = &[
    "txt", "md", "py", "js", "ts", "json", "yaml", "yml", "toml", "env", "pem", "key", "crt", "rs",
    "go", "java", "rb", "html", "com", "org", "io", "net", "gpg", "kdbx", "conf", "ini", "sh",
    "tsx", "jsx", "vue", "php", "cs", "sql", "csv", "log",
];

/// `12`, `90d`, `8+`, `256-bit`, `2024-01-02`, `v1.2`, `sha256`: measures and names, no passwords.
fn is_measure(bytes: &[u8]) -> bool {
    let lower = bytes.to_ascii_lowercase();
    #[rustfmt::skip]
    let known = [
        "sha256", "sha512", "sha1", "sha-256", "sha-1", "md5", "base64", "utf-8", "utf8", "oauth2",
        "argon2", "argon2id", "bcrypt", "pbkdf2", "scrypt", "1password", "ed25519", "hs256",
        "rs256", "aes-256", "aes256", "2fa", "k8s", "s3", "ec2", "http2", "ipv4", "ipv6",
        "aes-256-gcm", "x509", "oauth2.0", "q1", "q2", "q3", "q4",
    ];
    if known.iter().any(|k| lower == k.as_bytes()) {
        return true;
    }
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = lower.get(digits..).unwrap_or(&[]);
    #[rustfmt::skip]
    let units: &[&[u8]] = &[
        b"d", b"h", b"m", b"s", b"min", b"days", b"chars", b"-bit", b"bit", b"bits", b"-byte",
        b"bytes", b"kb", b"mb", b"gb", b"th", b"st", b"nd", b"rd", b"x", b"+", b"%", b"-char",
        b"-character", b"-characters", b"-day", b"-days", b"-digit", b"ms", b"am", b"pm",
        b"-minute", b"-hour",
    ];
    if digits > 0 && units.contains(&rest) {
        return true;
    }
    let date = bytes.len() == 10 && bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let version = lower
        .strip_prefix(b"v")
        .is_some_and(|r| r.iter().all(|b| b.is_ascii_digit() || *b == b'.'));
    date || version
        || (rest
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b':' | b'/' | b'-'))
            && !rest.is_empty())
}

fn is_sentence(bytes: &[u8]) -> bool {
    let words: Vec<&[u8]> = bytes.split(|&b| b == b' ').collect();
    words.len() > 8
        || words
            .iter()
            .any(|w| is_one_of(w.trim_ascii_end(), SENTENCE))
        || words.iter().any(|w| w.len() > 30)
}

#[rustfmt::skip]
const SENTENCE: &[&str] = &[
    "is", "must", "be", "the", "your", "please", "enter", "required", "invalid", "password",
    "cannot", "should", "with", "and", "for", "to", "of", "a", "not", "least", "characters", "new",
    "current", "confirm", "forgot", "in", "on", "has", "see", "or", "here", "at", "secret", "token",
    "stored", "set", "from", "value",
];

/// Whether the line goes on with words after the value, as prose does.
fn is_followed_by_words(scene: Scene<'_>, end: usize) -> bool {
    let text = scene.text;
    let at = text.skip(end, 2, |b| matches!(b, b'.' | b',' | b'`' | b'"' | b'\''));
    let next = text.skip(at, 3, |b| b == b' ');
    next > at
        && text.at(next).is_ascii_alphabetic()
        && !text.has(next, b"export ")
        && !is_key_next(scene, next)
}

fn is_key_next(scene: Scene<'_>, at: usize) -> bool {
    let end = scene.text.skip(at, 40, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
    });
    matches!(scene.text.at(end), b'=' | b':')
}

pub(super) fn is_one_of(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}

#[rustfmt::skip]
const NO_PASSWORD: &[&str] = &[
    "string", "str", "mut", "match", "else", "u8", "u32", "u64", "usize", "options", "expr", "bool", "boolean", "int", "integer", "number", "text", "none", "null", "nil",
    "true", "false", "undefined", "any", "object", "varchar", "char", "bytes", "byte", "required",
    "optional", "stored", "hidden", "unknown", "expired", "invalid", "incorrect", "missing",
    "empty", "protected", "encrypted", "hashed", "unchanged", "same", "n/a", "tbd", "todo", "yes",
    "no", "the", "see", "must", "should", "not", "vault", "keychain", "1password", "bitwarden",
    "lastpass", "prompt", "default", "disabled", "enabled", "changed", "reset", "rotated", "policy",
    "form", "field", "input", "redacted", "masked", "omitted", "removed", "set", "unset", "given",
    "provided", "ask", "auto", "generated", "random", "manual", "env", "file", "config",
    "securestring", "secretstr", "bearer", "basic", "digest", "token", "sensitive", "const", "let",
    "var", "new", "await", "async", "self", "this", "return", "function", "lambda", "void", "type",
    "interface", "static", "public", "private", "final", "std", "option", "vec", "wrong", "strong",
    "weak", "too", "user", "and", "used", "valid", "managed", "available", "available", "shared",
    "visible", "currently", "now", "only", "never", "always", "also", "case-sensitive", "plain",
    "plaintext", "in", "is", "on", "off", "a", "an", "for", "from", "with", "to", "of", "or", "it",
    "at", "by", "if", "as", "write-only", "read-only", "readonly", "writeonly", "uuid", "base64",
    "secrets", "secret_key", "api_key", "access_token", "refresh_token", "id_token",
    "client_credentials", "authorization_code", "refresh", "access", "recommended", "deprecated",
    "inherit", "pending", "active", "inactive", "revoked",
];

#[rustfmt::skip]
const COMMON: &[&str] = &[
    "password", "letmein", "qwerty", "qwertyuiop", "monkey", "dragon", "iloveyou", "admin",
    "welcome", "sunshine", "princess", "football", "baseball", "master", "shadow", "superman",
    "batman", "trustno", "hunter", "secret", "changeme", "starwars", "login", "abc", "asdf",
    "asdfgh", "asdfghjkl", "zxcvbn", "zxcvbnm", "passw", "whatever", "freedom", "michael",
    "jennifer", "jordan", "charlie", "donald", "root", "toor", "guest", "test", "tester", "testing",
    "administrator", "swordfish", "opensesame", "correcthorsebatterystaple", "mustang", "access",
    "maggie", "pepper", "ginger", "cheese", "computer", "internet", "samsung", "google", "apple",
    "pokemon", "ninja", "summer", "winter", "spring", "autumn", "cookie", "banana", "flower",
    "lovely", "hello", "killer", "soccer", "hockey", "ranger", "buster", "thomas", "robert",
    "matrix", "cowboy", "silver", "purple", "orange", "yellow", "diamond", "chocolate", "liverpool",
    "arsenal", "chelsea", "blink", "nothing", "passpass", "supersecret", "topsecret", "mysecret",
    "mypassword", "temppassword", "temp", "raspberry", "vagrant", "ubnt", "oracle", "postgres",
    "mysql", "tomcat", "cisco", "alpine", "manager", "qazwsx", "iloveu", "azerty", "solo", "biteme",
    "zaq", "loveme", "ashley", "bailey", "passwort", "hallo", "daniel", "jessica",
];
