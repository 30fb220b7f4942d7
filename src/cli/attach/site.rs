//! One store as this process has it: shared by all handles to one directory, and found again
//! when it is lost.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use strongroom::{Code, Error, StoreError, Tenant, Vault, wire};

use super::super::control::Control;
use super::super::control::calls::{Call, Work, acting};
use super::super::held::Gate;
use super::opener::Opener;
use super::there::{Lost, There};
use super::{Answer, Failure, Role};

/// How long to wait for a holder that takes no calls: it may be about to open the store, or to
/// end.
const PATIENCE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(20);

/// How often one call looks for the store before it gives up.
const ROUNDS_MAX: usize = 16;

/// The sites of one process, by directory.
///
/// A child made by `fork` has a copy of its parent's, in which a lock may be held for ever by a
/// thread that the child has not got. So it never touches that one and makes its own.
struct Sites {
    process: u32,
    by_directory: Mutex<HashMap<PathBuf, Arc<Site>>>,
    of_child: OnceLock<Box<Sites>>,
}

impl Sites {
    fn new() -> Self {
        Self {
            process: std::process::id(),
            by_directory: Mutex::default(),
            of_child: OnceLock::new(),
        }
    }

    fn of_this_process() -> &'static Self {
        static FIRST: OnceLock<Sites> = OnceLock::new();
        let mut sites = FIRST.get_or_init(Self::new);
        while sites.process != std::process::id() {
            sites = sites.of_child.get_or_init(|| Box::new(Self::new()));
        }
        sites
    }

    fn site(&self, directory: PathBuf) -> Arc<Site> {
        let mut sites = self
            .by_directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let site = sites.entry(directory).or_insert_with(|| {
            Arc::new(Site {
                process: self.process,
                state: RwLock::default(),
            })
        });
        Arc::clone(site)
    }
}

/// One store's place in this process. It outlives its handles, empty.
pub struct Site {
    process: u32,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    handles: usize,
    is_to_serve: bool,
    /// While there are handles.
    opener: Option<Arc<Opener>>,
    place: Place,
    /// Counts the times that the store was opened.
    openings: u64,
}

/// Where the store is.
#[derive(Clone, Default)]
enum Place {
    #[default]
    Nowhere,
    Here(Arc<Here>),
    There(Arc<There>),
}

/// The store, held by this process.
struct Here {
    opening: u64,
    vault: Vault,
    gate: Arc<Gate>,
    control: Mutex<Option<Control>>,
}

/// A handle's share of a site. The last one of a site closes it.
pub struct Handle {
    site: Arc<Site>,
    new_key_file: Option<PathBuf>,
}

/// Whose memory, and who acts.
pub struct Caller {
    tenant: String,
    actor: Option<String>,
    session: Option<String>,
    /// The tenant's handle in the store, and of which opening it is.
    opened: Mutex<Option<(u64, Tenant)>>,
}

impl Site {
    /// One more handle to the store. The key must open it, also where it is open already.
    pub fn attach(opener: Opener, serve: bool) -> Result<Arc<Handle>, Failure> {
        let site = Sites::of_this_process().site(opener.place());
        let new_key_file = opener.new_key_file.clone();
        let mut state = site.write();
        if state.handles == 0 {
            state.is_to_serve = serve;
            let opener = Arc::new(opener);
            state.find(&opener)?;
            state.opener = Some(opener);
        } else {
            opener.builder().prove(b"attach")?;
            if serve && !state.is_to_serve {
                state.is_to_serve = true;
                if let Place::Here(here) = &state.place {
                    here.serve(opener.path());
                }
            }
        }
        state.handles += 1;
        drop(state);
        Ok(Arc::new(Handle { site, new_key_file }))
    }

    /// Where the store is now; looks for it if that is not known.
    fn place(&self) -> Result<Place, Error> {
        let known = self
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .place
            .clone();
        if !matches!(known, Place::Nowhere) {
            return Ok(known);
        }
        let mut state = self.write();
        if matches!(state.place, Place::Nowhere) {
            let opener = state.opener.clone().ok_or(StoreError::Closed)?;
            state.find(&opener)?;
        }
        Ok(state.place.clone())
    }

    /// Forgets where the store was, if it is still thought to be there.
    fn leave(&self, place: &Place) {
        let mut state = self.write();
        let is_same = match (&state.place, place) {
            (Place::Here(here), Place::Here(left)) => Arc::ptr_eq(here, left),
            (Place::There(there), Place::There(left)) => Arc::ptr_eq(there, left),
            _ => false,
        };
        if is_same {
            // Its failure was told with the call that failed.
            let _closed = mem::take(&mut state.place).close();
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(StoreError::Forked.into())
        }
    }

    fn release(&self) -> Result<(), Error> {
        let mut state = self.write();
        state.handles -= 1;
        if state.handles > 0 {
            return Ok(());
        }
        // With the lock held, so that whoever attaches next finds the directory free.
        state.opener = None;
        mem::take(&mut state.place).close()
    }
}

impl State {
    /// Opens the store, or reaches the process that holds it.
    fn find(&mut self, opener: &Arc<Opener>) -> Result<(), Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            let locked = match opener.builder().open() {
                Ok(vault) => {
                    self.openings += 1;
                    let here = Here::new(self.openings, vault);
                    if self.is_to_serve {
                        here.serve(opener.path());
                    }
                    self.place = Place::Here(Arc::new(here));
                    return Ok(());
                }
                Err(error) if error.code() == Code::Locked => error,
                Err(error) => return Err(error),
            };
            match There::reach(opener) {
                Ok(there) => {
                    self.place = Place::There(Arc::new(there));
                    return Ok(());
                }
                Err(Lost::Refused(error)) => return Err(error),
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(_) => return Err(locked),
            }
        }
    }
}

impl Place {
    fn close(self) -> Result<(), Error> {
        match self {
            Self::Here(here) => here.close(),
            Self::There(_) | Self::Nowhere => Ok(()),
        }
    }
}

impl Here {
    fn new(opening: u64, vault: Vault) -> Self {
        Self {
            opening,
            gate: Gate::new(vault.clone()),
            vault,
            control: Mutex::new(None),
        }
    }

    /// Takes calls of other processes. Where the socket cannot be made they are told that the
    /// store is locked, and [`Role::Holder`] says so.
    fn serve(&self, store: &Path) {
        *self.control() = Control::serve(store, &self.vault, &self.gate).ok();
    }

    fn control(&self) -> std::sync::MutexGuard<'_, Option<Control>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` once the store was closed.
    fn call(&self, caller: &Caller, work: &Work<'_>) -> Option<strongroom::Answer> {
        let busy = self.gate.busy();
        let vault = busy.as_ref()?;
        Some(match caller.tenant_in(self.opening, vault) {
            Ok(tenant) => work.run(&tenant),
            Err(error) => failed(work, error),
        })
    }

    fn close(&self) -> Result<(), Error> {
        if let Some(control) = self.control().take() {
            control.finish();
        }
        self.gate.close()
    }
}

impl Handle {
    /// Carries the call out, here or there.
    pub fn call(&self, caller: &Caller, work: &Work<'_>) -> Answer {
        if let Err(error) = self.site.check_process() {
            return failed(work, error).into();
        }
        for _ in 0..ROUNDS_MAX {
            let place = match self.site.place() {
                Ok(place) => place,
                Err(error) => return failed(work, error).into(),
            };
            match &place {
                Place::Here(here) => {
                    let Some(answer) = here.call(caller, work) else {
                        self.site.leave(&place);
                        continue;
                    };
                    if is_to_be_opened_again(&answer) {
                        self.site.leave(&place);
                    }
                    return answer.into();
                }
                Place::There(there) => match there.call(&caller.call(work)) {
                    Ok(answer) => return answer,
                    Err(Lost::Refused(error)) => return failed(work, error).into(),
                    Err(Lost::Unknown) if !work.is_repeatable() => {
                        self.site.leave(&place);
                        return failed(work, StoreError::OutcomeUnknown.into()).into();
                    }
                    Err(Lost::NotDone | Lost::Unknown) => self.site.leave(&place),
                },
                Place::Nowhere => {}
            }
        }
        failed(work, StoreError::Locked(0).into()).into()
    }

    pub fn vault(&self) -> Result<Option<Vault>, Failure> {
        self.site.check_process()?;
        Ok(match self.site.place()? {
            Place::Here(here) => Some(here.vault.clone()),
            _ => None,
        })
    }

    pub fn role(&self) -> Role {
        if self.site.check_process().is_err() {
            return Role::Detached;
        }
        let state = self
            .site
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        match &state.place {
            Place::Here(here) => Role::Holder {
                is_serving: here.control().is_some(),
            },
            Place::There(_) => Role::Guest,
            Place::Nowhere => Role::Detached,
        }
    }

    pub fn new_key_file(&self) -> Option<&Path> {
        self.new_key_file.as_deref()
    }

    /// As dropping it, with the error.
    pub fn close(self) -> Result<(), Failure> {
        self.site.check_process()?;
        let site = Arc::clone(&self.site);
        mem::forget(self);
        Ok(site.release()?)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // What came into a child by `fork` is its parent's to close.
        if self.site.check_process().is_ok() {
            let _closed = self.site.release();
        }
    }
}

impl Caller {
    pub fn new(tenant: &str, actor: Option<&str>, session: Option<&str>) -> Self {
        Self {
            tenant: tenant.to_owned(),
            actor: actor.map(str::to_owned),
            session: session.map(str::to_owned),
            opened: Mutex::new(None),
        }
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    fn tenant_in(&self, opening: u64, vault: &Vault) -> Result<Tenant, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tenant)) = &*opened
            && *of == opening
        {
            return Ok(tenant.clone());
        }
        let tenant = vault.tenant(&self.tenant)?;
        let tenant = acting(&tenant, self.actor.as_deref(), self.session.as_deref());
        *opened = Some((opening, tenant.clone()));
        Ok(tenant)
    }

    fn call<'a>(&'a self, work: &'a Work<'a>) -> Call<'a> {
        Call {
            tenant: Cow::Borrowed(&self.tenant),
            actor: self.actor.as_deref().map(Cow::Borrowed),
            session: self.session.as_deref().map(Cow::Borrowed),
            work: Cow::Borrowed(work),
        }
    }
}

/// Whether the store must be opened again before it writes again.
fn is_to_be_opened_again(answer: &strongroom::Answer) -> bool {
    matches!(
        answer.failure,
        Some(Error::Store(StoreError::OutcomeUnknown))
    )
}

fn failed(work: &Work<'_>, error: Error) -> strongroom::Answer {
    let tool_use_id = match work {
        Work::Execute(input) => wire::parse(input.as_bytes()).tool_use_id,
        Work::Put { .. } | Work::Clear => None,
    };
    strongroom::Answer::failed(tool_use_id, error)
}
