//! The native half of the npm package: `strongroom::attach` with JavaScript's types, its work
//! on the threads of libuv's pool.
//!
//! An error's reason is its code, an LF, and its text; `index.js` takes them apart.

use std::panic::{self, AssertUnwindSafe};

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Task};
use napi_derive::{module_init, napi};
use strongroom::attach::{Answer, Attached, Failure, KeyChoice, Memory, Options, Role};
use strongroom::wire::Content;
use strongroom::{Code, Error, policy};
use zeroize::Zeroizing;

/// How to open a store.
#[napi(object)]
pub struct OpenOptions {
    pub key_file: Option<String>,
    pub passphrase: Option<String>,
    pub passphrase_file: Option<String>,
    pub key_command: Option<Vec<String>>,
    pub create: Option<bool>,
    pub policy: Option<String>,
    pub serve: Option<bool>,
}

/// What JavaScript gets of an answer.
#[napi(object)]
pub struct Told {
    pub text: Option<String>,
    pub media_type: Option<String>,
    pub data: Option<Buffer>,
    pub is_error: bool,
    pub tool_use_id: Option<String>,
    pub failure: Option<String>,
    pub failure_code: Option<String>,
}

/// Rust's own report of a panic may quote what it tripped over.
#[module_init]
fn init() {
    panic::set_hook(Box::new(|_| ()));
}

#[napi(js_name = "open")]
pub fn open_store(path: String, options: OpenOptions) -> AsyncTask<Opening> {
    AsyncTask::new(Opening(Some((path, options))))
}

pub struct Opening(Option<(String, OpenOptions)>);

impl Task for Opening {
    type Output = Attached;
    type JsValue = NativeStore;

    fn compute(&mut self) -> napi::Result<Attached> {
        let asked = self.0.take();
        checked(|| {
            let (path, given) = asked.ok_or_else(|| Failure::from(Error::NoPath))?;
            let key = KeyChoice {
                key_file: given.key_file.map(Into::into),
                passphrase: given.passphrase.map(Zeroizing::new),
                passphrase_file: given.passphrase_file.map(Into::into),
                key_command: given.key_command,
            };
            let mut options = Options::new(path)
                .key(key.source()?)
                .create(given.create.unwrap_or(false))
                .serve(given.serve.unwrap_or(true));
            if let Some(policy) = given.policy {
                options = options.policy(policy::load_named_or_path(&policy).map_err(Error::from)?);
            }
            options.open()
        })
    }

    fn resolve(&mut self, _env: Env, attached: Attached) -> napi::Result<NativeStore> {
        Ok(NativeStore { attached })
    }
}

#[napi]
pub struct NativeStore {
    attached: Attached,
}

#[napi]
impl NativeStore {
    #[napi]
    pub fn tenant(
        &self,
        name: String,
        actor: Option<String>,
        session: Option<String>,
    ) -> napi::Result<NativeMemory> {
        let opened = checked(|| {
            self.attached
                .tenant(&name, actor.as_deref(), session.as_deref())
        });
        opened.map(|memory| NativeMemory { memory })
    }

    #[napi(getter)]
    pub fn role(&self) -> &'static str {
        match self.attached.role() {
            Role::Holder { is_serving: true } => "holder",
            Role::Holder { is_serving: false } => "holder, not serving",
            Role::Guest => "guest",
            _ => "detached",
        }
    }

    #[napi(getter)]
    pub fn new_key_file(&self) -> Option<String> {
        let path = self.attached.new_key_file()?;
        Some(path.display().to_string())
    }

    #[napi]
    pub fn close(&self) -> AsyncTask<Closing> {
        AsyncTask::new(Closing(self.attached.clone()))
    }

    /// For the end of the process, when no other thread runs any more.
    #[napi]
    pub fn close_now(&self) -> napi::Result<()> {
        checked(|| self.attached.close())
    }
}

pub struct Closing(Attached);

impl Task for Closing {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<()> {
        checked(|| self.0.close())
    }

    fn resolve(&mut self, _env: Env, (): ()) -> napi::Result<()> {
        Ok(())
    }
}

#[napi]
pub struct NativeMemory {
    memory: Memory,
}

#[napi]
impl NativeMemory {
    #[napi]
    pub fn execute(&self, input: String) -> AsyncTask<Calling> {
        self.call(Work::Execute(input))
    }

    #[napi]
    pub fn put_bytes(&self, path: String, data: Buffer) -> AsyncTask<Calling> {
        self.call(Work::Put(path, data.to_vec()))
    }

    #[napi]
    pub fn clear(&self) -> AsyncTask<Calling> {
        self.call(Work::Clear)
    }

    fn call(&self, work: Work) -> AsyncTask<Calling> {
        AsyncTask::new(Calling {
            memory: self.memory.clone(),
            work,
        })
    }
}

pub struct Calling {
    memory: Memory,
    work: Work,
}

enum Work {
    Execute(String),
    Put(String, Vec<u8>),
    Clear,
}

impl Task for Calling {
    type Output = Answer;
    type JsValue = Told;

    fn compute(&mut self) -> napi::Result<Answer> {
        checked(|| {
            Ok(match &self.work {
                Work::Execute(input) => self.memory.execute(input),
                Work::Put(path, data) => self.memory.put_bytes(path, data),
                Work::Clear => self.memory.clear(),
            })
        })
    }

    fn resolve(&mut self, _env: Env, answer: Answer) -> napi::Result<Told> {
        let (text, image) = match answer.reply.content {
            Content::Text(text) => (Some(text), None),
            Content::Image { media_type, data } => (None, Some((media_type, data))),
        };
        let (media_type, data) = image.unzip();
        let (failure_code, failure) = answer
            .failure
            .map(|failure| (failure.code.as_str().to_owned(), failure.text))
            .unzip();
        Ok(Told {
            text,
            media_type: media_type.map(str::to_owned),
            data: data.map(Buffer::from),
            is_error: answer.reply.is_error,
            tool_use_id: answer.tool_use_id,
            failure,
            failure_code,
        })
    }
}

/// A key file with a new random key, never over a file that exists.
#[napi]
pub fn generate_key_file(path: String) -> napi::Result<()> {
    checked(|| Ok(strongroom::generate_key_file(path)?))
}

/// A panic's own text may quote what it tripped over, so a fixed one stands for all.
fn checked<T>(work: impl FnOnce() -> Result<T, Failure>) -> napi::Result<T> {
    let (code, text) = match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => (failure.code, failure.text),
        Err(_) => (
            Code::Other,
            "an internal check failed; nothing was acknowledged that is not stored".to_owned(),
        ),
    };
    Err(napi::Error::from_reason(format!(
        "{}\n{text}",
        code.as_str()
    )))
}
