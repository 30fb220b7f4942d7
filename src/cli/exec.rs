//! `exec`: JSON lines in, one `tool_result` line out for each.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::mem::discriminant;

use strongroom::wire::LineReader;
use strongroom::{Code, Error, Tenant};

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
    let served = serve(&tenant, &held);
    let closed = held.close();
    served?;
    Ok(closed?)
}

fn serve(tenant: &Tenant, held: &Held) -> Result<(), Stop> {
    let mut told = Told::default();
    for line in LineReader::new(io::stdin().lock(), tenant.line_bytes_max()) {
        let line = line.map_err(|error| {
            Failure::new(
                Exit::Other,
                format!("read the input: {}", error.kind()),
                "Check where the input comes from. Every line before was answered.",
            )
        })?;
        let answer = {
            let _busy = held.busy();
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
