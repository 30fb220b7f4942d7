//! What a create costs the processor, beside its seals and one keyword pass.

use std::sync::Arc;
use std::time::Instant;

use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use strongroom::Vault;
use strongroom::backend::{Backend, MemoryBackend, MemoryKeyStore};
use strongroom::key::{KdfParams, KeySource};
use strongroom::redact::Engine;

use crate::contender::run_on;
use crate::fixture::ROOM;
use crate::probe::Probe;
use crate::report::{Report, median};
use crate::{Options, Res, limit, workload};

/// In a sealed record, what is not its plain bytes.
const ENVELOPE_BYTES: usize = 45;

pub fn run(options: &Options, report: &mut Report) -> Res<()> {
    let files = if options.quick { 500 } else { 3_000 };
    let probe = Arc::new(Probe::new(Arc::new(MemoryBackend::new()), true));
    let on: Arc<dyn Backend> = probe.clone();
    let line = "the key of a store in memory".to_owned();
    let vault = Vault::builder()
        .on(on, Arc::new(MemoryKeyStore::new()))
        .key_source(KeySource::Passphrase(line.into()))
        .kdf(KdfParams::FLOOR)
        .policy(strongroom::policy::load(ROOM, "bench")?)
        .create(true)
        .open()?;
    let tenant = vault.tenant("t")?;
    for file in 0..40 {
        run_on(&tenant, &[workload::create(file)])?;
    }
    let mut done = Ok(Vec::new());
    let trace = probe.trace(|| done = run_on(&tenant, &[workload::create(40)]));
    done?;
    let cipher = XChaCha20Poly1305::new(&[9; 32].into());
    let engine = Engine::builder().packs(&["secrets"]).build()?;
    let (mut creates, mut seals, mut passes, mut redactions) = (vec![], vec![], vec![], vec![]);
    for file in 41..41 + files {
        let text = workload::text(file);
        creates.extend(run_on(&tenant, &[workload::create(file)])?);
        let start = Instant::now();
        for (_, length, _) in &trace.puts {
            std::hint::black_box(limit::seal(&cipher, length.saturating_sub(ENVELOPE_BYTES))?);
        }
        seals.push(start.elapsed().as_nanos() as u64);
        let start = Instant::now();
        std::hint::black_box(engine.keyword_hits(&text));
        passes.push(start.elapsed().as_nanos() as u64);
        let start = Instant::now();
        std::hint::black_box(engine.redact(&text, None).map_err(|_| "refused")?);
        redactions.push(start.elapsed().as_nanos() as u64);
    }
    vault.close()?;
    report.heading("The processor's part of a create, 4 KB, on a store in memory");
    let bytes: usize = trace.puts.iter().map(|(_, length, _)| length).sum();
    report.figure("records in the batch", trace.puts.len() as f64, "", "");
    report.figure("bytes in the batch", bytes as f64, "bytes", "");
    report.figure("create", median(&creates) / 1e3, "us", "");
    report.figure("its seals", median(&seals) / 1e3, "us", "");
    report.figure("one keyword pass", median(&passes) / 1e3, "us", "");
    report.figure("all of redaction", median(&redactions) / 1e3, "us", "");
    let base = median(&seals) + median(&passes);
    report.figure(
        "create: times its seals and a keyword pass",
        median(&creates) / base,
        "x",
        "<= 3",
    );
    Ok(())
}
