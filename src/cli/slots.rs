//! `key list`, `add` and `remove`: the slots that open the store.

use serde_json::{Value, json};
use strongroom::key::{KdfParams, SlotKind};

use super::args::LookArgs;
use super::failure::Stop;
use super::key_args::{KeyAddArgs, KeyRemoveArgs};
use super::output::{Out, table};
use super::time::utc;
use super::{init, keys, open};

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
    let store = &args.look.store.store;
    let vault = open::to_change(&args.look)?;
    // Only now, so that a store that does not open leaves no new key file behind.
    let source = match &args.new.generate_key {
        Some(path) => init::generate(path, store)?,
        None => keys::source_to_add(&args.new)?,
    };
    let added = source
        .resolve(Some(store))
        .map_err(strongroom::Error::from)
        .and_then(|credential| vault.add_key(&credential, &args.label, KdfParams::DEFAULT))
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

fn kind(kind: SlotKind) -> &'static str {
    match kind {
        SlotKind::Passphrase => "passphrase",
        SlotKind::KeyFile => "key file",
        SlotKind::Command => "key command",
        SlotKind::Supplied => "supplied",
    }
}
