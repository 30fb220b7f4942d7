//! Opens the store for this process, or shows its key to the one that holds it.

use std::fs;
use std::path::{Path, PathBuf};

use strongroom::key::KeySource;
use strongroom::policy::Policy;
use strongroom::{Error, Vault, VaultBuilder};

use super::super::{failure::Stop, init};
use super::Failure;

/// What is needed to open the store, now and again later.
pub struct Opener {
    builder: VaultBuilder,
    path: PathBuf,
    /// The key file that was made for a store that is still to be.
    pub new_key_file: Option<PathBuf>,
}

impl Opener {
    /// Makes the key file, if there is neither store nor key and both are to be created.
    pub fn new(
        path: PathBuf,
        key: Option<KeySource>,
        create: bool,
        policy: Option<Policy>,
    ) -> Result<Self, Failure> {
        // The process may work elsewhere when it opens the store again.
        let path = absolute(path);
        let key = match key.ok_or(Error::NoKeySource)? {
            KeySource::KeyFile(file) => KeySource::KeyFile(absolute(file)),
            KeySource::PassphraseFile(file) => KeySource::PassphraseFile(absolute(file)),
            key => key,
        };
        let mut new_key_file = None;
        if let KeySource::KeyFile(file) = &key
            && create
            && init::is_free(&path)
            && init::is_absent(file)
        {
            init::generate(file, &path).map_err(|stop| match stop {
                Stop::Failed(failure) => Failure {
                    code: strongroom::Code::Key,
                    text: failure.line(),
                },
                _ => Failure::from(Error::NoKeySource),
            })?;
            new_key_file = Some(file.clone());
        }
        let builder = Vault::builder().path(&path).key_source(key).create(create);
        let builder = match policy {
            Some(policy) => builder.policy(policy),
            None => builder,
        };
        Ok(Self {
            builder,
            path,
            new_key_file,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory under one name, however it was written.
    pub fn place(&self) -> PathBuf {
        if let Ok(canonical) = fs::canonicalize(&self.path) {
            return canonical;
        }
        match (
            self.path.parent().map(fs::canonicalize),
            self.path.file_name(),
        ) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => self.path.clone(),
        }
    }

    pub fn builder(&self) -> &VaultBuilder {
        &self.builder
    }
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
