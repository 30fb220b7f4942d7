//! Holds the open store of `exec` so that a signal can close it in order.
//!
//! Nothing that was answered depends on this: a kill at any moment is safe. But a store that
//! was closed in order opens faster, since nothing has to be copied before the engine runs.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use strongroom::{Error, Vault};

use super::control::Control;

/// SIGHUP is left alone, so that `nohup` works.
const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// Commands pass while the store is open; closing waits for those that are in.
pub struct Gate(RwLock<Option<Vault>>);

impl Gate {
    pub fn new(vault: Vault) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Some(vault))))
    }

    /// To be held during one tool call: a signal waits for it. Once a signal has come this
    /// never returns, and the process ends. Not to be taken twice by one thread.
    pub fn busy(&self) -> RwLockReadGuard<'_, Option<Vault>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts it and closes the store, once those that are in are out.
    pub fn close(&self) -> Result<(), Error> {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.take().map_or(Ok(()), Vault::close)
    }

    /// The gate is kept shut to the end, so that no call starts on a closed store.
    fn end(&self, control: Option<&Control>, signal: i32) {
        if let Some(control) = control {
            control.stop();
        }
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let _closed = held.take().map(Vault::close);
        // Dies by the signal itself, which is what the parent process expects to see.
        let _died = low_level::emulate_default_handler(signal);
        std::process::exit(128 + signal);
    }
}

/// An open store that SIGTERM and SIGINT close before they end the process.
pub struct Held {
    gate: Arc<Gate>,
    control: Option<Arc<Control>>,
}

impl Held {
    pub fn new(gate: Arc<Gate>, control: Option<Control>) -> io::Result<Self> {
        let control = control.map(Arc::new);
        let again = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            // In this order: the second signal, whichever it is, ends the process at once.
            flag::register_conditional_default(signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        let mut signals = Signals::new(SIGNALS)?;
        let shared = (Arc::clone(&gate), control.clone());
        std::thread::Builder::new()
            .name("strongroom-signals".to_owned())
            .spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    shared.0.end(shared.1.as_deref(), signal);
                }
            })?;
        Ok(Self { gate, control })
    }

    /// Closes the store at the end of the input, once the commands of other processes are
    /// done.
    pub fn close(self) -> Result<(), Error> {
        if let Some(control) = &self.control {
            control.finish();
        }
        self.gate.close()
    }
}
