//! Recall on planted secrets and texts left alone, on a seed of the corpus; `examples/redact_bench.rs` measures more.

use strongroom::redact::Engine;

mod redact_corpus;

use redact_corpus::{Rng, Sample, is_left, negatives, personal, plant};

/// Set `REDACT_SEED` to look at another corpus.
fn rng() -> Rng {
    Rng(std::env::var("REDACT_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(2026))
}

fn gone(engine: &Engine, samples: &[Sample]) -> f64 {
    let mut n = 0usize;
    for s in samples {
        // A refused text counts as missed: a memory that cannot be written is no use.
        let Ok(out) = engine.redact(&s.text, None) else {
            continue;
        };
        n += usize::from(!s.planted.iter().any(|p| is_left(&out.text, p)));
        let again = engine.redact(&out.text, None).map(|o| o.findings.len());
        assert_eq!(again, Ok(0), "not clean after redaction: {}", s.context);
    }
    100.0 * n as f64 / samples.len() as f64
}

#[test]
fn planted_secrets_are_gone_and_other_texts_stay() {
    let engine = Engine::builder()
        .packs(&["secrets"])
        .build()
        .expect("the pack is good");
    let mut rng = rng();
    let check = |name: &str, samples: Vec<Sample>, least: f64| {
        let rate = gone(&engine, &samples);
        assert!(rate >= least, "{name}: {rate:.2} % of {least} %");
    };
    check("prose", plant::prose(&mut rng, 300), 97.0);
    check("placed", plant::placed(&mut rng, 300), 98.0);
    check("keyed", plant::keyed(&mut rng, 300), 98.0);
    check("structure", plant::structure(&mut rng, 300), 99.0);
    check(
        "weak under a key",
        plant::passwords_keyed(&mut rng, 300, true),
        95.0,
    );
    check(
        "strong under a key",
        plant::passwords_keyed(&mut rng, 300, false),
        98.0,
    );
    check(
        "weak in prose",
        plant::passwords_prose(&mut rng, 300, true),
        80.0,
    );
    check(
        "strong in prose",
        plant::passwords_prose(&mut rng, 300, false),
        97.0,
    );
    check("passphrases", plant::phrases(&mut rng, 160), 80.0);
    check("private keys", plant::keys(&mut rng, 90), 98.0);
    let evasions = plant::evasions(&mut rng, 960);
    for kind in evasions
        .iter()
        .map(|s| s.context)
        .collect::<std::collections::BTreeSet<_>>()
    {
        let (of_kind, n) =
            evasions
                .iter()
                .filter(|s| s.context == kind)
                .fold((0, 0), |(gone, n), s| {
                    let out = engine.redact(&s.text, None);
                    let is_gone = out.is_ok_and(|o| !s.planted.iter().any(|p| is_left(&o.text, p)));
                    (gone + usize::from(is_gone), n + 1)
                });
        assert!(of_kind * 100 >= n * 90, "{kind}: {of_kind} of {n}");
    }
    check("evasions", evasions, 98.0);
    let texts = negatives::all(&mut rng, 1000);
    let changed = texts
        .iter()
        .filter(|(_, t)| {
            engine
                .redact(t, None)
                .map_or(true, |o| !o.findings.is_empty())
        })
        .count();
    assert!(
        changed <= texts.len() / 100,
        "{changed} of {} negatives changed",
        texts.len()
    );
}

#[test]
fn personal_data_is_gone_with_few_false_findings() {
    let engine = Engine::builder()
        .packs(&["pii", "pci", "phi"])
        .build()
        .expect("the packs are good");
    let mut rng = rng();
    assert!(gone(&engine, &personal::checked(&mut rng, 350)) >= 100.0);
    let plain = personal::plain(&mut rng, 390);
    let found = gone(&engine, &plain) * plain.len() as f64 / 100.0;
    assert!(found >= 0.85 * plain.len() as f64);
    let false_hits: usize = personal::none(&mut rng, 400)
        .iter()
        .map(|t| engine.redact(t, None).map_or(1, |o| o.findings.len()))
        .sum();
    assert!(
        found / (found + false_hits as f64) >= 0.9,
        "{false_hits} false findings"
    );
}
