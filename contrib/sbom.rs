//! Prints what the command is built from, as a bill of materials in CycloneDX 1.5 (JSON).
//!
//! `cargo run --example sbom > strongroom.cdx.json`. With `SOURCE_DATE_EPOCH` set the output is
//! the same for the same `Cargo.lock`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a tool of the maintainers, which may end with a panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn main() {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").map_or(0, |text| text.parse().unwrap());
    println!("{:#}", bom(seconds));
}

/// A crate as `cargo tree` names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its version, without a `v`.
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
}

impl Crate {
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// All crates that `cargo tree` lists with these words, and what each needs directly.
pub fn tree(words: &[&str]) -> BTreeMap<Crate, BTreeSet<Crate>> {
    let done = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--no-dedupe", "--prefix", "depth"])
        .args(["--format", "|{p}|{l}"])
        .args(words)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut found = BTreeMap::<Crate, BTreeSet<Crate>>::new();
    let mut above = Vec::<Crate>::new();
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let parts: Vec<&str> = line.split('|').collect();
        let Ok(depth) = parts[0].parse::<usize>() else {
            continue;
        };
        let mut package = parts[1].split(' ');
        let one = Crate {
            name: package.next().unwrap().to_owned(),
            version: package.next().unwrap().trim_start_matches('v').to_owned(),
            licence: parts[2].replace('/', " OR ").replace("  ", " "),
        };
        above.truncate(depth);
        if let Some(parent) = above.last() {
            found.get_mut(parent).unwrap().insert(one.clone());
        }
        found.entry(one.clone()).or_default();
        above.push(one);
    }
    found
}

/// The packages of a lock file: name, version, source, checksum.
pub fn lock(text: &str) -> Vec<(String, String, Option<String>, Option<String>)> {
    let lock: toml::Value = toml::from_str(text).unwrap();
    let packages = lock["package"].as_array().unwrap().iter();
    let text = |package: &toml::Value, key| Some(package.get(key)?.as_str()?.to_owned());
    packages
        .map(|package| {
            (
                text(package, "name").unwrap(),
                text(package, "version").unwrap(),
                text(package, "source"),
                text(package, "checksum"),
            )
        })
        .collect()
}

/// The bill of materials of the command, with everything that is compiled into it or runs to
/// build it.
pub fn bom(made_seconds: i64) -> Value {
    const LOCK: &str = include_str!("../Cargo.lock");
    let tree = tree(&["-e", "normal,build"]);
    let checksums: BTreeMap<_, _> = lock(LOCK)
        .into_iter()
        .map(|(name, version, _, checksum)| ((name, version), checksum))
        .collect();
    let own = env!("CARGO_PKG_NAME");
    let component = |one: &Crate| {
        let mut component = json!({
            "type": if one.name == own { "application" } else { "library" },
            "bom-ref": one.purl(),
            "name": one.name,
            "version": one.version,
            "purl": one.purl(),
            "licenses": [{ "expression": one.licence }],
        });
        let key = (one.name.clone(), one.version.clone());
        if let Some(checksum) = checksums.get(&key).unwrap() {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let root = tree.keys().find(|one| one.name == own).unwrap();
    let others = tree.keys().filter(|one| *one != root);
    let components: Vec<Value> = others.map(component).collect();
    let dependencies: Vec<Value> = tree
        .iter()
        .map(|(one, needs)| {
            let needs: Vec<String> = needs.iter().map(Crate::purl).collect();
            json!({ "ref": one.purl(), "dependsOn": needs })
        })
        .collect();
    let made = jiff::Timestamp::from_second(made_seconds).unwrap();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(LOCK),
        "version": 1,
        "metadata": { "timestamp": made.to_string(), "component": component(root) },
        "components": components,
        "dependencies": dependencies,
    })
}

/// The same for the same lock file: a version 8 UUID (RFC 9562) of its hash.
fn serial(lock: &str) -> String {
    let mut id: [u8; 16] = Sha256::digest(lock.as_bytes())[..16].try_into().unwrap();
    id[6] = 0x80 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("urn:uuid:{}", parts.join("-"))
}
