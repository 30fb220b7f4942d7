//! Holds the open store of `exec` so that a signal can close it in order.
//!
//! Nothing that was answered depends on this: a kill at any moment is safe. But a store that
//! was closed in order opens faster, since nothing has to be copied before the engine runs.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use strongroom::{Error, Vault};

/// SIGHUP is left alone, so that `nohup` works.
const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// An open store that SIGTERM and SIGINT close before they end the process.
pub struct Held {
    vault: Arc<Mutex<Option<Vault>>>,
}

impl Held {
    pub fn new(vault: Vault) -> io::Result<Self> {
        let vault = Arc::new(Mutex::new(Some(vault)));
        let again = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            // In this order: the second signal, whichever it is, ends the process at once.
            flag::register_conditional_default(signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        let mut signals = Signals::new(SIGNALS)?;
        let shared = Arc::clone(&vault);
        std::thread::Builder::new()
            .name("strongroom-signals".to_owned())
            .spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    end(&shared, signal);
                }
            })?;
        Ok(Self { vault })
    }

    /// To be held during one command: a signal waits for it. Once a signal has come this
    /// never returns, and the process ends.
    pub fn busy(&self) -> MutexGuard<'_, Option<Vault>> {
        self.vault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store at the end of the input.
    pub fn close(self) -> Result<(), Error> {
        match self.busy().take() {
            Some(vault) => vault.close(),
            None => Ok(()),
        }
    }
}

/// The lock is kept to the end, so that no command starts on a closed store.
fn end(vault: &Mutex<Option<Vault>>, signal: i32) {
    let mut held = vault.lock().unwrap_or_else(PoisonError::into_inner);
    let _closed = held.take().map(Vault::close);
    // Dies by the signal itself, which is what the parent process expects to see.
    let _died = low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}
