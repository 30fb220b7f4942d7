//! Texts that look like secrets and are none: they must come out as they went in.

use super::{Rng, surround};

const FORMS: &[(&str, &str)] = &[
    ("git sha", "fixed in commit ${h40}"),
    ("git sha", "commit ${h40}\nAuthor: bob"),
    ("git sha", "see ${h7} and ${h12}"),
    ("git sha", "rev: ${h40}"),
    ("git sha", "\"sha\": \"${h40}\","),
    ("git sha", "index ${h7}..${h7} 100644"),
    ("uuid", "request id ${u}"),
    ("uuid", "\"id\": \"${u}\""),
    ("uuid", "trace_id=${h32} span_id=${h16}"),
    ("uuid", "user ${u} logged in"),
    ("uuid", "session started for tenant ${u}"),
    ("digest", "sha256:${h64}"),
    ("digest", "\"etag\": \"${h32}\""),
    ("digest", "md5: ${h32}"),
    ("digest", "checksum = \"${h64}\""),
    ("digest", "hash: ${h64}"),
    ("digest", "image: nginx@sha256:${h64}"),
    ("digest", "\"digest\": \"sha256:${h64}\""),
    ("digest", "ETag: W/\"${h32}\""),
    ("digest", "content_hash=${h40}"),
    ("sri", "integrity=\"sha384-${B64}\""),
    ("sri", "\"integrity\": \"sha512-${B86}==\""),
    (
        "lockfile",
        "name = \"serde\"\nversion = \"1.0.200\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"${h64}\"",
    ),
    (
        "lockfile",
        "\"node_modules/left-pad\": {\n  \"version\": \"1.3.0\",\n  \"resolved\": \"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz\",\n  \"integrity\": \"sha512-${B86}==\"\n}",
    ),
    ("lockfile", "golang.org/x/net v0.1.0 h1:${B43}="),
    ("lockfile", "    --hash=sha256:${h64}"),
    (
        "data image",
        "![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA${B300})",
    ),
    (
        "data image",
        "src=\"data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPjwvc3ZnPg==\"",
    ),
    (
        "public key",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC${B300} bob@host",
    ),
    (
        "public key",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${B43} bob",
    ),
    (
        "public key",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n${B64}\n${B64}\n-----END PUBLIC KEY-----",
    ),
    (
        "certificate",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n${B64}\n${B64}\n${B64}\n-----END CERTIFICATE-----",
    ),
    ("certificate", "SHA256:${B43} bob@host (ED25519)"),
    ("certificate", "serial: 04:8f:${h2}:${h2}:${h2}"),
    ("public key", "PublicKey = ${B43}="),
    ("public key", "age1${a58}"),
    ("placeholder", "API_KEY=<your-api-key>"),
    ("placeholder", "api_key: YOUR_API_KEY_HERE"),
    ("placeholder", "password: ********"),
    ("placeholder", "token: xxxxxxxxxxxxxxxxxxxx"),
    ("placeholder", "export OPENAI_API_KEY=sk-..."),
    ("placeholder", "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxx"),
    ("placeholder", "password = \"<password>\""),
    ("placeholder", "secret: {{ vault_secret }}"),
    ("placeholder", "DB_PASSWORD=CHANGE_ME"),
    ("placeholder", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ("placeholder", "postgres://user:password@localhost:5432/db"),
    ("placeholder", "https://user:<token>@github.com/x/y"),
    ("placeholder", "token: [REDACTED]"),
    ("placeholder", "Authorization: Bearer <token>"),
    ("placeholder", "Authorization: Bearer YOUR_TOKEN"),
    ("placeholder", "password: TODO"),
    ("placeholder", "\"apiKey\": \"your-api-key\""),
    ("reference", "password: ${=$}{DB_PASSWORD}"),
    ("reference", "password = os.environ[\"DB_PASSWORD\"]"),
    ("reference", "const key = process.env.API_KEY;"),
    ("reference", "token = os.getenv('TOKEN')"),
    ("reference", "api_key=$API_KEY"),
    ("reference", "DATABASE_URL=postgres://app:${=$}{PW}@db/app"),
    ("reference", "password: !vault |"),
    ("reference", "secret: op://vault/item/password"),
    ("reference", "PASSWORD_FILE=/run/secrets/db"),
    (
        "reference",
        "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password",
    ),
    ("reference", "curl -H \"Authorization: Bearer $TOKEN\" x"),
    ("reference", "password: ${=$}{{ secrets.DB_PASSWORD }}"),
    (
        "reference",
        "token: data.vault_generic_secret.x.data[\"token\"]",
    ),
    ("reference", "api_key = settings.API_KEY"),
    ("reference", "password = getpass.getpass()"),
    ("reference", "curl -u $USER:$PASS x"),
    ("example key", "AKIAIOSFODNN7${=EXAMPLE}"),
    (
        "example key",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY${=EXAMPLEKEY}",
    ),
    ("example key", "sk_test_${=4eC39HqLyjWDarjtT1zdp7dc}"),
    (
        "example key",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.${=SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c}",
    ),
    (
        "identifier",
        "fn compute_password_strength(password: &str) -> u8",
    ),
    ("identifier", "let tokenCount = countTokens(promptText);"),
    (
        "identifier",
        "SecretManagerServiceClient.accessSecretVersion(request)",
    ),
    (
        "identifier",
        "class PasswordResetTokenGenerator(BaseTokenGenerator):",
    ),
    (
        "identifier",
        "password_confirmation = params[:password_confirmation]",
    ),
    (
        "identifier",
        "def login(username: str, password: str) -> Token:",
    ),
    ("identifier", "user.password = hashed_password"),
    (
        "identifier",
        "this.accessToken = response.data.accessToken;",
    ),
    (
        "identifier",
        "if (password !== confirmPassword) throw new Error('mismatch')",
    ),
    ("identifier", "token := r.Header.Get(\"Authorization\")"),
    (
        "identifier",
        "<input type=\"password\" name=\"password\" placeholder=\"Password\">",
    ),
    ("identifier", "private String password;"),
    (
        "identifier",
        "secret_key_base: Rails.application.credentials.secret_key_base",
    ),
    (
        "identifier",
        "const { token, refreshToken } = await api.login(user, password)",
    ),
    ("identifier", "password VARCHAR(255) NOT NULL"),
    ("identifier", "type: string, format: password"),
    ("identifier", "key=lambda item: item.created_at"),
    (
        "identifier",
        "sk-loading-indicator-container-element-wrapper",
    ),
    ("identifier", "assert token.is_valid(now)"),
    ("identifier", "max_tokens=4096, temperature=0.2"),
    (
        "identifier",
        "\"token_type\": \"bearer\", \"expires_in\": 3600",
    ),
    ("identifier", "raise InvalidTokenError(\"token expired\")"),
    ("identifier", "API_KEY_HEADER_NAME = \"X-Api-Key\""),
    ("identifier", "password: z.string().min(8)"),
    ("identifier", "secretName: my-app-tls"),
    ("identifier", "auth: { type: 'oauth2', flow: 'implicit' }"),
    ("identifier", "SESSION_COOKIE_NAME = 'sessionid'"),
    ("identifier", "csrfToken: string | null"),
    ("identifier", "private_key_path = \"~/.ssh/id_ed25519\""),
    (
        "path",
        "/usr/local/lib/python3.11/site-packages/secrets/token_generator.py",
    ),
    (
        "path",
        "s3://bucket/backups/2026/01/02/db-dump-${d14}.sql.gz",
    ),
    (
        "path",
        "C:\\Users\\bob\\AppData\\Local\\Tokens\\new\\cache.bin",
    ),
    (
        "path",
        "node_modules/@babel/helper-validator-identifier/lib/index.js",
    ),
    ("path", "https://cdn.example.org/assets/app.${h20}.js"),
    ("path", "https://example.org/p?id=${h24}&ref=mail"),
    ("path", "arn:aws:iam::123456789012:role/DeployRole"),
    (
        "path",
        "gs://models/checkpoints/step-${d8}/model.safetensors",
    ),
    (
        "camel case",
        "AbstractSingletonProxyFactoryBeanDefinitionRegistryPostProcessor",
    ),
    (
        "camel case",
        "getOrCreateAuthenticationTokenForCurrentUserSession",
    ),
    (
        "camel case",
        "VeryLongClassNameThatKeepsGoingUntilItFillsTheWholeLine2",
    ),
    (
        "prose",
        "Passwords must be at least 12 characters long and contain a digit.",
    ),
    (
        "prose",
        "The password is stored in 1Password under \"staging\".",
    ),
    ("prose", "Reset your password every 90 days."),
    ("prose", "Password: required, at least 8 characters"),
    ("prose", "the secret is to keep the batch small"),
    ("prose", "He forgot the password again; support reset it."),
    ("prose", "Token refresh happens 5 minutes before expiry."),
    (
        "prose",
        "The API key lives in the vault, ask Mia for access.",
    ),
    (
        "prose",
        "password policy: rotate quarterly, no reuse of the last 5",
    ),
    (
        "prose",
        "the password is hashed with argon2id before it is stored",
    ),
    (
        "prose",
        "Basic authentication is disabled, bearer tokens only.",
    ),
    ("prose", "His secret weapon is a 3-minute egg."),
    ("prose", "the password field is empty in the export"),
    ("prose", "We pass: build, lint, test."),
    ("prose", "password is too short"),
    ("prose", "The login page asks for user name and password."),
    ("prose", "the key is under the mat"),
    ("prose", "Use a password manager such as Bitwarden."),
    ("prose", "the passphrase is asked for at start"),
    ("prose", "pin is pulled from the config"),
    ("prose", "token: a unit of text the model reads"),
    ("prose", "credentials: see the runbook"),
    ("prose", "login is broken since 2.4.1"),
    ("prose", "the password prompt appears twice on macOS 14.2"),
    ("prose", "Set the password to something long."),
    ("prose", "the password was leaked in the 2019 breach"),
    ("prose", "password is the same as last year"),
    ("numbers", "order 1234567890123456 shipped"),
    (
        "numbers",
        "took 1234.5678 ms at 2026-03-02T10:11:12.123456Z",
    ),
    ("numbers", "pi = 3.14159265358979323846264338327950288"),
    ("numbers", "0x${h16} is the address"),
    ("numbers", "epoch 1767225600000"),
    (
        "base64",
        "aGVsbG8gd29ybGQsIHRoaXMgaXMganVzdCB0ZXh0IGZvciB0aGUgdGVzdA==",
    ),
    ("ids", "i-0${h16} in eu-west-1"),
    ("ids", "sg-0${h16}, vpc-0${h16}"),
    ("ids", "pk_live_is the public prefix"),
    ("ids", "build ${A12}"),
    ("ids", "video https://youtu.be/${A11}"),
    ("ids", "doi:10.1000/xyz${d6}"),
    ("ids", "cus_${A14} paid inv_${A14}"),
    ("ids", "etag ${h32}-5"),
    ("ids", "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"),
    ("ids", "0x${h40} holds 3 ETH"),
    ("ids", "cache_key = \"user:${d6}:profile\""),
    ("ids", "idempotency_key: ${u}"),
    ("ids", "nonce=${h16}"),
    ("ids", "message id <${a20}@mail.example.org>"),
    ("markdown", "a*b*c and **bold**text, x_y_z"),
    (
        "markdown",
        "> quoted line one\n> quoted line two with abc123\n> and def456",
    ),
];

/// Texts with the name of their kind.
pub fn all(rng: &mut Rng, n: usize) -> Vec<(&'static str, String)> {
    (0..n)
        .map(|i| {
            let (kind, form) = FORMS[i % FORMS.len()];
            let core = rng.expand(form);
            (kind, surround(rng, &core))
        })
        .collect()
}

/// A long clean note of about `bytes` bytes.
pub fn note(rng: &mut Rng, bytes: usize) -> String {
    let mut out = String::new();
    while out.len() < bytes {
        if rng.below(12) == 0 {
            let (_, form) = *rng.pick(FORMS);
            out.push_str(&rng.expand(form));
        } else {
            out.push_str(rng.pick::<&str>(super::PROSE));
        }
        out.push('\n');
    }
    out
}
