//! `key list`, `add` and `remove`: the slots that open the store.

use serde_json::{Value, json};
use strongroom::key::{Credential, KdfParams, SlotKind};
use strongroom::{NewKey, Vault};

use super::args::LookArgs;
use super::failure::{Exit, Failure, Stop};
use super::key_args::{KeyAddArgs, KeyChangeArgs, KeyRemoveArgs, NewKeyArgs};
use super::output::{Out, table};
use super::time::utc;
use super::{desk, init, keys, open};

pub fn list(args: &LookArgs) -> Result<(), Stop> {
    let vault = open::to_look(args)?;
    let slots = vault.key_slots();
    vault.close()?;
    let mut rows = vec![
        ["ID", "KIND", "CREATED", "LABEL"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut json = Vec::new();
    for slot in slots {
        let (kind, created) = (kind(slot.kind), utc(slot.created_ms));
        json.push(json!({
            "id": slot.id,
            "kind": kind,
            "created": created,
            "label": slot.label,
        }));
        rows.push(vec![
            slot.id.to_string(),
            kind.to_owned(),
            created,
            slot.label,
        ]);
    }
    Out::new(args.json).answer(&table(&rows, &[0]), &Value::Array(json))
}

pub fn add(args: &KeyAddArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    // Only now, so that a store that does not open leaves no new key file behind.
    let credential = new_credential(&args.look, &args.new)?;
    let added = vault
        .add_key(&credential, &args.label, KdfParams::DEFAULT)
        .map_err(Stop::from)
        .map_err(|stop| init::naming_key(stop, args.new.generate_key.as_deref()))?;
    vault.close()?;
    let mut text = format!("Added key slot {added}\n");
    let mut json = json!({ "id": added });
    if let Some(path) = &args.new.generate_key {
        let path = init::shown(path);
        text.push_str(&format!("Wrote its key to {path}\n"));
        json = json!({ "id": added, "key_file": path });
    }
    Out::new(args.look.json).answer(&text, &json)
}

pub fn remove(args: &KeyRemoveArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    vault.remove_key(args.id)?;
    vault.close()?;
    let id = args.id;
    Out::new(args.look.json).answer(
        &format!(
            "Removed key slot {id}\n\
             Its key no longer opens this store, but it still opens any older copy of it, and\n\
             whoever copied the store's own keys while it was valid keeps them.\n"
        ),
        &json!({ "removed": id }),
    )
}

pub fn change(args: &KeyChangeArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    if args.slot.is_none() {
        refuse_other_slots(
            &vault,
            "Name the slot with --slot, from `strongroom key list`.",
        )?;
    }
    let credential = new_credential(&args.look, &args.new)?;
    let new = NewKey {
        credential: &credential,
        label: &args.label,
        params: KdfParams::DEFAULT,
    };
    let added = vault
        .change_key(args.slot, &new)
        .map_err(Stop::from)
        .map_err(|stop| init::naming_key(stop, args.new.generate_key.as_deref()))?;
    vault.close()?;
    let (key_text, key_json) = key_file(&args.new);
    Out::new(args.look.json).answer(
        &format!(
            "Changed the key; its slot is {added} now\n{key_text}\
             The old one no longer opens this store, but it still opens any older copy of it.\n"
        ),
        &json!({ "id": added, "key_file": key_json }),
    )
}

/// The new credential that the command line names, or asks for.
pub fn new_credential(look: &LookArgs, new: &NewKeyArgs) -> Result<Credential, Stop> {
    let store = &look.store.store;
    let source = match &new.generate_key {
        Some(path) => init::generate(path, store)?,
        None => keys::source_to_add(new)?,
    };
    source
        .resolve(Some(store))
        .map_err(|error| Stop::from(strongroom::Error::from(error)))
        .map_err(|stop| init::naming_key(stop, new.generate_key.as_deref()))
}

/// Where a new key was written, as text and for JSON.
pub fn key_file(new: &NewKeyArgs) -> (String, Value) {
    match &new.generate_key {
        Some(path) => {
            let path = init::shown(path);
            (format!("Wrote its key to {path}\n"), path.into())
        }
        None => (String::new(), Value::Null),
    }
}

/// On behalf of another process, the slot that opened the store may not be the one whose key
/// that process has.
pub fn refuse_other_slots(vault: &Vault, next: &str) -> Result<(), Stop> {
    if desk::current().is_none() || vault.key_slots().len() == 1 {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Locked,
        "tell which key slot is meant: another process holds the store, and there are several",
        next,
    )
    .into())
}

fn kind(kind: SlotKind) -> &'static str {
    match kind {
        SlotKind::Passphrase => "passphrase",
        SlotKind::KeyFile => "key file",
        SlotKind::Command => "key command",
        SlotKind::Supplied => "supplied",
    }
}
