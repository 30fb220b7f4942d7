//! The `strongroom` command: what holds for the whole process, then the command line.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Once;

use rustix::fs::Mode;

mod cli;

fn main() -> ExitCode {
    // Whatever the caller's umask: nothing that is made here is for others.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    report_panics_without_data();
    panic::catch_unwind(AssertUnwindSafe(cli::run)).unwrap_or(ExitCode::FAILURE)
}

/// A panic's own text may quote what it tripped over, so one fixed line stands for all of them.
fn report_panics_without_data() {
    static ONCE: Once = Once::new();
    panic::set_hook(Box::new(|_| {
        ONCE.call_once(|| {
            cli::say("an internal check failed; nothing was acknowledged that is not stored");
        });
    }));
}
