//! What of a command line goes to the holder, and which commands it carries out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::args::Command;
use super::super::audit::args::AuditCommand;
use super::super::failure::{Exit, Failure};
use super::super::key_args::{KeyCommand, NewKeyArgs};
use super::super::policy_args::PolicyCommand;

/// Options whose values stay with the process that was given them.
const KEPT: [&str; 4] = [
    "--store",
    "--key-file",
    "--passphrase-file",
    "--key-command",
];

/// A command line on its way to the holder.
#[derive(Serialize, Deserialize)]
pub struct Request {
    /// The words after the program's name, without store and key.
    pub args: Vec<String>,
    /// Where paths among them start.
    pub cwd: PathBuf,
}

/// The words without those that name the store and its key. `None` where one is not UTF-8.
pub fn without_store_and_key(words: impl Iterator<Item = OsString>) -> Option<Vec<String>> {
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let word = word.into_string().ok()?;
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.as_str(), false),
        };
        if KEPT.contains(&name) {
            if !has_value {
                words.next();
            }
            continue;
        }
        let is_end = word == "--";
        kept.push(word);
        if is_end {
            break;
        }
    }
    for word in words {
        kept.push(word.into_string().ok()?);
    }
    Some(kept)
}

/// The words as the holder parses them: with its own name of the store.
pub fn with_store(args: &[String], store: &Path) -> Vec<OsString> {
    let at = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let (before, after) = args.split_at(at);
    let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let mut all = vec![OsString::from("strongroom")];
    all.extend(words(before));
    all.extend([OsString::from("--store"), store.as_os_str().to_owned()]);
    all.extend(words(after));
    all
}

/// Makes the command ready to run here for a process that works in `cwd`, or refuses it.
///
/// A command that is not named here is refused, so that one which reads a file or the
/// terminal is looked at before it runs in a process that may see other files. To admit one:
/// give it a line, with each path that it takes led through `rebase`.
pub fn admit(command: &mut Command, cwd: &Path) -> Result<(), Failure> {
    match command {
        Command::Exec(args) if args.read_only => Err(refused("exec --read-only")),
        Command::Verify(args) if args.accept_loss => Err(refused("verify --accept-loss")),
        Command::Exec(_)
        | Command::Verify(_)
        | Command::Rescan(_)
        | Command::Expire(_)
        | Command::Checkpoint(_)
        | Command::Audit {
            command: AuditCommand::Show(_) | AuditCommand::Verify(_),
        }
        | Command::Hold { .. }
        | Command::Stats(_)
        | Command::Compact(_)
        | Command::Token { .. }
        | Command::Tenant { .. }
        | Command::Key {
            command: KeyCommand::List(_) | KeyCommand::Remove(_),
        } => Ok(()),
        Command::Audit {
            command: AuditCommand::Export(args),
        } => {
            if args.file.as_os_str() != "-" {
                rebase(&mut args.file, cwd);
            }
            Ok(())
        }
        Command::Export(args) => {
            let target = &mut args.target;
            admit_file(&mut target.to, cwd, "export --tar -")?;
            admit_file(&mut target.tar, cwd, "export --tar -")
        }
        Command::Import(args) => {
            let source = &mut args.source;
            admit_file(&mut source.from, cwd, "import --tar -")?;
            admit_file(&mut source.tar, cwd, "import --tar -")
        }
        Command::Backup(args) => {
            for path in [&mut args.to, &mut args.keys].into_iter().flatten() {
                rebase(path, cwd);
            }
            Ok(())
        }
        // Without a tenant it makes a store of its own, and asks no holder.
        Command::Restore(args) if args.tenant.is_some() => {
            rebase(&mut args.from, cwd);
            if let Some(keys) = &mut args.keys {
                rebase(keys, cwd);
            }
            Ok(())
        }
        Command::Upgrade(_) => Ok(()),
        Command::Policy {
            command: PolicyCommand::Show(args),
        } => {
            if let Some(policy) = &mut args.diff {
                rebase_policy(policy, cwd);
            }
            Ok(())
        }
        Command::Policy {
            command: PolicyCommand::Set(args),
        } => {
            rebase_policy(&mut args.policy, cwd);
            Ok(())
        }
        Command::Key {
            command: KeyCommand::Add(args),
        } => admit_new_key(&mut args.new, cwd),
        Command::Key {
            command: KeyCommand::Change(args),
        } => admit_new_key(&mut args.new, cwd),
        Command::Key {
            command: KeyCommand::Rotate(args),
        } => {
            if args.full {
                return Err(refused("key rotate --full"));
            }
            if args.new.is_named() {
                admit_new_key(&mut args.new, cwd)?;
            }
            Ok(())
        }
        Command::VerifyErasure(args) => {
            if args.file.as_os_str() == "-" {
                return Err(refused("verify-erasure -"));
            }
            rebase(&mut args.file, cwd);
            Ok(())
        }
        _ => Err(refused("this command")),
    }
}

/// A new key is read where a path says, never asked for, and no program is run here for it.
fn admit_new_key(new: &mut NewKeyArgs, cwd: &Path) -> Result<(), Failure> {
    let mut paths = [
        &mut new.new_key_file,
        &mut new.new_passphrase_file,
        &mut new.generate_key,
    ];
    if let Some(path) = paths.iter_mut().find_map(|path| path.as_mut()) {
        rebase(path, cwd);
        return Ok(());
    }
    Err(Failure::new(
        Exit::Locked,
        "add the key: another process holds the store, and it takes the new key from a file only",
        "Use --generate-key, --new-key-file or --new-passphrase-file, or end that process first.",
    ))
}

/// A path, but not `-`: that one's stream of bytes would need to know both terminals.
fn admit_file(path: &mut Option<PathBuf>, cwd: &Path, pipe: &str) -> Result<(), Failure> {
    match path {
        Some(path) if path.as_os_str() == "-" => Err(refused(pipe)),
        Some(path) => {
            rebase(path, cwd);
            Ok(())
        }
        None => Ok(()),
    }
}

fn rebase(path: &mut PathBuf, cwd: &Path) {
    *path = cwd.join(&path);
}

/// A shipped policy goes by its name, which holds no `/` and does not end in `.toml`.
fn rebase_policy(policy: &mut String, cwd: &Path) {
    if policy.contains('/') || policy.ends_with(".toml") {
        *policy = cwd.join(&policy).to_string_lossy().into_owned();
    }
}

fn refused(what: &str) -> Failure {
    Failure::new(
        Exit::Locked,
        format!(
            "use the store: it is held by process {}, which does not carry out {what} for another",
            std::process::id()
        ),
        "End that process, or wait for it.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(words: &str) -> Vec<String> {
        without_store_and_key(words.split(' ').map(OsString::from)).unwrap()
    }

    #[test]
    fn store_and_key_stay_behind() {
        for words in [
            "key add --store s --key-file k --label x",
            "key add --label x --store=s --key-command=cat",
            "key --passphrase-file p add --label x",
        ] {
            assert_eq!(kept(words).join(" "), "key add --label x");
        }
        assert_eq!(
            kept("policy set --store s -- --store").join(" "),
            "policy set -- --store"
        );
        assert_eq!(kept("a --label=--store b").join(" "), "a --label=--store b");
    }

    #[test]
    fn the_store_is_named_before_the_end_of_the_options() {
        let args = ["policy", "set", "--", "strict"].map(str::to_owned);
        let words = with_store(&args, Path::new("/s"));
        let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(
            words.join(" "),
            "strongroom policy set --store /s -- strict"
        );
    }

    #[test]
    fn a_path_starts_where_the_other_process_works_and_a_name_is_no_path() {
        let based = |policy: &str| {
            let mut policy = policy.to_owned();
            rebase_policy(&mut policy, Path::new("/home"));
            policy
        };
        assert_eq!(based("strict"), "strict");
        assert_eq!(based("p.toml"), "/home/p.toml");
        assert_eq!(based("/p.toml"), "/p.toml");
    }
}
