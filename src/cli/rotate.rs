//! `key rotate`: new record keys, a new master key, or every key new.

use serde_json::{Value, json};
use strongroom::key::KdfParams;
use strongroom::{NewKey, Vault};

use super::failure::{Exit, Failure, Stop};
use super::key_args::KeyRotateArgs;
use super::output::Out;
use super::progress::Progress;
use super::{init, keys, open, slots};

pub fn run(args: &KeyRotateArgs) -> Result<(), Stop> {
    let is_for_slots = args.master || args.full;
    if !is_for_slots && (args.drop_other_slots || args.new.is_named()) {
        return Err(Failure::new(
            Exit::Usage,
            "rotate the keys: a new key, and --drop-other-slots, go with --master or --full",
            "Add one of these; to change a passphrase or key only, use `strongroom key change`.",
        )
        .into());
    }
    if args.master {
        return rotate_master(args);
    }
    if args.full {
        return rotate_full(args);
    }
    let vault = open::to_change(&args.look)?;
    let mut progress = Progress::new("rotate", "steps");
    let rotated = vault.rotate_keys(args.tenant.as_deref(), |_, at, all| progress.show(at, all));
    progress.clear();
    let rotated = rotated?;
    vault.close()?;
    let mut text = String::new();
    let mut json = Vec::new();
    for one in rotated {
        text.push_str(&format!("{}: record key {}\n", one.tenant, one.epoch));
        json.push(json!({ "tenant": one.tenant, "epoch": one.epoch }));
    }
    Out::new(args.look.json).answer(&text, &Value::Array(json))
}

fn rotate_master(args: &KeyRotateArgs) -> Result<(), Stop> {
    let vault = open::to_change(&args.look)?;
    slots::refuse_other_slots(
        &vault,
        "End the process that holds the store, then try again.",
    )?;
    let credential = match args.new.is_named() {
        true => Some(slots::new_credential(&args.look, &args.new)?),
        false => None,
    };
    let new = credential.as_ref().map(|credential| NewKey {
        credential,
        label: "",
        params: KdfParams::DEFAULT,
    });
    let mut progress = Progress::new("rotate", "key files");
    let rotated = vault.rotate_master(new.as_ref(), args.drop_other_slots, |at, all| {
        progress.show(at, all);
    });
    progress.clear();
    let rotated = rotated
        .map_err(Stop::from)
        .map_err(|stop| init::naming_key(stop, args.new.generate_key.as_deref()))?;
    vault.close()?;
    answer(
        args,
        "The store has a new master key",
        &rotated.kept,
        &rotated.dropped,
    )
}

/// The store must not be in use, so this is the one command that opens it by itself.
fn rotate_full(args: &KeyRotateArgs) -> Result<(), Stop> {
    let builder = Vault::builder()
        .path(&args.look.store.store)
        .key_source(keys::source(&args.look.store.key)?);
    let credential = match args.new.is_named() {
        // Not before the store's own key is known to open it.
        true => {
            builder.prove(&[])?;
            Some(slots::new_credential(&args.look, &args.new)?)
        }
        false => None,
    };
    let new = credential.as_ref().map(|credential| NewKey {
        credential,
        label: "",
        params: KdfParams::DEFAULT,
    });
    let mut progress = Progress::new("rotate", "files");
    let rotated = builder.rotate_full(new.as_ref(), args.drop_other_slots, |at, all| {
        progress.show(at, all);
    });
    progress.clear();
    let rotated = rotated
        .map_err(Stop::from)
        .map_err(|stop| init::naming_key(stop, args.new.generate_key.as_deref()))?;
    answer(
        args,
        "Every key of the store is new",
        &rotated.kept,
        &rotated.dropped,
    )
}

fn answer(args: &KeyRotateArgs, what: &str, kept: &[u64], dropped: &[u64]) -> Result<(), Stop> {
    let (key_text, key_json) = slots::key_file(&args.new);
    let mut text = format!("{what}; key slots that open it: {}\n{key_text}", list(kept));
    if !dropped.is_empty() {
        text.push_str(&format!(
            "Gone: {}. Add their keys again with `strongroom key add`.\n",
            list(dropped)
        ));
    }
    text.push_str("Make a new backup: the keys in older ones do not fit any more.\n");
    Out::new(args.look.json).answer(
        &text,
        &json!({ "kept": kept, "dropped": dropped, "key_file": key_json }),
    )
}

fn list(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    ids.join(", ")
}
