//! The `strongroom` command: what holds for the whole process, then the command line.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use rustix::fs::Mode;
use rustix::process::umask;
use strongroom::cli;

fn main() -> ExitCode {
    // Whatever the caller's umask: nothing that is made here is for others.
    umask(Mode::RWXG | Mode::RWXO);
    cli::keep_private();
    cli::report_panics_without_data();
    panic::catch_unwind(AssertUnwindSafe(cli::run)).unwrap_or(ExitCode::FAILURE)
}
