//! What the derivations give for fixed inputs, as the independent reader in tests/reader computed it.

/// The text of this name in `tests/golden/derivations.json`: hexadecimal, or a text as it is.
pub(crate) fn vector(name: &str) -> String {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../tests/golden/derivations.json")).unwrap();
    all[name].as_str().expect(name).to_owned()
}
