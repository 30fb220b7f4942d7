//! What may be written after `backup`, `verify-backup` and `restore`.

use std::path::PathBuf;

use clap::Args;

use super::args::LookArgs;

#[derive(Args)]
pub struct BackupArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// Write the sealed records to this file, which must not exist.
    #[arg(long, value_name = "FILE", required_unless_present = "keys")]
    pub to: Option<PathBuf>,
    /// Write the keyring and the tenants' key files, sealed under the store's keys, to this
    /// file, which must not exist.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

#[derive(Args)]
pub struct VerifyBackupArgs {
    /// The file, of records or of keys.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RestoreArgs {
    #[command(flatten)]
    pub look: LookArgs,
    /// The file of records that `backup --to` wrote.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// The file of keys that `backup --keys` wrote: of the same backup, or a newer one. With
    /// --tenant it can be left out as long as the tenant's record key was not rotated since.
    #[arg(long, value_name = "FILE", required_unless_present = "tenant")]
    pub keys: Option<PathBuf>,
    /// Tenants that must not come back: a certificate that `tenant erase` printed, or a newer
    /// backup, of records or of keys. Can be given more than once.
    #[arg(long, value_name = "FILE", conflicts_with = "tenant")]
    pub erasures: Vec<PathBuf>,
    /// The store that the new one is to replace: what was erased in it does not come back. It
    /// is only read, with the key that is named.
    #[arg(long, value_name = "DIR", conflicts_with = "tenant")]
    pub replaces: Option<PathBuf>,
    /// Bring back only this tenant's files, into a store that is there.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Whose memory they go into [default: the same].
    #[arg(long, value_name = "NAME", requires = "tenant")]
    pub into: Option<String>,
    /// Put files in place of those that exist.
    #[arg(long, requires = "tenant")]
    pub overwrite: bool,
}
