//! Opens the store that the command line names, or finds it open.

use std::ops::Deref;

use strongroom::{Code, Error, Vault, VaultBuilder};

use super::args::{LookArgs, StoreArgs};
use super::failure::Stop;
use super::output::say;
use super::{control, desk, keys, time};

/// The store as a command uses it.
pub enum Opened {
    /// Opened by this command.
    Own(Vault),
    /// That of the process that the command runs in on behalf of another.
    Shared(Vault),
}

impl Deref for Opened {
    type Target = Vault;

    fn deref(&self) -> &Vault {
        match self {
            Self::Own(vault) | Self::Shared(vault) => vault,
        }
    }
}

impl Opened {
    /// Whether it is another process's, which can write in any case.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Closes the store, if it is this command's to close.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::Own(vault) => vault.close(),
            Self::Shared(_) => Ok(()),
        }
    }
}

/// Opens a store that exists, and warns if its clock is not believed.
pub fn vault(args: &StoreArgs, read_only: bool) -> Result<Opened, Stop> {
    let vault = without_warning(args, read_only)?;
    warn_of_clock(&vault);
    Ok(vault)
}

/// Opens a store that exists, for a command that speaks of the clock itself. Where another
/// process holds it and takes commands, the command ends here and is done there.
pub fn without_warning(args: &StoreArgs, read_only: bool) -> Result<Opened, Stop> {
    if let Some(desk) = desk::current() {
        return Ok(Opened::Shared(desk.vault.clone()));
    }
    own_or_elsewhere(args, |builder| builder.read_only(read_only))
}

/// Opens a store even if it has lost what it acknowledged, and says what that means.
pub fn accepting_loss(args: &StoreArgs) -> Result<Opened, Stop> {
    let vault = own_or_elsewhere(args, |builder| builder.accept_loss(true))?;
    say(&format!(
        "note: era {} of the store: whatever it lost so far is accepted",
        vault.era()
    ));
    warn_of_clock(&vault);
    Ok(vault)
}

fn own_or_elsewhere(
    args: &StoreArgs,
    how: impl FnOnce(VaultBuilder) -> VaultBuilder,
) -> Result<Opened, Stop> {
    let builder = Vault::builder()
        .path(&args.store)
        .key_source(keys::source(&args.key)?);
    let builder = how(builder);
    match builder.open() {
        Ok(vault) => Ok(Opened::Own(vault)),
        Err(error) if error.code() == Code::Locked => {
            Err(control::elsewhere(&args.store, builder, error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a store only to look: nothing is written, nothing repaired.
pub fn to_look(args: &LookArgs) -> Result<Opened, Stop> {
    vault(&args.store, true)
}

/// Opens a store to change it.
pub fn to_change(args: &LookArgs) -> Result<Opened, Stop> {
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
