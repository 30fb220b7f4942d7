//! The native half of the Python package: `strongroom::attach` with Python's types and without
//! its global lock.

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use strongroom::attach::{Answer, Attached, Failure, KeyChoice, Memory, Options, Role};
use strongroom::wire::Content;
use strongroom::{Code, Error, StoreError, policy};
use zeroize::Zeroizing;

/// What Python gets of an answer: text, image (media type and bytes), whether it is an error,
/// the id of the call, and the failure (code and text).
type Told<'py> = (
    Option<String>,
    Option<(&'static str, Bound<'py, PyBytes>)>,
    bool,
    Option<String>,
    Option<(&'static str, String)>,
);

#[pyclass(frozen, name = "Store", module = "strongroom._native")]
struct PyStore {
    attached: Attached,
    process: u32,
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (path, key_file, passphrase, passphrase_file, key_command, create, policy, serve))]
    #[expect(clippy::too_many_arguments, reason = "Python's side names them")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        key_file: Option<PathBuf>,
        passphrase: Option<String>,
        passphrase_file: Option<PathBuf>,
        key_command: Option<Vec<String>>,
        create: bool,
        policy: Option<String>,
        serve: bool,
    ) -> PyResult<Self> {
        let key = KeyChoice {
            key_file,
            passphrase: passphrase.map(Zeroizing::new),
            passphrase_file,
            key_command,
        };
        let attached = free(py, || {
            let mut options = Options::new(path)
                .key(key.source()?)
                .create(create)
                .serve(serve);
            if let Some(policy) = policy {
                options = options.policy(policy::load_named_or_path(&policy).map_err(Error::from)?);
            }
            options.open()
        })?;
        Ok(Self {
            attached,
            process: process::id(),
        })
    }

    fn tenant(
        &self,
        py: Python<'_>,
        name: &str,
        actor: Option<&str>,
        session: Option<&str>,
    ) -> PyResult<PyMemory> {
        let memory = free(py, || self.attached.tenant(name, actor, session))?;
        Ok(PyMemory {
            memory,
            process: self.process,
        })
    }

    #[getter]
    fn role(&self, py: Python<'_>) -> &'static str {
        py.detach(|| match self.attached.role() {
            Role::Holder { is_serving: true } => "holder",
            Role::Holder { is_serving: false } => "holder, not serving",
            Role::Guest => "guest",
            _ => "detached",
        })
    }

    #[getter]
    fn new_key_file(&self) -> Option<PathBuf> {
        self.attached.new_key_file().map(PathBuf::from)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        free(py, || self.attached.close())
    }
}

#[pyclass(frozen, name = "Memory", module = "strongroom._native")]
struct PyMemory {
    memory: Memory,
    process: u32,
}

#[pymethods]
impl PyMemory {
    fn execute<'py>(&self, py: Python<'py>, input: &str) -> PyResult<Told<'py>> {
        self.call(py, |memory| memory.execute(input))
    }

    fn put_bytes<'py>(&self, py: Python<'py>, path: &str, data: &[u8]) -> PyResult<Told<'py>> {
        self.call(py, |memory| memory.put_bytes(path, data))
    }

    fn clear<'py>(&self, py: Python<'py>) -> PyResult<Told<'py>> {
        self.call(py, Memory::clear)
    }
}

impl PyMemory {
    fn call<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&Memory) -> Answer + Send,
    ) -> PyResult<Told<'py>> {
        let answer = free(py, || {
            if self.process != process::id() {
                return Err(Error::Store(StoreError::Forked).into());
            }
            Ok(work(&self.memory))
        })?;
        let (text, image) = match answer.reply.content {
            Content::Text(text) => (Some(text), None),
            Content::Image { media_type, data } => {
                (None, Some((media_type, PyBytes::new(py, &data))))
            }
        };
        let failure = answer
            .failure
            .map(|failure| (failure.code.as_str(), failure.text));
        Ok((
            text,
            image,
            answer.reply.is_error,
            answer.tool_use_id,
            failure,
        ))
    }
}

/// Works without Python's global lock, so that other threads of the interpreter go on.
///
/// A panic's own text may quote what it tripped over, so a fixed one stands for all.
fn free<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    let done = py.detach(|| panic::catch_unwind(AssertUnwindSafe(work)));
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(raise(py, &failure.text, failure.code.as_str())),
        Err(_) => Err(raise(
            py,
            "an internal check failed; nothing was acknowledged that is not stored",
            Code::Other.as_str(),
        )),
    }
}

/// Python's own exception, which it defines itself.
fn raise(py: Python<'_>, text: &str, code: &str) -> PyErr {
    let made = py
        .import("strongroom._errors")
        .and_then(|errors| errors.getattr("StrongroomError"))
        .and_then(|class| class.call1((text, code)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A key file with a new random key, never over a file that exists.
#[pyfunction]
fn generate_key_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    free(py, || Ok(strongroom::generate_key_file(path)?))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Rust's own report of a panic may quote what it tripped over.
    panic::set_hook(Box::new(|_| ()));
    module.add_class::<PyStore>()?;
    module.add_class::<PyMemory>()?;
    module.add_function(wrap_pyfunction!(generate_key_file, module)?)
}
