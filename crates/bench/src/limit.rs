//! The limit: the same gets and batches on the bare engine, the same syncs, the same seals.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde_json::Value;

use crate::Res;
use crate::contender::Contender;
use crate::probe::Trace;

/// What sealing adds to a record's plain bytes in the store: 29 before, 16 behind.
const ENVELOPE_BYTES: usize = 45;

/// What a sealed record is bound to: about as many bytes as the store binds it to.
const ASSOCIATED: [u8; 60] = [7; 60];

/// The bare engine beside the store, on a copy of the same records.
pub struct Limit {
    name: String,
    db: sled::Db,
    file: File,
    state: File,
    cipher: XChaCha20Poly1305,
    sealed: HashMap<usize, (Vec<u8>, [u8; 16])>,
    views: HashMap<String, Trace>,
    writes: HashMap<&'static str, Trace>,
    fresh: u64,
    added: HashMap<usize, VecDeque<Vec<u8>>>,
}

impl Limit {
    /// `engine` is a directory of the engine's, opened as the store opens it.
    pub fn open(
        engine: &Path,
        views: HashMap<String, Trace>,
        writes: HashMap<&'static str, Trace>,
    ) -> Res<Self> {
        let db = sled::Config::new()
            .path(engine)
            .cache_capacity(32 << 20)
            .flush_every_ms(None)
            .open()?;
        let file = File::options().write(true).open(engine.join("db"))?;
        let state = File::create(engine.join("STATE-of-the-limit"))?;
        Ok(Self {
            name: "limit: sled + syncs + XChaCha20".to_owned(),
            db,
            file,
            state,
            cipher: XChaCha20Poly1305::new(&[9; 32].into()),
            sealed: HashMap::new(),
            views,
            writes,
            fresh: 0,
            added: HashMap::new(),
        })
    }

    fn view(&mut self, path: &str) -> Res<u64> {
        let trace = self.views.get(path).ok_or("no trace of this view")?;
        for (_, length) in &trace.gets {
            if !self.sealed.contains_key(length) {
                let sealed = seal(&self.cipher, length.saturating_sub(ENVELOPE_BYTES))?;
                self.sealed.insert(*length, sealed);
            }
        }
        let start = Instant::now();
        for (number, (key, length)) in trace.gets.iter().enumerate() {
            let value = self.db.get(key)?.ok_or("a record is missing")?;
            std::hint::black_box(value.to_vec());
            // The first is the tenant's head, which is compared and not opened.
            if number == 0 {
                continue;
            }
            if let Some((sealed, tag)) = self.sealed.get(length) {
                let mut text = sealed.clone();
                self.cipher
                    .decrypt_inout_detached(
                        &XNonce::from([1; 24]),
                        &ASSOCIATED,
                        text.as_mut_slice().into(),
                        &(*tag).into(),
                    )
                    .map_err(|_| "not authentic")?;
                std::hint::black_box(text);
            }
        }
        Ok(nanos(start))
    }

    fn write(&mut self, command: &str) -> Res<u64> {
        let trace = self
            .writes
            .get(command)
            .ok_or("no trace of this write")?
            .clone();
        let mut keys = Vec::new();
        for (key, length, is_new) in &trace.puts {
            let mut key = key.clone();
            if *is_new {
                self.fresh += 1;
                let number = self.fresh.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                let start = key.len().saturating_sub(number.len());
                key[start..].copy_from_slice(&number);
                self.added
                    .entry(key.len())
                    .or_default()
                    .push_back(key.clone());
            }
            keys.push((key, *length));
        }
        let mut gone = Vec::new();
        for length in &trace.deletes {
            gone.extend(self.added.get_mut(length).and_then(VecDeque::pop_front));
        }
        let start = Instant::now();
        let mut batch = sled::Batch::default();
        for (key, length) in keys {
            let (mut value, tag) = seal(&self.cipher, length.saturating_sub(ENVELOPE_BYTES))?;
            value.extend_from_slice(&tag);
            value.resize(length, 0);
            batch.insert(key, value);
        }
        for key in gone {
            batch.remove(key);
        }
        self.db.apply_batch(batch)?;
        self.db.flush()?;
        self.file.sync_data()?;
        let slot = [self.fresh as u8; 4_096];
        self.state.write_all_at(&slot, self.fresh % 2 * 4_096)?;
        self.state.sync_data()?;
        Ok(nanos(start))
    }
}

impl Contender for Limit {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, inputs: &[Value]) -> Res<Vec<u64>> {
        let mut all = Vec::new();
        for input in inputs {
            let text = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default();
            all.push(match text("command") {
                "view" => self.view(text("path"))?,
                command => self.write(command)?,
            });
        }
        Ok(all)
    }
}

/// Seals so many bytes. Returns them and their tag.
pub fn seal(cipher: &XChaCha20Poly1305, bytes: usize) -> Res<(Vec<u8>, [u8; 16])> {
    let mut text = vec![0x20; bytes];
    let tag = cipher
        .encrypt_inout_detached(
            &XNonce::from([1; 24]),
            &ASSOCIATED,
            text.as_mut_slice().into(),
        )
        .map_err(|_| "not sealed")?;
    Ok((text, tag.into()))
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
