//! Opens the store that the command line names.

use strongroom::Vault;

use super::args::{LookArgs, StoreArgs};
use super::failure::Stop;
use super::keys;

/// Opens a store that exists.
pub fn vault(args: &StoreArgs, read_only: bool) -> Result<Vault, Stop> {
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
