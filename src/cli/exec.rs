//! `exec`: JSON lines in, one `tool_result` line out for each.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal};
use std::mem::discriminant;

use strongroom::wire::LineReader;
use strongroom::{ClockState, Code, Error, Tenant, Vault};

use super::args::ExecArgs;
use super::control::Control;
use super::failure::{Exit, Failure, Stop};
use super::held::{Gate, Held};
use super::open::Opened;
use super::output::{print, say};
use super::{desk, init, memory, open};

pub fn run(args: &ExecArgs) -> Result<(), Stop> {
    let opened = if args.create {
        init::open_or_create(&args.store)?
    } else {
        open::vault(&args.store, args.read_only)?
    };
    let mut tenant = opened.tenant(&args.tenant)?;
    if let Some(actor) = &args.actor.actor {
        tenant = tenant.as_actor(actor, args.actor.session.as_deref());
    }
    let mut told = Told {
        // Opening it has warned already.
        clock: opened.clock() != ClockState::Trusted,
        kinds: HashSet::new(),
    };
    let input = desk::input().map_err(|error| unreadable(&error))?;
    let vault = match (opened, desk::current()) {
        (Opened::Own(vault), _) => vault,
        (Opened::Shared(_), Some(desk)) => return serve(&tenant, input, &desk.gate, &mut told),
        (Opened::Shared(vault), None) => vault,
    };
    memory::warn_of_swap();
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
    let served = serve(&tenant, input, &gate, &mut told);
    let closed = held.close();
    served?;
    Ok(closed?)
}

fn serve(
    tenant: &Tenant,
    input: Box<dyn BufRead>,
    gate: &Gate,
    told: &mut Told,
) -> Result<(), Stop> {
    for line in LineReader::new(input, tenant.line_bytes_max()) {
        let line = line.map_err(|error| unreadable(&error))?;
        let answer = {
            let busy = gate.busy();
            if let Some(vault) = &*busy {
                told.warn_of_clock(vault);
            }
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

/// What stderr has heard of: each kind of failure is told once, and so is the clock.
struct Told {
    clock: bool,
    kinds: HashSet<(Code, Option<std::mem::Discriminant<strongroom::StoreError>>)>,
}

impl Told {
    /// A process that serves for long may see its clock go wrong.
    fn warn_of_clock(&mut self, vault: &Vault) {
        self.clock = self.clock || open::warn_of_clock(vault);
    }

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
