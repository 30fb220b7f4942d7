//! Plants values: in prose, under keys, in structure, and written so that scanners miss them.

use super::secrets::{FORMATS, KEYED, PASSWORD_KEYS, STRONG, WEAK};
use super::{Rng, Sample, surround};

/// What may stand right behind a value.
const AFTER: &[&str] = &[
    "", ".", ",", ";", ":", "!", "?", ")", "]", "}", ">", "\"", "'", "`", "*", "**", "|", " |",
    "\\", "…", " ", "\t", "\\n", "</b>", "&", "#", "/",
];

const PROSE_FORMS: &[&str] = &[
    "The key is {}",
    "use {} for the staging calls",
    "I pasted {} into the console and it worked",
    "Token ({}) expires in May",
    "**{}** is the one for CI",
    "- {}",
    "> {}",
    "set it to \"{}\" and restart",
    "the old one was {} and must be revoked",
    "here you go: {}",
    "| prod | {} |",
    "`{}`",
    "Bob's key={} works",
    "curl with {} gave 200",
    "_{}_ was in the log",
    "key:{}",
    "[{}](https://x.example.org)",
    "1. {}",
    "{}, as agreed",
    "<{}>",
    "see “{}” in the mail",
    "\"{}\"",
    "({})",
    "{} {}",
];

const KEY_FORMS: &[(&str, &str)] = &[
    ("env", "{k}={v}"),
    ("env", "export {k}=\"{v}\""),
    ("env", "{k}='{v}'"),
    ("yaml", "{k}: {v}"),
    ("yaml", "  {k}: \"{v}\""),
    ("yaml", "- name: {k}\n  value: {v}"),
    ("yaml", "{k}: '{v}'  # rotated"),
    ("json", "{\"{k}\": \"{v}\", \"port\": 5432}"),
    ("json", "{\"user\":\"app\",\"{k}\":\"{v}\"}"),
    ("json", "\"{k}\" : \"{v}\","),
    ("toml", "{k} = \"{v}\""),
    ("ini", "{k} = {v}"),
    ("xml", "<{k}>{v}</{k}>"),
    ("xml", "<add key=\"{k}\" value=\"{v}\" />"),
    ("xml", "<property name=\"{k}\" value=\"{v}\"/>"),
    ("code", "const {k} = '{v}';"),
    ("code", "{k}: str = \"{v}\""),
    ("code", "config[\"{k}\"] = \"{v}\""),
    ("code", "let {k}: String = \"{v}\".to_string();"),
    ("code", "{k} := \"{v}\""),
    ("code", "client = Client({k}=\"{v}\")"),
    ("code", "define('{k}', '{v}');"),
    ("code", "\"{k}\" => \"{v}\","),
    ("code", "private static final String {k} = \"{v}\";"),
    ("code", "os.environ['{k}'] = '{v}'"),
    ("code", "if {k} == \"{v}\":"),
    ("table", "| {k} | {v} |"),
    ("table", "| setting | value |\n|---|---|\n| {k} | `{v}` |"),
    ("markdown", "- **{k}**: `{v}`"),
    ("markdown", "* {k}: {v}"),
    ("markdown", "`{k}={v}`"),
    ("shell", "$ {k}={v} ./run.sh"),
    ("shell", "docker run -e {k}={v} img"),
    ("shell", "./deploy --{k}={v} --force"),
    ("shell", "./deploy --{k} {v} --force"),
    ("shell", "  501  export {k}={v}"),
    (
        "shell",
        "kubectl create secret generic s --from-literal={k}={v}",
    ),
    ("log", "2026-01-02T03:04:05Z INFO cfg {k}={v} loaded"),
    ("log", "[debug] {k}: {v}, retry=3"),
    ("log", "level=info {k}=\"{v}\" msg=ok"),
    ("docker", "ENV {k} {v}"),
    ("docker", "ENV {k}={v}"),
    ("query", "https://api.example.org/v1?id=4&{k}={v}&x=1"),
    ("properties", "{k}:{v}"),
    ("powershell", "$env:{k} = \"{v}\""),
];

fn fill(form: &str, key: &str, value: &str) -> String {
    form.replace("{k}", key).replace("{v}", value)
}

/// Values that say what they are, in running text, with every kind of end.
pub fn prose(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let (class, template) = FORMATS[i % FORMATS.len()];
            let value = rng.expand(template);
            let end = *rng.pick(AFTER);
            let form = *rng.pick(PROSE_FORMS);
            let core = if form.starts_with("key:") || rng.below(3) > 0 {
                form.replacen("{}", &format!("{value}{end}"), 1)
            } else {
                form.replacen("{}", &value, 1)
            };
            let core = core.replace("{}", "");
            Sample {
                text: surround(rng, &core),
                planted: vec![value],
                class,
                context: "prose",
            }
        })
        .collect()
}

/// Values that say what they are, under keys that do not.
pub fn placed(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let (class, template) = FORMATS[i % FORMATS.len()];
            let value = rng.expand(template);
            let (context, form) = *rng.pick(KEY_FORMS);
            let key = *rng.pick(&[
                "token",
                "value",
                "cfg",
                "x",
                "auth",
                "SERVICE_TOKEN",
                "data",
                "k1",
            ]);
            Sample {
                text: surround(rng, &fill(form, key, &value)),
                planted: vec![value],
                class,
                context,
            }
        })
        .collect()
}

/// Values that only their key gives away.
pub fn keyed(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let (key, template) = KEYED[i % KEYED.len()];
            let value = rng.expand(template);
            let (context, form) = *rng.pick(KEY_FORMS);
            Sample {
                text: surround(rng, &fill(form, key, &value)),
                planted: vec![value],
                class: "keyed",
                context,
            }
        })
        .collect()
}

fn password(rng: &mut Rng, weak: bool) -> String {
    if weak {
        (*rng.pick(WEAK)).to_owned()
    } else {
        let t = *rng.pick(STRONG);
        rng.expand(t)
    }
}

/// Passwords under a key.
pub fn passwords_keyed(rng: &mut Rng, n: usize, weak: bool) -> Vec<Sample> {
    (0..n)
        .map(|_| {
            let mut value = password(rng, weak);
            let (context, form) = *rng.pick(KEY_FORMS);
            if context == "query" {
                value = value.replace(['&', '#', '%'], "x");
            }
            if context == "xml" {
                value = value.replace(['&', '<'], "x");
            }
            let key = *rng.pick(PASSWORD_KEYS);
            Sample {
                text: surround(rng, &fill(form, key, &value)),
                planted: vec![value],
                class: if weak {
                    "weak password"
                } else {
                    "strong password"
                },
                context,
            }
        })
        .collect()
}

const PASSWORD_PROSE: &[&str] = &[
    "the password is {}",
    "The password for the staging database is {}.",
    "password: {}",
    "Password is {} (do not share)",
    "I changed the root password to {} yesterday.",
    "his password was {}, now rotated",
    "log in with admin / {}",
    "login: admin:{}",
    "credentials: bob / {}",
    "use {} as the password",
    "{} is the password for the wiki",
    "user is admin and password is {}",
    "user admin, password {}",
    "The wifi password is still {}.",
    "set the password to {} for now",
    "pw: {}",
    "the admin pw is {}",
    "pass: {}",
    "password = {}",
    "My password is \"{}\".",
    "the passphrase is {}",
    "The new password will be {}",
    "password → {}",
    "Passwort: {}",
    "the password: `{}`",
    "password (prod): {}",
    "The default password is {}, change it",
    "password for root: {}",
    "we set the DB password as {}",
    "Her passcode is {}",
    "**Password:** {}",
    "the password's {}",
    "root password - {}",
    "creds: admin/{}",
];

/// Passwords in running text.
pub fn passwords_prose(rng: &mut Rng, n: usize, weak: bool) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let value = password(rng, weak);
            let form = PASSWORD_PROSE[i % PASSWORD_PROSE.len()];
            Sample {
                text: surround(rng, &form.replace("{}", &value)),
                planted: vec![value],
                class: if weak {
                    "weak password"
                } else {
                    "strong password"
                },
                context: "password prose",
            }
        })
        .collect()
}

const STRUCTURE: &[(&str, &str)] = &[
    ("url", "postgres://app:{p}@db.internal:5432/app"),
    ("url", "mysql://root:{p}@10.0.0.4/app?ssl=1"),
    ("url", "mongodb+srv://svc:{p}@c0.abcde.mongodb.net/test"),
    ("url", "redis://:{p}@cache:6379/0"),
    ("url", "amqps://user:{p}@mq.example.org/vhost"),
    ("url", "https://bob:{p}@git.example.org/x.git"),
    ("url", "DATABASE_URL=postgresql+asyncpg://app:{p}@db/app"),
    ("url", "ftp://deploy:{p}@ftp.example.org/www"),
    ("url", "clone https://oauth2:{t}@gitlab.example.org/a/b.git"),
    ("url", "https://{t}@github.com/org/repo.git"),
    ("url", "smtp://mailer:{p}@smtp.example.org:587"),
    ("url", "ldap://cn=admin:{p}@ldap.example.org"),
    ("url", "jdbc:postgresql://db:5432/app?user=app&password={q}"),
    ("url", "proxy=http://corp:{p}@proxy:3128"),
    ("url", "sqlalchemy.url = mssql+pyodbc://sa:{p}@host/db"),
    ("header", "Authorization: Bearer {t}"),
    (
        "header",
        "curl -H \"Authorization: Bearer {t}\" https://api.example.org",
    ),
    ("header", "-H 'X-Api-Key: {t}'"),
    ("header", "Authorization: Basic {b}"),
    ("header", "\"Authorization\": \"Basic {b}\","),
    ("header", "headers = {'Authorization': 'Token {t}'}"),
    ("header", "Proxy-Authorization: Basic {b}"),
    ("header", "Private-Token: {t}"),
    ("header", "Cookie: theme=dark; sessionid={t}; lang=en"),
    ("header", "Set-Cookie: SID={t}; HttpOnly"),
    ("header", "authorization: bearer {t}"),
    ("header", "X-Vault-Token: {t}"),
    ("header", "req.setHeader('Authorization', 'Bearer {t}')"),
    ("header", "Authorization: {t}"),
    (
        "connection",
        "Server=db;Database=app;User Id=sa;Password={q};Encrypt=true",
    ),
    (
        "connection",
        "Driver={ODBC Driver 18};Server=x;UID=sa;PWD={q};",
    ),
    (
        "connection",
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=R;SharedAccessKey={k}",
    ),
    (
        "connection",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={s};EndpointSuffix=core.windows.net",
    ),
    (
        "connection",
        "host=db port=5432 user=app password={q} dbname=app",
    ),
    (
        "connection",
        "Data Source=x;Initial Catalog=y;Integrated Security=False;User ID=u;Password={q}",
    ),
    ("netrc", "machine api.example.org login bob password {q}"),
    ("netrc", "machine h\n  login bob\n  password {q}"),
    ("pgpass", "db.example.org:5432:app:bob:{q}"),
    ("cli", "curl -u admin:{q} https://x.example.org"),
    ("cli", "mysql -u root -p{q} app"),
    ("cli", "sshpass -p '{q}' ssh bob@h"),
    ("cli", "docker login -u bob -p {q} reg.example.org"),
    ("cli", "redis-cli -a {q} ping"),
    ("cli", "PGPASSWORD={q} psql -h db"),
    ("cli", "wget --http-password={q} https://x"),
    ("cli", "curl --user 'bob:{q}' x"),
    (
        "config",
        "{\"auths\": {\"https://index.docker.io/v1/\": {\"auth\": \"{b}\"}}}",
    ),
    ("config", "    client-key-data: {s}"),
    ("config", "    token: {t}"),
    ("config", "requirepass {q}"),
    ("config", "//registry.npmjs.org/:_authToken={u}"),
    ("sql", "ALTER USER app WITH PASSWORD '{q}';"),
    ("sql", "CREATE USER a IDENTIFIED BY '{q}';"),
    ("sql", "GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY '{q}'"),
];

/// Secrets that are known by where they stand.
pub fn structure(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let (context, form) = STRUCTURE[i % STRUCTURE.len()];
            let mark = ["{p}", "{t}", "{q}", "{b}", "{k}", "{s}", "{u}"]
                .into_iter()
                .find(|m| form.contains(m))
                .unwrap();
            let weak = rng.below(2) == 0;
            let value = match mark {
                "{p}" => password(rng, weak).replace(['@', '/', '#', '?'], "x"),
                "{q}" => password(rng, weak).replace(['&', ';', '\'', '%', '$', '#', ':'], "x"),
                "{t}" => {
                    let template = *rng.pick(&["${A32}", "${h40}", "${W48}", "${A20}"]);
                    rng.expand(template)
                }
                "{b}" => base64(format!("bob:{}", password(rng, weak)).as_bytes()),
                "{k}" => rng.expand("${A43}="),
                "{s}" => rng.expand("${A86}=="),
                _ => rng.expand("${u}"),
            };
            Sample {
                text: surround(rng, &form.replace(mark, &value)),
                planted: vec![value],
                class: "structure",
                context,
            }
        })
        .collect()
}

/// Private keys, whole, quoted, escaped, indented, cut off.
pub fn keys(rng: &mut Rng, n: usize) -> Vec<Sample> {
    let labels = [
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "DSA PRIVATE KEY",
    ];
    (0..n)
        .map(|i| {
            let label = *rng.pick(&labels);
            let mut lines: Vec<String> = (0..4 + rng.below(20))
                .map(|_| rng.expand("${B64}"))
                .collect();
            lines.push(rng.expand("${B38}=="));
            let begin = format!("-----BEGIN {label}-----");
            let end = format!("-----END {label}-----");
            let all = |sep: &str| format!("{begin}{sep}{}{sep}{end}", lines.join(sep));
            let (context, core) = match i % 9 {
                0 => ("pem", all("\n")),
                1 => (
                    "pem escaped",
                    format!("\"private_key\": \"{}\\n\",", all("\\n")),
                ),
                2 => ("pem indented", format!("key: |\n    {}", all("\n    "))),
                3 => ("pem quoted", format!("> {}", all("\n> "))),
                4 => (
                    "pem without end",
                    format!("{begin}\n{}\nand then the note goes on", lines.join("\n")),
                ),
                5 => ("pem crlf", all("\r\n")),
                6 => ("pem one line", all(" ")),
                7 => (
                    "pem in code",
                    format!(
                        "\"{begin}\\n\" +\n\"{}\\n\" +\n\"{end}\"",
                        lines.join("\\n\" +\n\"")
                    ),
                ),
                _ => ("pem commented", format!("# {}", all("\n# "))),
            };
            Sample {
                text: surround(rng, &core),
                planted: lines,
                class: "private key",
                context,
            }
        })
        .collect()
}

/// Values written so that they read the same to people, not to scanners.
pub fn evasions(rng: &mut Rng, n: usize) -> Vec<Sample> {
    const KINDS: usize = 24;
    (0..n)
        .map(|i| {
            let (class, template) = FORMATS[rng.below(FORMATS.len())];
            let value = rng.expand(template);
            let mid = 6 + rng.below(value.len() - 10);
            let each = |every: usize, f: &dyn Fn(char) -> String| {
                value
                    .chars()
                    .enumerate()
                    .map(|(i, c)| {
                        if i % every == every - 1 {
                            f(c)
                        } else {
                            c.to_string()
                        }
                    })
                    .collect::<String>()
            };
            let (a, b) = value.split_at(mid);
            let (context, form, whole): (&'static str, String, Option<String>) = match i % KINDS {
                0 => ("zero-width", each(5, &|c| format!("{c}\u{200b}")), None),
                1 => ("soft hyphen", format!("{a}\u{ad}{b}"), None),
                2 => (
                    "fullwidth",
                    value
                        .chars()
                        .map(|c| {
                            if c.is_ascii_graphic() {
                                char::from_u32(c as u32 + 0xfee0).unwrap()
                            } else {
                                c
                            }
                        })
                        .collect(),
                    None,
                ),
                3 => (
                    "fullwidth part",
                    each(4, &|c| {
                        if c.is_ascii_alphanumeric() {
                            char::from_u32(c as u32 + 0xfee0).unwrap().to_string()
                        } else {
                            c.to_string()
                        }
                    }),
                    None,
                ),
                4 => ("homoglyph", value.chars().map(homoglyph).collect(), None),
                5 => (
                    "html decimal",
                    each(3, &|c| format!("&#{};", c as u32)),
                    None,
                ),
                6 => (
                    "html hex",
                    value
                        .chars()
                        .map(|c| format!("&#x{:x};", c as u32))
                        .collect(),
                    None,
                ),
                7 => (
                    "percent",
                    value
                        .chars()
                        .map(|c| format!("%{:02X}", c as u32))
                        .collect(),
                    None,
                ),
                8 => (
                    "percent part",
                    each(4, &|c| format!("%{:02x}", c as u32)),
                    None,
                ),
                9 => (
                    "unicode escape",
                    value
                        .chars()
                        .map(|c| format!("\\u{:04x}", c as u32))
                        .collect(),
                    None,
                ),
                10 => (
                    "hex escape",
                    each(3, &|c| format!("\\x{:02x}", c as u32)),
                    None,
                ),
                11 => ("base64", base64(value.as_bytes()), None),
                12 => (
                    "base64 of text",
                    base64(format!("token={value}\nuser=bob\n").as_bytes()),
                    None,
                ),
                13 => (
                    "hex",
                    value.bytes().map(|b| format!("{b:02x}")).collect(),
                    None,
                ),
                14 => ("wrapped", format!("{a}\n{b}"), None),
                15 => (
                    "wrapped quoted",
                    format!("> {a}\n> {b}"),
                    Some(format!("> {a}\n> {b}")),
                ),
                16 => ("wrapped indented", format!("{a}\\\n    {b}"), None),
                17 => ("concatenated", format!("\"{a}\" + \"{b}\""), None),
                18 => ("adjacent literals", format!("(\"{a}\"\n  \"{b}\")"), None),
                19 => (
                    "markdown escape",
                    value
                        .replace('_', "\\_")
                        .replace('-', "\\-")
                        .replace('.', "\\."),
                    None,
                ),
                20 => ("emphasis inside", format!("{a}**{b}**"), None),
                21 => ("spaced", spaced(value.chars().map(String::from)), None),
                22 => (
                    "hex spaced",
                    spaced(value.bytes().map(|b| format!("{b:02x}"))),
                    None,
                ),
                _ => (
                    "hex colons",
                    value
                        .bytes()
                        .map(|b| format!("{b:02X}"))
                        .collect::<Vec<_>>()
                        .join(":"),
                    None,
                ),
            };
            let lead = *rng.pick(&["", "the key is ", "token: ", "- ", "x = "]);
            let core = whole.unwrap_or_else(|| format!("{lead}{form}"));
            Sample {
                text: surround(rng, &core),
                planted: vec![form],
                class,
                context,
            }
        })
        .collect()
}

fn spaced(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

const WORDS: &[&str] = &[
    "correct",
    "horse",
    "battery",
    "staple",
    "purple",
    "monkey",
    "dishwasher",
    "copper",
    "lantern",
    "river",
    "anchor",
    "velvet",
    "garden",
    "pepper",
    "walnut",
    "thunder",
    "marble",
    "cactus",
    "engine",
    "sparrow",
    "blanket",
    "cobalt",
    "orchid",
    "tundra",
];

const PHRASE_FORMS: &[&str] = &[
    "the passphrase is {}",
    "The passphrase for the backup is {}.",
    "passphrase: {}",
    "my old passphrase was {}, now changed",
    "set the passphrase to {}",
    "The disk password is {}",
    "Passphrase of the laptop: {}",
    "the passphrase is \"{}\"",
];

/// Passphrases of several words in running text.
pub fn phrases(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let words: Vec<&str> = (0..4 + rng.below(3)).map(|_| *rng.pick(WORDS)).collect();
            let value = words.join(" ");
            let core = PHRASE_FORMS[i % PHRASE_FORMS.len()].replace("{}", &value);
            Sample {
                text: surround(rng, &core),
                planted: vec![value],
                class: "passphrase",
                context: "passphrase",
            }
        })
        .collect()
}

fn homoglyph(c: char) -> char {
    match c {
        'A' => 'А',
        'B' => 'В',
        'C' => 'С',
        'E' => 'Е',
        'H' => 'Н',
        'K' => 'К',
        'M' => 'М',
        'O' => 'О',
        'P' => 'Р',
        'T' => 'Т',
        'X' => 'Х',
        'a' => 'а',
        'c' => 'с',
        'e' => 'е',
        'o' => 'ο',
        'p' => 'р',
        'x' => 'х',
        'y' => 'у',
        'i' => 'і',
        's' => 'ѕ',
        'I' => 'Ι',
        'Z' => 'Ζ',
        'N' => 'Ν',
        'h' => 'һ',
        _ => c,
    }
}

pub fn base64(bytes: &[u8]) -> String {
    const SET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i <= chunk.len() {
                char::from(SET[(n >> (18 - 6 * i)) as usize & 63])
            } else {
                '='
            });
        }
    }
    out
}
