//! Which tenants a command is for, and what counts as damage of one of them.

use strongroom::{Code, Error, Tenant, Vault};

use super::failure::{Exit, Failure, Stop};

/// The tenant of a command line that names none.
pub const DEFAULT: &str = "default";

/// Why there is no handle of a tenant.
pub enum Missing {
    /// Its key file or its head is missing or damaged.
    Damaged(Error),
    /// It has no memory in this store, or the name is none.
    NotThere(Stop),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Damaged(error) => error.into(),
            Missing::NotThere(stop) => stop,
        }
    }
}

/// The tenant of this name, which must have a memory here.
pub fn existing(vault: &Vault, name: &str) -> Result<Tenant, Missing> {
    let tenant = vault.tenant(name).map_err(|error| {
        if is_damage(&error) {
            Missing::Damaged(error)
        } else {
            Missing::NotThere(error.into())
        }
    })?;
    let stats = vault
        .stats()
        .map_err(|error| Missing::NotThere(error.into()))?;
    if stats.tenants.iter().any(|known| known.name == name) {
        return Ok(tenant);
    }
    let failure = Failure::new(
        Exit::NotFound,
        format!("find the tenant {name}: it has no memory in this store"),
        "Run `strongroom tenant list` for the names, or use --all-tenants.",
    );
    Err(Missing::NotThere(failure.into()))
}

/// Whether the error says that a tenant is damaged; others may be intact.
pub fn is_damage(error: &Error) -> bool {
    error.code() == Code::Integrity || matches!(error, Error::Store(error) if error.is_lost_key())
}

/// How a run over the whole store failed, if some tenants are damaged or were not reached.
pub fn unfinished(verb: &str, damaged: usize, not_reached: usize) -> Option<Failure> {
    let what = match damaged {
        0 => return None,
        1 => "1 tenant is damaged".to_owned(),
        many => format!("{many} tenants are damaged"),
    };
    let failure = if not_reached == 0 {
        Failure::new(
            Exit::Integrity,
            format!("{verb} the whole store: {what}"),
            "Keep the directory as it is, and run `strongroom verify --read-only`. The other tenants are done.",
        )
    } else {
        Failure::new(
            Exit::Integrity,
            format!(
                "{verb} the whole store: {what}, and {not_reached} more not reached: process {}, which holds the store, takes no writes since it saw the damage",
                std::process::id()
            ),
            "End that process and run this again: the others will be done. Keep the directory as it is, and run `strongroom verify --read-only`.",
        )
    };
    Some(failure)
}
