//! The command line: words to calls of the library, answers to stdout, all else to stderr.
//!
//! Each command has a small file of its own. Exit codes and the two lines of an error are in
//! `failure`, where keys come from in `keys`.

use std::panic;
use std::process::ExitCode;
use std::sync::Once;

use clap::{CommandFactory, Parser};

mod args;
pub mod attach;
mod audit;
mod backup;
mod backup_args;
mod compact;
mod control;
mod desk;
mod erase;
mod examples;
mod exec;
mod expire;
mod export;
mod failure;
mod held;
mod hold;
mod import;
mod init;
mod keep_args;
mod key_args;
mod keys;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod open;
mod output;
mod policy;
mod policy_args;
mod progress;
mod redact;
mod rescan;
mod restore;
mod rotate;
#[cfg(feature = "serve")]
mod serve;
mod slots;
mod stats;
mod tenants;
mod time;
mod token;
mod transfer;
mod upgrade;
mod verify;
mod words;

use args::{Cli, Command};
use failure::Stop;
use keep_args::HoldCommand;
use key_args::{KeyCommand, TenantCommand};
use policy_args::PolicyCommand;

pub use memory::keep_private;
pub use output::say;

/// A panic's own text may quote what it tripped over, so the place in the source stands for all
/// of it, from here on, in the whole process, and for the first panic only.
pub fn report_panics_without_data() {
    static ONCE: Once = Once::new();
    panic::set_hook(Box::new(|info| {
        ONCE.call_once(|| {
            let place = info.location().map_or_else(String::new, |at| {
                format!(" at {}:{}", source_name(at.file()), at.line())
            });
            say(&format!(
                "an internal check failed{place}; nothing was acknowledged that is not stored"
            ));
        });
    }));
}

/// The last four parts of a source file's path: the rest is of the machine that built this.
fn source_name(path: &str) -> &str {
    let cut = path.rmatch_indices('/').nth(3);
    cut.and_then(|(at, _)| path.get(at + 1..)).unwrap_or(path)
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version go to stdout with 0, everything else to stderr with 2.
        Err(error) => {
            let _shown = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let exit = match run_command(&cli.command) {
        Err(Stop::Elsewhere(holder)) => {
            let with_input = matches!(cli.command, Command::Exec(_));
            match control::relay(*holder, with_input) {
                Ok(exit) => exit,
                Err(stop) => end(Err(stop)),
            }
        }
        done => end(done),
    };
    ExitCode::from(exit)
}

/// Reports how a command ended. Returns its exit code.
fn end(done: Result<(), Stop>) -> u8 {
    match done {
        // Whoever reads the output has read enough: no error.
        Ok(()) | Err(Stop::PipeClosed) => 0,
        Err(Stop::Failed(failure)) => failure.report(),
        // Only the first opening of a store leads to another process, and `run` goes there.
        Err(Stop::Elsewhere(_)) => failure::Exit::Locked as u8,
    }
}

fn run_command(command: &Command) -> Result<(), Stop> {
    match command {
        Command::Init(args) => init::run(args),
        Command::Exec(args) => exec::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Audit { command } => audit::run(command),
        Command::Checkpoint(args) => audit::checkpoint(args),
        Command::Redact(args) => redact::run(args),
        Command::Rescan(args) => rescan::run(args),
        Command::Expire(args) => expire::run(args),
        Command::Hold { command } => match command {
            HoldCommand::Add(args) => hold::add(args),
            HoldCommand::Remove(args) => hold::remove(args),
            HoldCommand::List(args) => hold::list(args),
        },
        Command::Export(args) => export::run(args),
        Command::Import(args) => import::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Backup(args) => backup::run(args),
        Command::VerifyBackup(args) => backup::verify(args),
        Command::Restore(args) => restore::run(args),
        Command::Upgrade(args) => upgrade::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Tenant { command } => match command {
            TenantCommand::List(args) => stats::list_tenants(args),
            TenantCommand::Erase(args) => erase::run(args),
            TenantCommand::Certificate(args) => erase::certificate(args),
        },
        Command::VerifyErasure(args) => erase::verify(args),
        Command::Policy { command } => match command {
            PolicyCommand::Show(args) => policy::show(args),
            PolicyCommand::Check(args) => policy::check(args),
            PolicyCommand::Set(args) => policy::set(args),
        },
        Command::Key { command } => match command {
            KeyCommand::List(args) => slots::list(args),
            KeyCommand::Add(args) => slots::add(args),
            KeyCommand::Remove(args) => slots::remove(args),
            KeyCommand::Change(args) => slots::change(args),
            KeyCommand::Rotate(args) => rotate::run(args),
        },
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args),
        Command::Token { command } => token::run(command),
        Command::Completions { shell } => complete(*shell),
    }
}

fn complete(shell: clap_complete::Shell) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "strongroom", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn check(command: &mut clap::Command, name: &str) {
            let help = command.render_long_help().to_string();
            let (_, example) = help.split_once("\nExample:\n  ").expect(name);
            assert!(example.contains(name), "{name}");
            for below in command.get_subcommands_mut() {
                if below.get_name() != "help" {
                    let name = format!("{name} {}", below.get_name());
                    check(below, &name);
                }
            }
        }
        check(&mut Cli::command(), "strongroom");
    }
}
