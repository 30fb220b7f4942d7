//! Finds the name around a keyword and says whether it names a secret.

use super::super::text::{Text, case_turns, is_word};

/// What a key's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Something people choose: weak values count too.
    Password,
    /// Something machines make.
    Secret,
}

/// Longest name that is looked at, in bytes.
const NAME_MAX: usize = 80;

/// The name that holds the bytes `start..end`.
pub(super) fn around(text: Text<'_>, start: usize, end: usize) -> (usize, usize) {
    let part = |b: u8| is_word(b) || matches!(b, b'-' | b'.' | b'$');
    let low = text.back(start, NAME_MAX, part);
    let high = text.skip(end, NAME_MAX, |b| is_word(b) || b == b'-');
    // A dot ends a sentence or leads to a member: only `a.b` goes on.
    let high = if text.at(high) == b'.' && text.at(high + 1).is_ascii_alphabetic() {
        text.skip(high + 1, NAME_MAX, |b| {
            is_word(b) || matches!(b, b'-' | b'.')
        })
    } else {
        high
    };
    let high = text.back(high, high.saturating_sub(end), |b| b == b'-');
    (low, high)
}

/// What the name `name` says of its value; `before` holds the words in front of it, for names such as "API key".
pub(super) fn classify(name: &[u8], before: &[u8]) -> Option<Class> {
    let mut words: Vec<&[u8]> = Vec::new();
    let lead: Vec<&[u8]> = before
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    words.extend(lead.iter().rev().take(2).rev());
    let lead = words.len();
    split(name, &mut words);
    let mut best = None;
    for (i, word) in words.iter().enumerate().skip(lead) {
        let previous = i
            .checked_sub(1)
            .and_then(|j| words.get(j))
            .copied()
            .unwrap_or(b"");
        if let Some(class) = word_class(word, previous) {
            best = Some((i, class));
        }
    }
    let (at, class) = best?;
    let benign = words
        .iter()
        .skip(at + 1)
        .any(|w| is_one_of(w, BENIGN_AFTER));
    (!benign).then_some(class)
}

fn split<'a>(name: &'a [u8], words: &mut Vec<&'a [u8]>) {
    for part in name.split(|&b| matches!(b, b'_' | b'-' | b'.' | b'$')) {
        let mut rest = part;
        while case_turns(rest) > 0 && words.len() < 16 {
            let pairs = rest.iter().zip(rest.iter().skip(1));
            let turn = pairs
                .clone()
                .position(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
            let Some(n) = turn else { break };
            let (head, tail) = rest.split_at(n + 1);
            words.push(head);
            rest = tail;
        }
        if !rest.is_empty() && words.len() < 16 {
            words.push(rest);
        }
    }
}

fn word_class(word: &[u8], previous: &[u8]) -> Option<Class> {
    let word = trim_digits(word);
    if is_one_of(word, &["pass", "pw", "psk", "passwords"]) || ends_with(word, PASSWORD_ENDS) {
        return Some(Class::Password);
    }
    if is_one_of(word, &["key", "keys"]) {
        return is_one_of(previous, KEY_QUALIFIERS).then_some(Class::Secret);
    }
    if is_one_of(word, &["token", "tokens"]) && is_one_of(previous, TOKEN_BENIGN_BEFORE) {
        return None;
    }
    if ends_with(word, SECRET_ENDS) || is_one_of(word, SECRET_WORDS) {
        return Some(Class::Secret);
    }
    if is_one_of(word, &["id"]) && is_one_of(previous, &["session", "sess"]) {
        return Some(Class::Secret);
    }
    None
}

fn trim_digits(word: &[u8]) -> &[u8] {
    let n = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    word.get(..word.len() - n)
        .filter(|w| !w.is_empty())
        .unwrap_or(word)
}

fn is_one_of(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}

fn ends_with(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| {
        let from = word.len().checked_sub(w.len());
        from.and_then(|n| word.get(n..))
            .is_some_and(|end| end.eq_ignore_ascii_case(w.as_bytes()))
    })
}

#[rustfmt::skip]
const PASSWORD_ENDS: &[&str] = &[
    "password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd", "requirepass",
    "userpass", "dbpass", "masterauth", "contrasena", "mot de passe", "contraseña", "пароль", "密码", "密碼", "パスワード", "비밀번호", "hasło", "heslo", "motdepasse", "wachtwoord", "senha",
];

#[rustfmt::skip]
const SECRET_ENDS: &[&str] = &[
    "secret", "token", "apikey", "accesskey", "secretkey", "authkey", "privatekey", "signingkey",
    "encryptionkey", "masterkey", "accountkey", "sharedkey", "keydata", "sharedaccesskey",
    "secrets", "apitoken", "storagekey", "servicekey",
];

#[rustfmt::skip]
const SECRET_WORDS: &[&str] = &[
    "credential", "credentials", "bearer", "auth", "authorization", "jsessionid", "phpsessid",
    "sessionid", "sessid", "authenticity", "apisecret", "pat", "otpauth", "cvv2",
];

#[rustfmt::skip]
const KEY_QUALIFIERS: &[&str] = &[
    "api", "access", "secret", "private", "signing", "encryption", "encrypt", "master", "account",
    "shared", "auth", "service", "storage", "app", "application", "admin", "deploy", "session",
    "server", "client", "webhook", "rest", "read", "write", "live", "prod", "hmac", "aes", "crypto",
    "jwt", "cipher", "secondary", "subscription", "function", "functions", "license", "licence",
    "integration", "ingest", "ingestion", "personal", "user", "user", "developer", "consumer",
    "restricted", "host", "root", "stripe", "openai", "sendgrid", "mailgun", "datadog", "twilio",
    "algolia", "azure", "aws", "gcp", "google", "github", "anthropic", "claude", "maps", "team",
    "bot", "decryption", "wrapping", "data", "sas", "bearer", "recovery", "backup", "management",
    "signature", "sign", "authentication", "authorization", "web", "push", "fcm", "vapid",
    "internal", "partner", "merchant", "payment", "seed", "wallet", "device", "network", "wifi",
    "wpa", "preshared", "ssl", "tls", "ssh", "rsa", "ed25519", "my",
];

#[rustfmt::skip]
const TOKEN_BENIGN_BEFORE: &[&str] = &[
    "next", "page", "continuation", "cancellation", "sync", "max", "min", "num", "per", "total",
    "prompt", "completion", "input", "output", "eos", "bos", "pad", "unk", "sep", "cls", "mask",
    "stop", "special", "design", "end", "start", "of", "k", "new", "reasoning", "cached", "context",
    "resume", "pagination",
];

#[rustfmt::skip]
const BENIGN_AFTER: &[&str] = &[
    "file", "files", "path", "url", "uri", "endpoint", "name", "names", "id", "ids", "policy",
    "policies", "length", "len", "min", "max", "count", "counts", "limit", "limits", "type",
    "types", "hint", "field", "fields", "label", "input", "reset", "expiry", "expires",
    "expiration", "expired", "ttl", "age", "days", "hours", "seconds", "enabled", "disabled",
    "required", "optional", "manager", "provider", "ref", "arn", "version", "prefix", "suffix",
    "header", "headers", "param", "params", "regex", "pattern", "format", "hash", "hashes",
    "hasher", "salt", "column", "table", "error", "errors", "message", "status", "at", "date",
    "created", "updated", "rotation", "rotated", "changed", "strength", "generator", "placeholder",
    "title", "env", "var", "location", "dir", "directory", "index", "bytes", "size", "budget",
    "usage", "cost", "scope", "scopes", "audience", "issuer", "alg", "algorithm", "kid", "in",
    "encoder", "validator", "checker", "helper", "service", "store", "vault", "form", "page",
    "view", "controller", "list", "set", "map", "fingerprint", "digest", "checksum", "sha256",
    "md5", "bits", "dialog", "modal", "button", "screen", "link", "email", "hashing", "storage",
    "source", "mode", "method", "methods", "metadata", "class", "interface", "exception", "request",
    "response", "handler", "middleware", "module", "test", "tests", "spec", "docs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified_by_their_words() {
        let of = |name: &str| classify(name.as_bytes(), b"");
        assert_eq!(of("DB_PASSWORD"), Some(Class::Password));
        assert_eq!(of("dbPassword2"), Some(Class::Password));
        assert_eq!(of("PGPASSWORD"), Some(Class::Password));
        assert_eq!(of("stripe_secret_key"), Some(Class::Secret));
        assert_eq!(of("apiKey"), Some(Class::Secret));
        assert_eq!(of("SECRET_KEY_BASE"), Some(Class::Secret));
        assert_eq!(of("password_hash"), None);
        assert_eq!(of("max_tokens"), None);
        assert_eq!(of("secretName"), None);
        assert_eq!(of("primary_key"), None);
        assert_eq!(of("compass"), None);
        assert_eq!(classify(b"key", b"the API "), Some(Class::Secret));
        assert_eq!(classify(b"key", b"the house "), None);
    }
}
