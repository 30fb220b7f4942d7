//! Checks everything that is stored: the tree, every content, and that nothing else lies there.

use std::collections::HashSet;
use std::sync::Arc;

use crate::audit::Chain;
use crate::key::FileTag;
use crate::record::{DirentBody, Job, NodeId, RecordKey, TenantId};

use super::StoreError;
use super::audit::STORE_CHAIN;
use super::core::Core;
use super::open::{scan_all, sum_listed};
use super::reader::Reader;
use super::tenant::{Live, Tenant};
use super::verify_contents::{Contents, name_damaged};
use super::walk::Directory;

/// How much `verify` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// Everything, contents included.
    #[default]
    Full,
    /// The tree without contents.
    Quick,
}

/// What `verify` found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tenants looked at.
    pub tenants: u64,
    /// Directories checked, each tenant's root included.
    pub directories: u64,
    /// Files checked.
    pub files: u64,
    /// Bytes of content read.
    pub bytes: u64,
    /// What is damaged; empty when all is well.
    pub problems: Vec<Problem>,
    /// Whether anything but a tenant's lost keys is among them: that stops writes.
    is_damaged: bool,
}

/// One thing that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Whose it is, where that is known.
    pub tenant: Option<String>,
    /// The path of the file or directory, where that is known.
    pub path: Option<String>,
    /// What is wrong.
    pub what: String,
}

pub(super) fn verify(core: &Core, depth: Depth) -> Result<VerifyReport, StoreError> {
    core.check_open()?;
    let mut report = VerifyReport::default();
    check_root(core, &mut report);
    let mut known = HashSet::from([STORE_CHAIN]);
    if let Err(error) = core.read_store_chain(|_| ()) {
        report.problem(None, None, &error);
    }
    for job in core.erasures() {
        if let Err(error) = core.read_chain(job.tenant, None, &job.audit, |_| ()) {
            report.problem(None, None, &error);
        }
    }
    for tag in core.known_heads() {
        let checked = core.listed_tenant(tag).and_then(|tenant| {
            tenant
                .map(|tenant| core.check_keys(&tenant).map(|()| tenant))
                .transpose()
        });
        report.tenants += u64::from(!matches!(checked, Ok(None)));
        match checked {
            Ok(Some(tenant)) => {
                if let Some(id) = verify_tenant(core, &tenant, depth, &mut report) {
                    known.insert(id);
                }
            }
            Ok(None) => {}
            Err(error) => {
                // The head still tells the id, so that its records do not count as strays.
                known.extend(tenant_id_of(core, tag));
                report.problem(None, None, &error);
            }
        }
    }
    find_strange_tenants(core, known, &mut report)?;
    find_strange_spaces(core, &mut report)?;
    if report.problems.is_empty() {
        return Ok(report);
    }
    // After a failed write, what is stored may rightly differ from what is in memory.
    core.check_open()?;
    if core.is_failed() {
        return Err(StoreError::OutcomeUnknown);
    }
    if report.is_damaged {
        core.note_damage();
    }
    Ok(report)
}

impl VerifyReport {
    pub(super) fn problem(
        &mut self,
        tenant: Option<&Tenant>,
        path: Option<&str>,
        error: &StoreError,
    ) {
        let was_damaged = self.is_damaged;
        self.push(tenant, path, &error.to_string());
        // One tenant's lost keys are no reason to stop the writes of all others.
        self.is_damaged = was_damaged || !error.is_lost_key();
    }

    fn push(&mut self, tenant: Option<&Tenant>, path: Option<&str>, what: &str) {
        self.is_damaged = true;
        self.problems.push(Problem {
            tenant: tenant.map(|tenant| tenant.name.as_str().to_owned()),
            path: path.map(str::to_owned),
            what: what.to_owned(),
        });
    }
}

/// Whether anything of a tenant is damaged, by reading all of it.
pub(super) fn is_damaged(core: &Core, tenant: &Tenant) -> bool {
    let mut report = VerifyReport::default();
    verify_tenant(core, tenant, Depth::Full, &mut report);
    report.is_damaged
}

/// The stored root must be the one that this process holds, and all that it counts must be
/// what it counted. Nothing is committed meanwhile.
fn check_root(core: &Core, report: &mut VerifyReport) {
    let top = core.lock_top();
    match sum_listed(&*core.backend, &core.crypto.inventory, |_, _| {}) {
        Ok(sum) if sum == (top.root.records, top.root.set_hash) => {}
        Ok(_) => report.push(
            None,
            None,
            "the list of tenants, policy and unfinished work is not the one last written",
        ),
        Err(error) => report.problem(None, None, &error),
    }
    match core.backend.get(&RecordKey::Root.to_bytes()) {
        Ok(Some(stored)) if stored == top.sealed => {}
        Ok(_) => report.push(None, None, "the root record is not the one last written"),
        Err(error) => report.problem(None, None, &error.into()),
    }
}

fn tenant_id_of(core: &Core, tag: FileTag) -> Option<TenantId> {
    let sealed = core.backend.get(&RecordKey::Head(tag).to_bytes()).ok()??;
    Some(core.open_head(tag, &sealed).ok()?.tenant)
}

/// What a tenant's tree reaches.
#[derive(Default)]
struct Reached {
    directories: HashSet<NodeId>,
    contents: Contents,
    audit: Chain,
}

/// Checks one tenant under its lock, so that no write changes what is being compared.
fn verify_tenant(
    core: &Core,
    tenant: &Tenant,
    depth: Depth,
    report: &mut VerifyReport,
) -> Option<TenantId> {
    let _lock = tenant.lock();
    let live = tenant.live()?;
    let id = live.crypto.id;
    let head = core.backend.get(&RecordKey::Head(tenant.tag).to_bytes());
    if !matches!(head, Ok(Some(stored)) if stored == live.sealed) {
        report.push(
            Some(tenant),
            None,
            "the tenant's head is not the one last written",
        );
    }
    let reader = Reader {
        core,
        live: Some(Arc::clone(&live)),
        expiry: None,
    };
    let mut walk = TreeWalk {
        reader: &reader,
        tenant,
        report,
        reached: Reached::default(),
    };
    let holds = walk.directory(&reader.hold_list(), "(the list of holds)");
    // It is kept like a directory, but is none.
    walk.report.directories -= 1;
    let is_whole = walk.directory(&reader.root(), "/memories") && holds;
    let mut reached = walk.reached;
    reached.audit = live.head.audit;
    if let Err(error) = core.read_chain(id, Some(&live.crypto), &live.head.audit, |_| ()) {
        report.problem(Some(tenant), None, &error);
    }
    if depth == Depth::Full {
        if is_whole {
            check_trash(core, tenant, &live, report);
            reach_trash(core, &live, &mut reached);
        }
        check_records(core, tenant, &live, is_whole, &mut reached, report);
        report.bytes += reached.contents.whole_bytes();
        let damaged = reached.contents.damaged();
        if !damaged.is_empty() {
            name_damaged(&reader, tenant, &reader.root(), &damaged, report);
        }
    }
    Some(id)
}

struct TreeWalk<'a> {
    reader: &'a Reader<'a>,
    tenant: &'a Tenant,
    report: &'a mut VerifyReport,
    reached: Reached,
}

impl TreeWalk<'_> {
    /// Says whether every directory below could be read.
    fn directory(&mut self, directory: &Directory, path: &str) -> bool {
        self.report.directories += 1;
        self.reached.directories.insert(directory.id);
        let entries = match self.reader.children(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.report.problem(Some(self.tenant), Some(path), &error);
                return false;
            }
        };
        let mut is_whole = true;
        let mut below = crate::record::Share::NOTHING;
        for entry in entries {
            let path = format!("{path}/{}", entry.name);
            below = below
                .replace(crate::record::Share::NOTHING, entry.share())
                .unwrap_or(below);
            match &entry.body {
                DirentBody::File(meta) => {
                    self.report.files += 1;
                    self.reached.contents.file(meta);
                }
                DirentBody::Hold(_) => {}
                DirentBody::Directory { .. } => {
                    if let Some(directory) = directory.child(&entry) {
                        is_whole &= self.directory(&directory, &path);
                    }
                }
            }
        }
        let summary = &directory.summary.below;
        let is_right = summary.files == below.files
            && summary.directories == below.directories
            && summary.bytes == below.bytes
            && summary.oldest <= below.oldest
            && summary.born <= below.born
            && summary.height >= below.height
            && summary.reach >= below.reach;
        if !is_right {
            self.report.push(
                Some(self.tenant),
                Some(path),
                "the directory's totals are wrong",
            );
        }
        is_whole
    }
}

/// Deleted directories must be what they were, until they are gone.
fn check_trash(core: &Core, tenant: &Tenant, live: &Live, report: &mut VerifyReport) {
    let jobs = stored_jobs(core)
        .into_iter()
        .filter_map(|job| job.removal().cloned())
        .filter(|job| job.tenant == live.crypto.id);
    for directory in jobs.flat_map(|job| job.directories) {
        let Some(expected) = directory.unchecked else {
            continue;
        };
        match core.is_trash_whole(&live.crypto, directory.id, expected) {
            Ok(true) => {}
            Ok(false) => report.push(Some(tenant), None, "a deleted directory has been altered"),
            Err(error) => report.problem(Some(tenant), None, &error),
        }
    }
}

/// Adds what unfinished work still has to remove.
fn reach_trash(core: &Core, live: &Live, reached: &mut Reached) {
    let jobs = stored_jobs(core)
        .into_iter()
        .filter_map(|job| job.removal().cloned())
        .filter(|job| job.tenant == live.crypto.id);
    let mut directories: Vec<NodeId> = Vec::new();
    for job in jobs {
        directories.extend(job.directories.iter().map(|directory| directory.id));
        if let Some((id, chunks)) = job.content {
            reached.contents.removal(id, chunks);
        }
    }
    while let Some(directory) = directories.pop() {
        reached.directories.insert(directory);
        let prefix = RecordKey::dirents_of(live.crypto.id, directory);
        let _scanned = scan_all(&*core.backend, &prefix, |key, value| {
            if let Ok(entry) = live.crypto.open_entry(key, value) {
                match entry.body {
                    DirentBody::File(meta) => {
                        // The job may have removed some of them already.
                        reached.contents.removal(meta.content, meta.chunks());
                    }
                    DirentBody::Directory { .. } => directories.push(entry.node),
                    DirentBody::Hold(_) => {}
                }
            }
            Ok(())
        });
    }
}

fn stored_jobs(core: &Core) -> Vec<Job> {
    let mut jobs = Vec::new();
    let _scanned = scan_all(&*core.backend, &RecordKey::jobs(), |key, value| {
        jobs.extend(core.open_job(key, value));
        Ok(())
    });
    jobs
}

/// Looks at all records of a tenant: at the contents, and for those that neither its tree nor its
/// trash reaches, which were put there by somebody else.
fn check_records(
    core: &Core,
    tenant: &Tenant,
    live: &Live,
    is_whole: bool,
    reached: &mut Reached,
    report: &mut VerifyReport,
) {
    let id = live.crypto.id;
    let mut strays: u64 = 0;
    for prefix in [
        RecordKey::dirents_of_tenant(id),
        RecordKey::chunks_of_tenant(id),
        RecordKey::audit_of(id),
    ] {
        let scanned = scan_all(&*core.backend, &prefix, |key, value| {
            let is_reached = match RecordKey::from_bytes(key) {
                Some(RecordKey::Dirent(_, directory, _)) => {
                    reached.directories.contains(&directory)
                }
                Some(RecordKey::Chunk(..)) => reached.contents.see(&live.crypto, key, value),
                Some(RecordKey::Audit(_, seq)) => {
                    (reached.audit.first..=reached.audit.last).contains(&seq)
                }
                _ => false,
            };
            strays += u64::from(!is_reached);
            Ok(())
        });
        if let Err(error) = scanned {
            report.problem(Some(tenant), None, &error);
        }
    }
    // Below a damaged directory nothing can be told from a stray record.
    if strays > 0 && is_whole {
        let what = format!("{strays} stored records belong to no file or directory");
        report.push(Some(tenant), None, &what);
    }
}

/// Records under a tenant id that neither a head nor unfinished work names.
fn find_strange_tenants(
    core: &Core,
    mut known: HashSet<TenantId>,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    for prefix in RecordKey::tenant_spaces() {
        let mut after: Option<Vec<u8>> = None;
        while let Some((key, _)) = core
            .backend
            .scan(&prefix, after.as_deref(), 1)?
            .into_iter()
            .next()
        {
            let tenant = RecordKey::from_bytes(&key).and_then(|key| key.tenant());
            let is_known = |known: &HashSet<_>| tenant.is_some_and(|id| known.contains(&id));
            if !is_known(&known) {
                // It may have been created since the tenants were listed.
                known.extend(stored_jobs(core).iter().map(Job::tenant));
                known.extend(
                    core.known_heads()
                        .into_iter()
                        .filter_map(|tag| tenant_id_of(core, tag)),
                );
            }
            if !is_known(&known) && core.backend.get(&key)?.is_some() {
                report.push(None, None, "stored records belong to no tenant");
            }
            after = Some(past_tenant(key));
        }
    }
    Ok(())
}

/// A key behind those of all records of the tenant whose record lies at `key`; behind
/// `key` itself where no store has such keys, so that a search always goes on.
fn past_tenant(key: Vec<u8>) -> Vec<u8> {
    match key.get(..17) {
        Some(start) => {
            let mut last = start.to_vec();
            last.resize(17 + 64, 0xFF);
            last.max(key)
        }
        None => key,
    }
}

/// Records whose keys start as no store's do.
fn find_strange_spaces(core: &Core, report: &mut VerifyReport) -> Result<(), StoreError> {
    let root = RecordKey::Root.to_bytes();
    let first = core.backend.scan(&[], None, 1)?;
    let behind_root = core.backend.scan(&root, Some(&root), 1)?;
    let mut last = RecordKey::last_space();
    last.resize(1 + 64, 0xFF);
    let behind_all = core.backend.scan(&[], Some(&last), 1)?;
    let is_clean = first.first().is_none_or(|(key, _)| *key == root)
        && behind_root.is_empty()
        && behind_all.is_empty();
    if !is_clean {
        report.push(None, None, "stored records are of no kind that a store has");
    }
    Ok(())
}
