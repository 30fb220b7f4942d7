//! Where a key comes from: a flag, else a variable, else the terminal.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use strongroom::Error;
use strongroom::key::{KEY_COMMAND_TIMEOUT, KeySource};
use zeroize::Zeroizing;

use super::args::KeyArgs;
use super::failure::{Exit, Failure, Stop};
use super::key_args::NewKeyArgs;
use super::{desk, words};

const KEY_FILE: &str = "STRONGROOM_KEY_FILE";
const PASSPHRASE_FILE: &str = "STRONGROOM_PASSPHRASE_FILE";
const KEY_COMMAND: &str = "STRONGROOM_KEY_COMMAND";

/// The key of a store that exists.
pub fn source(args: &KeyArgs) -> Result<KeySource, Stop> {
    match named(args)? {
        Some(source) => Ok(source),
        None => ask("Passphrase: "),
    }
}

/// The key of a store that is to be made; a passphrase is asked for twice.
pub fn source_of_new_store(args: &KeyArgs) -> Result<KeySource, Stop> {
    match named(args)? {
        Some(source) => Ok(source),
        None => ask_twice(),
    }
}

/// The key that `key add` adds, unless it is to be generated.
pub fn source_to_add(args: &NewKeyArgs) -> Result<KeySource, Stop> {
    let flags = from_flags(
        args.new_key_file.as_deref(),
        args.new_passphrase_file.as_deref(),
        args.new_key_command.as_deref(),
    )?;
    match flags {
        Some(source) => Ok(source),
        None => ask_twice(),
    }
}

/// The key file that the flags or the variables name, if it is a key file that they name.
pub fn key_file(args: &KeyArgs) -> Result<Option<PathBuf>, Stop> {
    Ok(match named(args)? {
        Some(KeySource::KeyFile(path)) => Some(path),
        _ => None,
    })
}

/// Flags win over variables; two of a kind are a mistake.
fn named(args: &KeyArgs) -> Result<Option<KeySource>, Stop> {
    let flags = from_flags(
        args.key_file.as_deref(),
        args.passphrase_file.as_deref(),
        args.key_command.as_deref(),
    )?;
    match flags {
        Some(source) => Ok(Some(source)),
        None => from_variables(),
    }
}

/// The key that a variable names.
pub fn from_variables() -> Result<Option<KeySource>, Stop> {
    let variables = [KEY_FILE, PASSPHRASE_FILE, KEY_COMMAND].map(variable);
    if variables.iter().flatten().count() > 1 {
        return Err(Failure::new(
            Exit::Usage,
            format!("choose a key: more than one of {KEY_FILE}, {PASSPHRASE_FILE} and {KEY_COMMAND} is set"),
            "Unset all but one, or name the key with a flag.",
        )
        .into());
    }
    let [key_file, passphrase_file, key_command] = variables;
    let key_command = key_command.map(|text| text.to_string_lossy().into_owned());
    from_flags(
        key_file.as_deref().map(Path::new),
        passphrase_file.as_deref().map(Path::new),
        key_command.as_deref(),
    )
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn from_flags(
    key_file: Option<&Path>,
    passphrase_file: Option<&Path>,
    key_command: Option<&str>,
) -> Result<Option<KeySource>, Stop> {
    if let Some(path) = key_file {
        return Ok(Some(KeySource::KeyFile(path.to_path_buf())));
    }
    if let Some(path) = passphrase_file {
        return Ok(Some(KeySource::PassphraseFile(path.to_path_buf())));
    }
    let Some(text) = key_command else {
        return Ok(None);
    };
    let argv = words::split(text).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "read the key command: a quote is not closed",
            "Write the program and its arguments, separated by spaces; '…' and \"…\" keep spaces.",
        )
    })?;
    Ok(Some(KeySource::Command {
        argv,
        timeout: KEY_COMMAND_TIMEOUT,
    }))
}

fn ask_twice() -> Result<KeySource, Stop> {
    let first = prompt("New passphrase: ")?;
    let second = prompt("The same again: ")?;
    if *first != *second {
        return Err(Failure::new(
            Exit::Key,
            "read the passphrase: the two differ",
            "Run the command again.",
        )
        .into());
    }
    Ok(KeySource::Passphrase(first))
}

fn ask(question: &str) -> Result<KeySource, Stop> {
    Ok(KeySource::Passphrase(prompt(question)?))
}

/// Asks on the terminal, which stdin need not be: `exec` reads tool calls there. Where
/// messages do not reach a terminal, nobody would see the question.
fn prompt(question: &str) -> Result<Zeroizing<String>, Stop> {
    if !desk::is_watched() {
        return Err(Error::NoKeySource.into());
    }
    match rpassword::prompt_password(question) {
        Ok(passphrase) => Ok(Zeroizing::new(passphrase)),
        Err(_) => Err(Error::NoKeySource.into()),
    }
}
