//! Stores to measure on: made, filled in large strides, opened.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use strongroom::backend::{FileKeyStore, SledBackend};
use strongroom::{Tenant, Vault, VaultBuilder};

use crate::Res;
use crate::probe::Probe;

/// So many threads fill a store.
const FILLERS: usize = 16;

/// The shipped policy with room for the workload.
pub const ROOM: &str = "schema = 1\nextends = [\"default\"]\n[limits]\nmax_files = 2_000_000\nmax_total_bytes = \"64GiB\"\n";

/// A store's directory and its key file.
#[derive(Clone)]
pub struct Site {
    pub home: PathBuf,
}

impl Site {
    /// Makes an empty store below `home`.
    pub fn create(home: &Path, policy: &str) -> Res<Self> {
        std::fs::create_dir_all(home)?;
        let site = Self {
            home: home.to_path_buf(),
        };
        strongroom::generate_key_file(site.key())?;
        let policy = strongroom::policy::load(policy, "bench")?;
        site.builder().policy(policy).create(true).open()?.close()?;
        Ok(site)
    }

    pub fn store(&self) -> PathBuf {
        self.home.join("store")
    }

    pub fn key(&self) -> PathBuf {
        self.home.join("key")
    }

    pub fn engine(&self) -> PathBuf {
        self.store().join("gen-000001")
    }

    pub fn builder(&self) -> VaultBuilder {
        Vault::builder().path(self.store()).key_file(self.key())
    }

    pub fn open(&self) -> Res<Vault> {
        Ok(self.builder().open()?)
    }

    /// The store on its engine with a probe between them.
    pub fn probe(&self, syncs: bool) -> Res<(Vault, Arc<Probe>)> {
        let engine = Arc::new(SledBackend::open(&self.engine())?);
        let probe = Arc::new(Probe::new(engine, syncs));
        let keys = Arc::new(FileKeyStore::new(&self.store()));
        let on: Arc<dyn strongroom::backend::Backend> = probe.clone();
        let vault = Vault::builder().on(on, keys).key_file(self.key()).open()?;
        Ok((vault, probe))
    }

    /// Creates files, many at once and with one sync of the engine at the end.
    pub fn fill(
        &self,
        count: usize,
        file: impl Fn(usize) -> (String, String, String) + Sync,
    ) -> Res<()> {
        let (vault, _probe) = self.probe(false)?;
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), String> {
            let mut last: Option<Tenant> = None;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let (name, path, text) = file(number);
                let tenant = match last.take() {
                    Some(tenant) if tenant.name() == name => tenant,
                    _ => vault.tenant(&name).map_err(|error| error.to_string())?,
                };
                let reply = tenant
                    .create(&path, &text)
                    .map_err(|error| error.to_string())?;
                if reply.is_error {
                    return Err(format!("{:?}", reply.as_text()));
                }
                last = Some(tenant);
            }
        };
        let done: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let fillers: Vec<_> = (0..FILLERS).map(|_| scope.spawn(work)).collect();
            fillers
                .into_iter()
                .map(|filler| {
                    filler
                        .join()
                        .unwrap_or_else(|_| Err("a filler panicked".into()))
                })
                .collect()
        });
        done.into_iter().collect::<Result<(), String>>()?;
        vault.close()?;
        Ok(())
    }

    /// A copy of the whole site.
    pub fn copy_to(&self, home: &Path) -> Res<Self> {
        copy(&self.home, home)?;
        Ok(Self {
            home: home.to_path_buf(),
        })
    }
}

pub fn copy(from: &Path, to: &Path) -> Res<()> {
    let done = Command::new("cp").arg("-a").args([from, to]).status()?;
    if done.success() {
        Ok(())
    } else {
        Err("cp failed".into())
    }
}
