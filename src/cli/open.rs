//! Opens the store that the command line names.

use strongroom::Vault;

use super::args::{LookArgs, StoreArgs};
use super::failure::Stop;
use super::output::say;
use super::{keys, time};

/// Opens a store that exists, and warns if its clock is not believed.
pub fn vault(args: &StoreArgs, read_only: bool) -> Result<Vault, Stop> {
    let vault = without_warning(args, read_only)?;
    warn_of_clock(&vault);
    Ok(vault)
}

/// Opens a store that exists, for a command that speaks of the clock itself.
pub fn without_warning(args: &StoreArgs, read_only: bool) -> Result<Vault, Stop> {
    Ok(Vault::builder()
        .path(&args.store)
        .key_source(keys::source(&args.key)?)
        .read_only(read_only)
        .open()?)
}

/// Opens a store only to look: nothing is written, nothing repaired.
pub fn to_look(args: &LookArgs) -> Result<Vault, Stop> {
    vault(&args.store, true)
}

/// Opens a store to change it.
pub fn to_change(args: &LookArgs) -> Result<Vault, Stop> {
    vault(&args.store, false)
}

/// One line, if the clock is not believed. Says whether there was one.
pub fn warn_of_clock(vault: &Vault) -> bool {
    let Some(disbelief) = time::disbelief(vault.clock()) else {
        return false;
    };
    say(&format!(
        "warning: {disbelief}. Nothing expires until it is set right, or confirmed by `strongroom expire --confirm-clock`"
    ));
    true
}
