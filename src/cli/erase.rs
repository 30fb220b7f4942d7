//! `tenant erase`, its certificates, and `verify-erasure`.

use std::fs::File;
use std::io::{self, Read};

use serde_json::{Value, json};
use strongroom::{Erased, ErasureState, Vault, erasure_state_word};

use super::failure::{Exit, Failure, Stop};
use super::key_args::{CertificateArgs, EraseArgs, ErasedArgs};
use super::output::{Out, say};
use super::progress::Progress;
use super::{desk, open};

/// The largest certificate that is read, in bytes.
const CERTIFICATE_BYTES_MAX: u64 = 64 * 1_024;

pub fn run(args: &EraseArgs) -> Result<(), Stop> {
    // Before the store is opened, so that nobody waits for an answer at a terminal.
    if !args.yes {
        confirm(&args.name)?;
    }
    let vault = open::to_change(&args.look)?;
    let mut progress = Progress::new("erase", "steps");
    let erased = vault.erase_tenant(&args.name, |at, all| progress.show(at, all));
    progress.clear();
    let erased = erased?;
    let certificate = vault.certificate(&erased, Some(&args.name));
    vault.close()?;
    if erased.state != ErasureState::Purged {
        say(
            "note: keys and records are gone; old bytes that no key opens leave the engine's files with `strongroom compact`",
        );
    }
    print(args.look.json, &certificate)
}

pub fn certificate(args: &ErasedArgs) -> Result<(), Stop> {
    let vault = open::to_look(&args.look)?;
    let (erased, name) = find(&vault, &args.tenant)?;
    let certificate = vault.certificate(&erased, name);
    vault.close()?;
    print(args.look.json, &certificate)
}

pub fn verify(args: &CertificateArgs) -> Result<(), Stop> {
    let certificate = read(args)?;
    let vault = open::to_look(&args.look)?;
    let check = vault.verify_erasure(&certificate)?;
    vault.close()?;
    let state = check.state.map(erasure_state_word);
    let mut text = String::new();
    let mut row = |is_good: bool, good: &str, bad: &str| {
        let line = if is_good { good } else { bad };
        text.push_str(&format!("{line}\n"));
    };
    row(
        check.is_genuine,
        "This store made the certificate",
        "This store did not make this certificate, or it was changed",
    );
    if check.is_genuine {
        row(
            check.is_known,
            "The store knows of the erasure",
            "The store does not know of this erasure: it was put back to a time before",
        );
        row(
            !check.has_remains,
            "No record and no key file of the tenant is there",
            "Records or key files of the tenant are there",
        );
        let files = check.files.unwrap_or(0);
        row(
            check.files_with_keys.is_empty(),
            &format!("No part of its wrapped keys in {files} files"),
            &format!(
                "Parts of its wrapped keys in: {}",
                check.files_with_keys.join(", ")
            ),
        );
    }
    let json = json!({
        "holds": check.holds(),
        "genuine": check.is_genuine,
        "known": check.is_known,
        "remains": check.has_remains,
        "files": check.files,
        "files_with_keys": check.files_with_keys,
        "state": state,
    });
    Out::new(args.look.json).answer(&text, &json)?;
    if check.holds() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Integrity,
        "confirm the erasure",
        "Keep the certificate and the directory as they are, and find out what was put back.",
    )
    .into())
}

/// The erasure of this id, or the last one of a tenant of this name.
fn find<'a>(vault: &Vault, tenant: &'a str) -> Result<(Erased, Option<&'a str>), Stop> {
    if let Some(erased) = vault
        .erased()
        .into_iter()
        .find(|erased| erased.tenant_id == tenant)
    {
        return Ok((erased, None));
    }
    match vault.erased_as(tenant)?.pop() {
        Some(erased) => Ok((erased, Some(tenant))),
        None => Err(Failure::new(
            Exit::NotFound,
            "find the erasure: no tenant of this id or name was erased",
            "Run `strongroom tenant list` for the ids of erased tenants.",
        )
        .into()),
    }
}

fn print(json: bool, certificate: &Value) -> Result<(), Stop> {
    let pretty = serde_json::to_string_pretty(certificate).unwrap_or_default();
    Out::new(json).answer(&format!("{pretty}\n"), certificate)
}

/// Whoever is at the terminal writes the name once more.
fn confirm(name: &str) -> Result<(), Stop> {
    let not_confirmed = |what: &str, next: &str| {
        Stop::from(Failure::new(
            Exit::Usage,
            format!("erase the tenant: {what}"),
            next,
        ))
    };
    if !desk::is_watched() {
        return Err(not_confirmed(
            "it was not confirmed",
            "Add --yes, or run it on a terminal to be asked.",
        ));
    }
    desk::write_err(
        format!("This erases {name} for good. Write the name once more to go on: ").as_bytes(),
    );
    let mut line = String::new();
    let read = desk::input().and_then(|mut input| input.read_line(&mut line));
    if read.is_ok() && line.trim_end_matches(['\r', '\n']) == name {
        return Ok(());
    }
    Err(not_confirmed(
        "what was written is not its name",
        "Nothing was changed. Run the command again.",
    ))
}

fn read(args: &CertificateArgs) -> Result<String, Stop> {
    let mut text = String::new();
    let read = if args.file.as_os_str() == "-" {
        io::stdin()
            .lock()
            .take(CERTIFICATE_BYTES_MAX)
            .read_to_string(&mut text)
    } else {
        File::open(&args.file)
            .and_then(|file| file.take(CERTIFICATE_BYTES_MAX).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::new(
            Exit::NotFound,
            format!("read the certificate: {}", error.kind()),
            "Check the file's name.",
        )
        .into()),
    }
}
