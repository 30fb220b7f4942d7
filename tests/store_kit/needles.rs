//! Searches files and outputs for secrets, in every form in which they could stand there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use aho_corasick::{AhoCorasick, MatchKind};
use base64ct::{Base64, Base64UrlUnpadded, Encoding};

use super::files_below;

/// A secret, and all the ways in which it could stand in a file.
pub struct Needles {
    search: AhoCorasick,
    of: Vec<usize>,
}

impl Needles {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut patterns = Vec::new();
        let mut of = Vec::new();
        for (number, secret) in secrets.into_iter().enumerate() {
            for form in forms(secret) {
                patterns.push(form);
                of.push(number);
            }
        }
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(patterns)
            .unwrap();
        Self { search, of }
    }

    /// The numbers of the secrets found below a directory.
    pub fn found(&self, directory: &Path) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for file in files_below(directory) {
            // File names are searched as well as contents.
            let mut bytes = file.to_str().unwrap().as_bytes().to_vec();
            bytes.push(0);
            bytes.extend(fs::read(directory.join(file)).unwrap());
            found.extend(self.found_among(&bytes));
        }
        found
    }

    pub fn found_in(&self, text: &str) -> bool {
        self.search.is_match(text)
    }

    /// The numbers of the secrets found in bytes.
    pub fn found_among(&self, bytes: &[u8]) -> BTreeSet<usize> {
        self.search
            .find_overlapping_iter(bytes)
            .map(|hit| self.of[hit.pattern().as_usize()])
            .collect()
    }
}

/// As it is, as UTF-16, percent-encoded, in hexadecimal, and in base64 at each of the three alignments.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec()];
    forms.push(secret.iter().flat_map(|byte| [*byte, 0]).collect());
    forms.push(secret.iter().flat_map(|byte| [0, *byte]).collect());
    forms.push(
        secret
            .iter()
            .flat_map(|byte| format!("%{byte:02X}").into_bytes())
            .collect(),
    );
    forms.push(
        secret
            .iter()
            .flat_map(|byte| format!("%{byte:02x}").into_bytes())
            .collect(),
    );
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_uppercase().into_bytes());
    forms.push(hex.into_bytes());
    for shift in 0..3 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(secret);
        shifted.truncate(shifted.len() / 3 * 3);
        // The first group is shared with what stands before the secret.
        let start = if shift == 0 { 0 } else { 4 };
        forms.push(Base64::encode_string(&shifted).into_bytes()[start..].to_vec());
        forms.push(Base64UrlUnpadded::encode_string(&shifted).into_bytes()[start..].to_vec());
    }
    forms
}
