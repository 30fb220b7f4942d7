//! Texts with secrets planted in them. Nothing here is a live one: values are made from templates.

use arbitrary::{Arbitrary, Result, Unstructured};
use strongroom::redact::example;

/// A text, and what must not be left of it.
#[derive(Debug)]
pub struct Planted {
    /// The text.
    pub text: String,
    /// The planted values as they are, and as they were written.
    pub secrets: Vec<String>,
}

/// Values that say by themselves what they are (templates of [`example::expand`]).
const ALONE: &[&str] = &[
    "AKIA${U16}",
    "AIza${W35}",
    "GOCSPX-${W28}",
    "dop_v1_${h64}",
    "ghp_${A36}",
    "github_pat_${A22}_${A59}",
    "glpat-${W20}",
    "npm_${A36}",
    "rubygems_${h48}",
    "dckr_pat_${W27}",
    "pul-${h40}",
    "hvs.${W95}",
    "sk-ant-api03-${W93}AA",
    "hf_${A34}",
    "gsk_${A52}",
    "xai-${A80}",
    "nvapi-${W64}",
    "sk_live_${A24}",
    "xoxb-${d12}-${d13}-${A24}",
    "SG.${W22}.${W43}",
    "xkeysib-${h64}-${A16}",
    "lin_api_${A40}",
    "figd_${W40}",
    "shpat_${h32}",
    "NRAK-${U27}",
    "PMAK-${h24}-${h34}",
    "AGE-SECRET-KEY-1${U58}",
    "sha256~${A43}",
    "phx_${A43}",
];

/// How such a value is written.
const WRITINGS: &[&str] = &[
    "I pasted {v} into the console",
    "the old one ({v}) was revoked",
    "here it is: {v}.",
    "**{v}** is for CI",
    "- {v}",
    "> {v}",
    "`{v}`",
    "\"{v}\"",
    "'{v}',",
    "X-Request-Value: {v}",
    "https://api.example.org/v1/items?x={v}&page=2",
    "{\"region\": \"eu\", \"value\": \"{v}\", \"port\": 5432}",
    "settings:\n  value: {v}\n  retries: 3",
    "export SERVICE_VALUE={v}",
    "const value = \"{v}\";",
    "| prod | {v} |",
    "Authorization: Bearer {v}",
    "2026-01-02T03:04:05Z INFO started with {v}, attempt 2",
    "{v}",
    "<value>{v}</value>",
    "[{v}](https://x.example.org)",
];

/// Whole texts in which only the structure gives the value away, between `<<` and `>>`.
const STRUCTURES: &[&str] = &[
    "DB_PASSWORD=<<${A14}>>",
    "{\"user\": \"app\", \"password\": \"<<${A12}>>\"}",
    "password: <<${A12}>>",
    "<password><<${A12}>></password>",
    "machine api.example.org login bob password <<${A12}>>",
    "client_secret: <<${A40}>>",
    "export SERVICE_TOKEN='<<${A40}>>'",
    "postgres://app:<<${A14}>>@db.example.org:5432/orders",
    "git clone https://oauth2:<<${A24}>>@git.example.org/a/b.git",
    "Authorization: Bearer <<${A48}>>",
    "curl -H \"X-Api-Key: <<${A32}>>\" https://api.example.org/v1",
    "sshpass -p '<<${A12}>>' ssh bob@h",
    "the password is <<${A14}>>",
    "aws_secret_access_key = <<${A40}>>",
    "-----BEGIN ${=PRIVATE} KEY-----\n<<${A64}>>\n<<${A64}>>\n-----END ${=PRIVATE} KEY-----",
];

const PROSE: &[&str] = &[
    "The deploy went out on Tuesday and nothing broke.",
    "## Next steps",
    "- check the dashboard after the migration",
    "Passwords are never stored here; the vault holds them.",
    "| service | owner | port |",
    "",
    "See https://docs.example.org/guide/intro#setup for the details.",
    "fn main() { println!(\"hello\"); }",
    "Version 2.4.1 fixed the off-by-one; see CHANGELOG.md.",
    "He prefers short answers.",
    "Mail: mia@example.org, +49 30 901820",
];

/// What the engine's parsers and views look for, without being anything whole.
const HOSTILE: &[&str] = &[
    "[REDACTED:password]",
    "[REDACTED:",
    "[REDACTED:nothing]",
    "]",
    "\"",
    "'",
    "`",
    "\\",
    "\\n",
    "\\u00",
    "%",
    "%41",
    "&#65;",
    "&#",
    "password",
    "password:",
    "token=",
    "key: ",
    "=",
    ":",
    "> ",
    "\" + \"",
    "-----BEGIN ",
    "-----END X-----",
    "Bearer ",
    "AKIA",
    "ghp_",
    "sk-",
    "4111 1111 1111 1111",
    "078-05-1120",
    "DE89370400440532013000",
    "QUtJQQ==",
    "41 4b 49 41",
    "\u{200b}",
    "\u{ff21}",
    "\u{202e}",
    "\u{0}",
    "é",
    "日本",
    "<",
    "</",
    "{",
    "}",
    "(",
    ")",
    "|",
    "://",
    "@",
    ";",
    "\t",
    "\r\n",
    "xxxxxxxx",
    "0123456789",
    "abcdefghijklmnop",
    "MRN 12345678",
    "+1 (555) 010-9999",
];

const BLOCKS_MAX: usize = 8;

impl<'a> Arbitrary<'a> for Planted {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut planted = Self {
            text: String::new(),
            secrets: Vec::new(),
        };
        for _ in 0..BLOCKS_MAX {
            if u.is_empty() {
                break;
            }
            match u.int_in_range(0..=9)? {
                0..=2 => planted.text.push_str(u.choose(PROSE)?),
                3 => {
                    let bytes: Vec<u8> = Vec::arbitrary(u)?;
                    planted.text.push_str(&String::from_utf8_lossy(&bytes));
                }
                4 => {
                    let count = u.int_in_range(1..=40)?;
                    planted.text.push_str(&u.choose(HOSTILE)?.repeat(count));
                }
                5..=6 => {
                    for _ in 0..u.int_in_range(1..=12)? {
                        planted.text.push_str(u.choose(HOSTILE)?);
                    }
                }
                _ => planted.plant(u)?,
            }
            planted.text.push('\n');
        }
        Ok(planted)
    }
}

impl Planted {
    /// Whether something that was planted is left: the whole value, or one half of it.
    #[must_use]
    pub fn is_left(&self, output: &str) -> bool {
        self.secrets.iter().any(|secret| {
            let (first, second) = secret.split_at(secret.floor_char_boundary(secret.len() / 2));
            output.contains(secret.as_str())
                || [first, second]
                    .iter()
                    .any(|half| half.len() >= 10 && output.contains(half))
        })
    }

    fn plant(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        // A blank line keeps it from being read as one with what stands before.
        self.text.push('\n');
        let seed = u64::from(u16::arbitrary(u)?);
        if u.ratio(1, 3)? {
            let text = example::expand(u.choose(STRUCTURES)?, seed);
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once("<<") {
                let (secret, after) = after.split_once(">>").unwrap_or((after, ""));
                self.text.push_str(before);
                self.text.push_str(secret);
                self.secrets.push(secret.to_owned());
                rest = after;
            }
            self.text.push_str(rest);
        } else {
            let value = example::expand(u.choose(ALONE)?, seed);
            let written = disguise(u, &value)?;
            let line = u.choose(WRITINGS)?.replace("{v}", &written);
            self.text.push_str(&line);
            if written != value {
                self.secrets.push(written);
            }
            self.secrets.push(value);
        }
        self.text.push('\n');
        Ok(())
    }
}

/// The value as it is, or written so that a plain search does not see it.
fn disguise(u: &mut Unstructured<'_>, value: &str) -> Result<String> {
    let each = |write: &dyn Fn(char) -> String| value.chars().map(write).collect::<String>();
    Ok(match u.int_in_range(0..=15)? {
        0 => base64(value.as_bytes()),
        1 => each(&|c| format!("{:02x}", c as u32)),
        2 => each(&|c| format!("%{:02X}", c as u32)),
        3 => each(&|c| format!("\\u{:04x}", c as u32)),
        4 => each(&|c| format!("&#{};", c as u32)),
        5 => each(&|c| format!("&#x{:x};", c as u32)),
        6 => {
            let (a, b) = value.split_at(value.len() / 2);
            format!("{a}\u{200b}{b}")
        }
        7 => each(&|c| char::from_u32(c as u32 + 0xFEE0).unwrap_or(c).to_string()),
        _ => value.to_owned(),
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;
    use strongroom::redact::{Engine, PACKS};

    #[test]
    fn most_texts_hold_secrets_and_few_are_refused() {
        assert_eq!(base64(b"ab"), "YWI=");
        let engine = Engine::builder()
            .packs(PACKS)
            .build()
            .expect("the packs are good");
        let count = 3_000;
        let (mut planted, mut refused, mut left) = (0, 0, Vec::new());
        for input in built::<Planted>(count, 160) {
            planted += usize::from(!input.secrets.is_empty());
            let out = engine
                .redact(&input.text, None)
                .map(|out| out.text.into_owned());
            refused += usize::from(out.is_err());
            left.extend(
                out.ok()
                    .filter(|out| input.is_left(out))
                    .map(|out| (input, out)),
            );
        }
        println!(
            "{planted} of {count} hold secrets, {refused} refused, {} left",
            left.len()
        );
        for (input, out) in left.iter().take(12) {
            println!("{:?}\n  {:?}\n  {out:?}", input.secrets, input.text);
        }
        assert!(
            planted * 2 > count && refused * 20 < count,
            "{planted}, {refused}"
        );
        assert!(left.is_empty(), "{}", left.len());
    }
}
