//! `exec`: JSON lines in, one `tool_result` line out for each.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal};
use std::mem::discriminant;

use strongroom::wire::LineReader;
use strongroom::{Code, Error, Tenant};

use super::args::ExecArgs;
use super::control::Control;
use super::failure::{Exit, Failure, Stop};
use super::held::{Gate, Held};
use super::open::Opened;
use super::output::{print, say};
use super::{desk, init, open};

pub fn run(args: &ExecArgs) -> Result<(), Stop> {
    let opened = if args.create {
        init::open_or_create(&args.store)?
    } else {
        open::vault(&args.store, args.read_only)?
    };
    let tenant = opened.tenant(&args.tenant)?;
    let input = desk::input().map_err(|error| unreadable(&error))?;
    let vault = match (opened, desk::current()) {
        (Opened::Own(vault), _) => vault,
        (Opened::Shared(_), Some(desk)) => return serve(&tenant, input, &desk.gate),
        (Opened::Shared(vault), None) => vault,
    };
    let gate = Gate::new(vault.clone());
    let control = if args.no_control {
        None
    } else {
        Control::serve(&args.store.store, &vault, &gate)
            .inspect_err(|error| {
                say(&format!(
                    "warning: the control socket cannot be made ({}), so other processes are told that the store is locked",
                    error.kind()
                ));
            })
            .ok()
    };
    let held = Held::new(gate.clone(), control).map_err(|error| {
        Failure::new(
            Exit::Other,
            format!("watch for signals: {}", error.kind()),
            "Check the limits of this process.",
        )
    })?;
    if io::stdin().is_terminal() {
        say("reading tool calls, one JSON object a line; Ctrl-D ends");
    }
    let served = serve(&tenant, input, &gate);
    let closed = held.close();
    served?;
    Ok(closed?)
}

fn serve(tenant: &Tenant, input: Box<dyn BufRead>, gate: &Gate) -> Result<(), Stop> {
    let mut told = Told::default();
    for line in LineReader::new(input, tenant.line_bytes_max()) {
        let line = line.map_err(|error| unreadable(&error))?;
        let answer = {
            let _busy = gate.busy();
            tenant.answer(line.request())
        };
        if let Some(failure) = &answer.failure {
            told.tell(failure);
        }
        let mut result = answer.to_json();
        result.push('\n');
        print(&result)?;
    }
    Ok(())
}

fn unreadable(error: &io::Error) -> Stop {
    Failure::new(
        Exit::Other,
        format!("read the input: {}", error.kind()),
        "Check where the input comes from. Every line before was answered.",
    )
    .into()
}

/// Failures of the store that stderr has heard of: each kind is told once.
#[derive(Default)]
struct Told {
    kinds: HashSet<(Code, Option<std::mem::Discriminant<strongroom::StoreError>>)>,
}

impl Told {
    fn tell(&mut self, error: &Error) {
        let kind = match error {
            Error::Store(error) => Some(discriminant(error)),
            _ => None,
        };
        if self.kinds.insert((error.code(), kind)) {
            say(&Failure::from(error).line());
        }
    }
}
