//! `exec`: JSON lines in, one `tool_result` line out for each.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::mem::discriminant;

use strongroom::wire::LineReader;
use strongroom::{ClockState, Code, Error, Tenant, Vault};

use super::args::ExecArgs;
use super::failure::{Exit, Failure, Stop};
use super::held::Held;
use super::output::{print, say};
use super::{init, open};

pub fn run(args: &ExecArgs) -> Result<(), Stop> {
    let vault = if args.create {
        init::open_or_create(&args.store)?
    } else {
        open::vault(&args.store, args.read_only)?
    };
    let mut tenant = vault.tenant(&args.tenant)?;
    if let Some(actor) = &args.actor.actor {
        tenant = tenant.as_actor(actor, args.actor.session.as_deref());
    }
    let mut told = Told {
        // Opening it has warned already.
        clock: vault.clock() != ClockState::Trusted,
        kinds: HashSet::new(),
    };
    let held = Held::new(vault).map_err(|error| {
        Failure::new(
            Exit::Other,
            format!("watch for signals: {}", error.kind()),
            "Check the limits of this process.",
        )
    })?;
    if io::stdin().is_terminal() {
        say("reading tool calls, one JSON object a line; Ctrl-D ends");
    }
    let served = serve(&tenant, &held, &mut told);
    let closed = held.close();
    served?;
    Ok(closed?)
}

fn serve(tenant: &Tenant, held: &Held, told: &mut Told) -> Result<(), Stop> {
    for line in LineReader::new(io::stdin().lock(), tenant.line_bytes_max()) {
        let line = line.map_err(|error| {
            Failure::new(
                Exit::Other,
                format!("read the input: {}", error.kind()),
                "Check where the input comes from. Every line before was answered.",
            )
        })?;
        let answer = {
            let busy = held.busy();
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
