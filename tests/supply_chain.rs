//! What the crate is built from: locked, from one registry, under licences that deny.toml allows,
//! without what it bans, as many as the page says; and the bill of materials says it all.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[path = "../contrib/sbom.rs"]
#[allow(dead_code, reason = "it is a program of its own")]
mod sbom;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn deny() -> toml::Value {
    toml::from_str(&read("deny.toml")).unwrap()
}

fn names(list: &toml::Value, key: &str) -> BTreeSet<String> {
    let name = |item: &toml::Value| {
        let name = item.get(key).unwrap_or(item);
        name.as_str().unwrap().to_owned()
    };
    list.as_array().unwrap().iter().map(name).collect()
}

/// Whether an SPDX expression holds where only these licences are granted. AND binds closer.
fn allows(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let inner = |from: usize| {
        let rest = &expression[from + 1..];
        rest.find(')').map(|to| (from, from + 1 + to))
    };
    if let Some((from, to)) = expression.rfind('(').and_then(inner) {
        let word = if allows(&expression[from + 1..to], allowed) {
            "yes"
        } else {
            "no"
        };
        let flat = format!("{}{word}{}", &expression[..from], &expression[to + 1..]);
        return allows(&flat, allowed);
    }
    let granted = |licence: &str| licence == "yes" || allowed.contains(licence);
    expression
        .split(" OR ")
        .any(|all| all.split(" AND ").all(|one| granted(one.trim())))
}

#[test]
fn every_crate_is_from_the_registry_with_a_checksum_and_a_licence_that_is_allowed() {
    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
    for file in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let packages = sbom::lock(&read(file));
        assert!(packages.len() > 90, "{file}");
        for (name, _, source, checksum) in packages {
            match source {
                None => assert!(name.starts_with("strongroom"), "{name} is of no registry"),
                Some(source) => {
                    assert_eq!(source, REGISTRY, "{name}");
                    assert_eq!(checksum.map(|sum| sum.len()), Some(64), "{name}");
                }
            }
        }
    }
    let allowed = names(&deny()["licenses"]["allow"], "");
    let all = sbom::tree(&["--workspace", "--all-features", "-e", "normal,build,dev"]);
    assert!(all.len() > 150, "{} crates", all.len());
    for one in all.keys() {
        let (name, licence) = (&one.name, &one.licence);
        assert!(allows(licence, &allowed), "{name} is under {licence}");
    }
}

#[test]
fn expressions_of_licences_are_read_as_they_bind() {
    let allowed = ["MIT", "Zlib"].map(str::to_owned).into();
    for (expression, is_allowed) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR GPL-3.0-only) AND Zlib", true),
        ("(MIT AND GPL-3.0-only) OR (GPL-3.0-only AND Zlib)", false),
        ("MIT OR GPL-3.0-only AND Zlib", true),
        ("", false),
    ] {
        assert_eq!(allows(expression, &allowed), is_allowed, "{expression}");
    }
}

#[test]
fn no_crate_that_is_banned_and_no_build_script_that_uses_the_network() {
    let locked = sbom::lock(&read("Cargo.lock"));
    let locked: BTreeSet<String> = locked.into_iter().map(|package| package.0).collect();
    let banned = names(&deny()["bans"]["deny"], "crate");
    assert!(banned.len() > 10);
    let found: Vec<_> = locked.intersection(&banned).collect();
    assert!(found.is_empty(), "{found:?}");

    let done = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&done.stdout).unwrap();
    let mut scripts = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let targets = package["targets"].as_array().unwrap();
        let Some(script) = targets
            .iter()
            .find(|target| target["kind"][0] == "custom-build")
        else {
            continue;
        };
        scripts += 1;
        let source = PathBuf::from(script["src_path"].as_str().unwrap());
        // The modules of a script lie below a directory of its name.
        let mut sources = vec![source.clone()];
        if let Ok(modules) = fs::read_dir(source.with_extension("")) {
            sources.extend(modules.map(|entry| entry.unwrap().path()));
        }
        for source in sources.iter().filter(|source| source.is_file()) {
            let text = fs::read_to_string(source).unwrap();
            for word in [
                "std::net",
                "TcpStream",
                "UdpSocket",
                "UnixStream",
                "\"curl\"",
                "\"wget\"",
                "\"clone\"",
                "\"fetch\"",
            ] {
                let name = &package["name"];
                assert!(!text.contains(word), "{name}: its build script has {word}");
            }
        }
    }
    assert!(scripts > 10, "{scripts} scripts were read");
}

#[test]
fn an_advisory_is_left_out_only_with_a_reason_and_while_its_crate_is_there() {
    let lock = sbom::lock(&read("Cargo.lock"));
    let deny = deny();
    let ignored = deny["advisories"]["ignore"].as_array().unwrap();
    assert_eq!(ignored.len(), 2);
    for one in ignored {
        let reason = one["reason"].as_str().unwrap();
        let name = reason.split(' ').next().unwrap();
        let is_there = lock.iter().any(|package| package.0 == name);
        assert!(is_there && reason.len() > 40, "{one}");
    }
}

#[test]
fn the_numbers_of_crates_are_those_of_the_page() {
    let page = read("docs/ARCHITECTURE.md").replace('\n', " ");
    let number_before = |text: &str| {
        let before = &page[..page.find(text).expect(text)];
        let digits = before.trim_end().rsplit(' ').next().unwrap();
        digits.parse::<usize>().unwrap()
    };
    for (text, words) in [
        ("crates stand behind the command", &[][..]),
        (
            "without; the library",
            &["--no-default-features", "--features", "cli"],
        ),
        ("(`cargo tree -e normal`", &["--no-default-features"]),
    ] {
        let tree = sbom::tree(&[&["-e", "normal"], words].concat());
        assert_eq!(number_before(text), tree.len(), "{text}");
    }
}

/// The fields that the schema of CycloneDX 1.5 requires, and that every reference leads somewhere.
#[test]
fn the_bill_of_materials_has_what_its_schema_requires() {
    let bom = sbom::bom(1_767_225_600);
    assert_eq!(bom["bomFormat"], "CycloneDX");
    assert_eq!(bom["specVersion"], "1.5");
    assert_eq!(bom["version"], 1);
    let serial = bom["serialNumber"].as_str().unwrap();
    let uuid = serial.strip_prefix("urn:uuid:").unwrap();
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(bom["metadata"]["timestamp"], "2026-01-01T00:00:00Z");
    let own = &bom["metadata"]["component"];
    assert_eq!(
        (&own["name"], &own["type"]),
        (&"strongroom".into(), &"application".into())
    );
    let components = bom["components"].as_array().unwrap();
    let mut refs = BTreeSet::from([own["bom-ref"].as_str().unwrap()]);
    for component in components {
        assert_eq!(component["type"], "library");
        for field in ["name", "version", "purl", "bom-ref"] {
            assert!(
                !component[field].as_str().unwrap().is_empty(),
                "{component}"
            );
        }
        assert_eq!(
            component["hashes"][0]["content"].as_str().unwrap().len(),
            64
        );
        assert!(
            !component["licenses"][0]["expression"]
                .as_str()
                .unwrap()
                .is_empty()
        );
        let is_new = refs.insert(component["bom-ref"].as_str().unwrap());
        assert!(is_new, "{component}");
    }
    let dependencies = bom["dependencies"].as_array().unwrap();
    assert_eq!(dependencies.len(), components.len() + 1);
    for one in dependencies {
        assert!(refs.contains(one["ref"].as_str().unwrap()));
        for needed in one["dependsOn"].as_array().unwrap() {
            assert!(refs.contains(needed.as_str().unwrap()), "{needed}");
        }
    }
}
