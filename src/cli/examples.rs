//! How many examples a policy's rules bring: those of its packs and of its own rules.

use strongroom::Error;
use strongroom::policy::Policy;
use strongroom::redact::{self, RuleDef};

use super::failure::Stop;

/// The texts of the shipped packs, as the library holds them.
const PACKS: [(&str, &[&str]); 4] = [
    (
        "secrets",
        &[
            include_str!("../../policies/rules/secrets.toml"),
            include_str!("../../policies/rules/structure.toml"),
        ],
    ),
    ("pii", &[include_str!("../../policies/rules/pii.toml")]),
    ("phi", &[include_str!("../../policies/rules/phi.toml")]),
    ("pci", &[include_str!("../../policies/rules/pci.toml")]),
];

/// Examples and negative examples of all rules in use.
pub fn count(policy: &Policy) -> Result<usize, Stop> {
    let own = policy.redaction.rules.iter();
    let own = own.map(|rule| rule.examples.len() + rule.negative_examples.len());
    let mut count: usize = own.sum();
    for rule in pack_rules(&policy.redaction.pack_names())? {
        count += rule.examples.len() + rule.negative_examples.len();
    }
    Ok(count)
}

fn pack_rules(names: &[&str]) -> Result<Vec<RuleDef>, Stop> {
    let mut rules = Vec::new();
    for (_, texts) in PACKS.iter().filter(|(name, _)| names.contains(name)) {
        for text in *texts {
            rules.extend(redact::parse_rules(text).map_err(Error::from)?);
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use strongroom::redact::Engine;

    use super::*;

    #[test]
    fn the_packs_are_those_of_the_library() {
        assert_eq!(PACKS.map(|(name, _)| name), redact::PACKS);
        for name in redact::PACKS {
            let engine = Engine::builder().packs(&[name]).build().unwrap();
            let rules = pack_rules(&[name]).unwrap_or_default();
            assert_eq!(rules.len(), engine.rules_len(), "{name}");
            assert!(rules.iter().all(|rule| engine.has_rule(&rule.id)));
        }
    }
}
