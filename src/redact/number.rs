//! The rules that run at numbers, and which of them the words around a number ask for.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::error::RedactError;
use super::rule::RuleDef;

/// The rules that run at numbers.
pub(super) struct Numbers {
    /// Their places among all rules.
    pub(super) rules: Vec<usize>,
    /// One search for the words that must stand near.
    words: AhoCorasick,
    /// For each word, the places in `rules` that it serves.
    by_word: Vec<Vec<usize>>,
    /// For each of `rules`, whether it needs no word.
    always: Vec<bool>,
}

impl Numbers {
    pub(super) fn new(defs: &[RuleDef]) -> Result<Self, RedactError> {
        let mut rules = Vec::new();
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut by_word: Vec<Vec<usize>> = Vec::new();
        let mut always = Vec::new();
        for (i, def) in defs.iter().enumerate() {
            if def.digits.is_none() {
                continue;
            }
            for word in &def.near {
                let word = word.to_ascii_lowercase().into_bytes();
                let known = words.iter().position(|w| *w == word);
                let slot = known.unwrap_or_else(|| {
                    words.push(word);
                    by_word.push(Vec::new());
                    by_word.len() - 1
                });
                if let Some(served) = by_word.get_mut(slot) {
                    served.push(rules.len());
                }
            }
            rules.push(i);
            always.push(def.near.is_empty());
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .map_err(|_| RedactError::TooManyKeywords)?;
        Ok(Self {
            rules,
            words,
            by_word,
            always,
        })
    }

    /// Sets for each rule whether it is to run at a number with `around` about it.
    pub(super) fn near(&self, around: &[u8], wanted: &mut Vec<bool>) {
        wanted.clone_from(&self.always);
        for hit in self.words.find_overlapping_iter(around) {
            let served = self.by_word.get(hit.pattern().as_usize());
            for &rule in served.map_or(&[][..], Vec::as_slice) {
                if let Some(is_wanted) = wanted.get_mut(rule) {
                    *is_wanted = true;
                }
            }
        }
    }
}
