//! The `strongroom` command: what holds for the whole process, then the command line.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, setrlimit, umask};
use strongroom::cli;

fn main() -> ExitCode {
    // Whatever the caller's umask: nothing that is made here is for others.
    umask(Mode::RWXG | Mode::RWXO);
    write_no_core();
    cli::report_panics_without_data();
    panic::catch_unwind(AssertUnwindSafe(cli::run)).unwrap_or(ExitCode::FAILURE)
}

/// A core dump would hold keys and contents.
fn write_no_core() {
    let mut limit = getrlimit(Resource::Core);
    limit.current = Some(0);
    // Lowering a limit is always allowed; were it not, the command would still do its work.
    let _lowered = setrlimit(Resource::Core, limit);
}
