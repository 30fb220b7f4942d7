//! `token create`, `list` and `revoke`: who may use a store over HTTP.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use strongroom::policy::TenantPattern;
use strongroom::{Access, Error, NewToken, TokenInfo};

use super::args::LookArgs;
use super::failure::{Exit, Failure, Stop};
use super::output::{Out, say, table};
use super::{open, time};

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it. It is not stored and cannot be shown again.
    ///
    /// The audit log names the token's label as the one who acts.
    #[command(after_help = "\
Example:
  strongroom token create --label intake --tenants 'clinic/*' --expires 90d \\
    --store ./memory --key-file ./memory.key > intake.token")]
    Create(TokenCreateArgs),
    /// List the tokens: ids, labels and what they allow, never the tokens themselves.
    #[command(after_help = "\
Example:
  strongroom token list --store ./memory --key-file ./memory.key --json")]
    List(LookArgs),
    /// Revoke a token, at once and for good, also in a server that runs.
    #[command(after_help = "\
Example:
  strongroom token revoke intake --store ./memory --key-file ./memory.key")]
    Revoke(TokenRevokeArgs),
}

#[derive(Args)]
pub struct TokenCreateArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Who it is for, as the audit log will say: 1 to 64 bytes, no other token's label.
    #[arg(long, value_name = "TEXT")]
    label: String,
    /// The tenants that it is for: a name, or a pattern such as 'clinic/*' (one part more) or
    /// 'clinic/**' (all below). May be given up to 16 times.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    tenants: Vec<TenantPattern>,
    /// What it allows.
    #[arg(long, value_enum, default_value_t = Allowed::ReadWrite)]
    access: Allowed,
    /// When it ends: a date, which counts whole (2027-12-31, in UTC), a date and time
    /// (2027-12-31T18:00:00Z), or so long from now (90d; s, m, h, d, w, y) [default: never].
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

#[derive(Args)]
pub struct TokenRevokeArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The token's label or id, from `token list`.
    #[arg(value_name = "LABEL|ID")]
    token: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Allowed {
    /// view only.
    ReadOnly,
    /// All six commands.
    ReadWrite,
    /// GET /metrics, and no tenant's memory.
    Metrics,
}

pub fn run(command: &TokenCommand) -> Result<(), Stop> {
    match command {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List(args) => list(args),
        TokenCommand::Revoke(args) => revoke(args),
    }
}

fn create(args: &TokenCreateArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    let expires = match &args.expires {
        Some(text) => Some(time::until(text, vault.now(), "--expires")?),
        None => None,
    };
    let new = NewToken {
        label: args.label.clone(),
        access: match args.access {
            Allowed::ReadOnly => Access::ReadOnly,
            Allowed::ReadWrite => Access::ReadWrite,
            Allowed::Metrics => Access::Metrics,
        },
        tenants: args.tenants.clone(),
        expires,
    };
    let (info, token) = vault.create_token(&new).map_err(wrong)?;
    vault.close()?;
    say("This token is not stored and cannot be shown again. Whoever has it can use it.");
    let mut json = as_json(&info);
    if let Some(json) = json.as_object_mut() {
        json.insert("token".to_owned(), Value::from(token.as_str()));
    }
    Out::new(args.look.json).answer(&format!("{}\n", *token), &json)
}

fn list(args: &LookArgs) -> Result<(), Stop> {
    let vault = open::to_look(args)?;
    let (tokens, now) = (vault.tokens(), vault.now());
    vault.close()?;
    let head = ["ID", "LABEL", "ACCESS", "CREATED", "EXPIRES", "TENANTS"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for token in &tokens {
        rows.push(vec![
            token.id.clone(),
            token.label.clone(),
            word(token.access).to_owned(),
            time::utc(token.created),
            match token.expires {
                None => "never".to_owned(),
                Some(at) if at <= now => "has expired".to_owned(),
                Some(at) => time::utc(at),
            },
            patterns(token).join(" "),
        ]);
    }
    let json = tokens.iter().map(as_json).collect();
    Out::new(args.json).answer(&table(&rows, &[]), &Value::Array(json))
}

fn revoke(args: &TokenRevokeArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    let revoked = vault.revoke_token(&args.token)?;
    vault.close()?;
    let Some(token) = revoked else {
        return Err(Failure::new(
            Exit::NotFound,
            "revoke the token: there is none with this label or id",
            "Run `strongroom token list` for labels and ids.",
        )
        .into());
    };
    Out::new(args.look.json).answer(
        &format!("Revoked {} ({})\n", token.label, token.id),
        &as_json(&token),
    )
}

fn wrong(error: Error) -> Stop {
    match error {
        Error::Token(what) => Failure::new(
            Exit::Usage,
            format!("make the token: {what}"),
            "Correct --label, --tenants or --access.",
        )
        .into(),
        error => error.into(),
    }
}

fn pattern(text: &str) -> Result<TenantPattern, String> {
    TenantPattern::parse(text).map_err(|reason| format!("the pattern {reason}"))
}

fn patterns(token: &TokenInfo) -> Vec<String> {
    token.tenants.iter().map(ToString::to_string).collect()
}

fn word(access: Access) -> &'static str {
    match access {
        Access::ReadOnly => "read-only",
        Access::Metrics => "metrics",
        _ => "read-write",
    }
}

fn as_json(token: &TokenInfo) -> Value {
    json!({
        "id": token.id,
        "label": token.label,
        "access": word(token.access),
        "tenants": patterns(token),
        "created": time::utc(token.created),
        "expires": token.expires.map(time::utc),
    })
}
