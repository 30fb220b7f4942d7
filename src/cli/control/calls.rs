//! Tool calls of another process's handles: what goes over the socket, and how the holder
//! carries them out.
//!
//! Calls come one after the other, each as a line of JSON ([`Call`]), and each is answered by
//! one ([`Done`]) before the next is read. A connection that ends with an exit frame says that
//! what came without an answer was not carried out; one that just ends says nothing.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use lru::LruCache;
use serde::{Deserialize, Serialize};
use strongroom::{Answer, Code, Error, Tenant, Vault, wire};

use super::super::desk::{self, Desk};
use super::frame::Kind;

/// The request that asks for a connection which takes calls.
pub const REQUEST: &[u8] = br#"{"calls":1}"#;

/// What the holder sends once it takes calls.
pub const READY: &[u8] = b"ready\n";

/// The longest call in bytes, its LF included: more than any policy's files need in JSON.
pub const BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// How many tenants one connection keeps at hand.
const TENANTS_MAX: std::num::NonZeroUsize = std::num::NonZeroUsize::new(32).unwrap();

/// One call.
#[derive(Serialize, Deserialize)]
pub struct Call<'a> {
    /// Whose memory.
    pub tenant: Cow<'a, str>,
    /// Who acts, for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, str>>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Cow<'a, str>>,
    /// What is to be done.
    pub work: Cow<'a, Work<'a>>,
}

/// What a call asks for.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work<'a> {
    /// A tool input, or a whole `tool_use` block.
    Execute(Cow<'a, str>),
    /// Bytes that the host brings.
    Put {
        /// Where they go.
        path: Cow<'a, str>,
        /// The bytes, in base64 on the wire.
        #[serde(with = "base64")]
        data: Cow<'a, [u8]>,
    },
    /// Everything below `/memories` is to go.
    Clear,
}

/// The answer to one call.
#[derive(Deserialize)]
pub struct Done {
    /// The `tool_result` block.
    pub result: serde_json::Value,
    /// What the host should know.
    #[serde(default)]
    pub failure: Option<Told>,
}

/// A failure on its way to another process.
#[derive(Serialize, Deserialize)]
pub struct Told {
    /// [`Code::as_str`].
    pub code: String,
    /// The error's text.
    pub text: String,
}

/// Carries calls out until the other process ends, or this one comes to its end.
pub fn serve(desk: &Desk) -> io::Result<()> {
    desk.send(Kind::Out, READY)?;
    let mut input = desk::input()?;
    let mut tenants = LruCache::new(TENANTS_MAX);
    while let Some(call) = read(&mut input)? {
        let answer = {
            // A close in this process waits for what runs.
            let busy = desk.gate.busy();
            match &*busy {
                Some(vault) => answer(vault, &mut tenants, &call),
                None => return Ok(()),
            }
        };
        let mut line = done(&answer)?;
        line.push(b'\n');
        desk.send(Kind::Out, &line)?;
    }
    Ok(())
}

/// The next call. `None` at the end, and for a line that did not arrive as a whole.
fn read(input: &mut dyn BufRead) -> io::Result<Option<Call<'static>>> {
    let mut line = Vec::new();
    input.take(BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&line).ok())
}

fn answer(vault: &Vault, tenants: &mut LruCache<String, Tenant>, call: &Call<'_>) -> Answer {
    let opened = match tenants.get(call.tenant.as_ref()) {
        Some(tenant) => Ok(tenant.clone()),
        None => vault.tenant(&call.tenant).inspect(|tenant| {
            tenants.put(call.tenant.clone().into_owned(), tenant.clone());
        }),
    };
    match opened {
        Ok(tenant) => call.work.run(&acting(
            &tenant,
            call.actor.as_deref(),
            call.session.as_deref(),
        )),
        Err(error) => Answer::failed(None, error),
    }
}

/// The tenant with whoever acts.
pub fn acting(tenant: &Tenant, actor: Option<&str>, session: Option<&str>) -> Tenant {
    match actor {
        Some(actor) => tenant.as_actor(actor, session),
        None => tenant.clone(),
    }
}

impl Work<'_> {
    /// Carries it out.
    pub fn run(&self, tenant: &Tenant) -> Answer {
        let replied = match self {
            Self::Execute(input) => return tenant.execute(input),
            Self::Put { path, data } => tenant.put_bytes(path, data),
            Self::Clear => tenant.clear(),
        };
        match replied {
            Ok(reply) => Answer::replied(None, reply),
            Err(error) => Answer::failed(None, error),
        }
    }

    /// Whether doing it twice is the same as doing it once: it changes nothing.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Execute(input) => matches!(
                wire::parse(input.as_bytes()).command,
                Ok(wire::Command::View { .. }) | Err(_)
            ),
            Self::Put { .. } | Self::Clear => false,
        }
    }
}

/// [`Done`] as a line of JSON without its LF.
fn done(answer: &Answer) -> io::Result<Vec<u8>> {
    let failure = answer.failure.as_ref().map(Told::from);
    let failure = serde_json::to_string(&failure)?;
    Ok(format!(r#"{{"result":{},"failure":{failure}}}"#, answer.to_json()).into_bytes())
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code().as_str().to_owned(),
            text: error.to_string(),
        }
    }
}

impl Told {
    /// The code, or the one for all others where another version knows more of them.
    pub fn code(&self) -> Code {
        [
            Code::Usage,
            Code::NotFound,
            Code::Integrity,
            Code::Locked,
            Code::Key,
            Code::NoSpace,
        ]
        .into_iter()
        .find(|code| code.as_str() == self.code)
        .unwrap_or(Code::Other)
    }
}

mod base64 {
    use std::borrow::Cow;

    use base64ct::{Base64, Encoding};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&Base64::encode_string(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'static, [u8]>, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let bytes = Base64::decode_vec(&text).map_err(|_| D::Error::custom("no base64"))?;
        Ok(Cow::Owned(bytes))
    }
}
