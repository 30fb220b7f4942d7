//! The guard itself: its rules, in their order.

use super::error::{GuardError, Problem, Suggestion};
use super::percent::{self, Trouble};
use super::{DEPTH_MAX, MemoryPath, PATH_BYTES_MAX, Quoted, ROOT};
use super::{chars, component, suggest};

/// Checks paths. The only maker of [`MemoryPath`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    portable_names: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard {
    /// A guard with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            portable_names: true,
        }
    }

    /// Whether names must be usable on every file system: no `: * ? " < > |`, no device names of
    /// Windows. Default: on.
    #[must_use]
    pub fn portable_names(mut self, on: bool) -> Self {
        self.portable_names = on;
        self
    }

    /// Checks a path and gives its canonical form. Checking that again gives the same.
    ///
    /// # Errors
    /// Refuses what the rules of this module refuse; the text of the error is meant for the model.
    pub fn check(&self, raw: &str) -> Result<MemoryPath, GuardError> {
        self.judge(raw)
            .map_err(|fault| self.explain(raw, fault, || suggest::near(self, raw)))
    }

    /// The path of an entry of a directory, for names that do not come as part of a path.
    ///
    /// # Errors
    /// As [`Guard::check`]; also if the name is not one component in canonical form.
    pub fn child(&self, directory: &MemoryPath, name: &str) -> Result<MemoryPath, GuardError> {
        let joined = format!("{directory}/{name}");
        let path = self.check(&joined)?;
        if path.as_str() == joined && path.depth() == directory.depth() + 1 {
            return Ok(path);
        }
        let fault = Fault::Problem(Problem::NotOneName);
        Err(self.explain(&joined, fault, || None))
    }

    pub(super) fn portable(&self) -> bool {
        self.portable_names
    }

    /// All rules, without the words.
    pub(super) fn judge(&self, raw: &str) -> Result<MemoryPath, Fault> {
        let (canonical, normalised) = self.pass(raw)?;
        if normalised {
            // NFC can make characters that stood nowhere in the raw text (U+037E becomes `;`), so
            // the result has to pass as well.
            let (again, _) = self.pass(&canonical)?;
            debug_assert_eq!(again, canonical, "NFC is idempotent");
        }
        Ok(MemoryPath::from_canonical(&canonical))
    }

    /// One pass over the rules: the canonical text, and whether NFC changed any of it.
    fn pass(&self, raw: &str) -> Result<(String, bool), Fault> {
        let below_root = check_frame(raw)?;
        // Most paths are plain, and need neither tables nor normalisation.
        if !below_root.bytes().all(is_plain) {
            check_characters(raw)?;
            check_escapes(below_root)?;
        }
        let mut canonical = String::with_capacity(raw.len());
        canonical.push_str(ROOT);
        let mut normalised = false;
        let mut depth = 0;
        for component in below_root.split('/') {
            match component {
                "" | "." => continue,
                ".." => return Err(parent_fault(below_root)),
                _ => depth += 1,
            }
            let name = component::check(component, depth, self.portable_names)?;
            normalised |= name != component;
            canonical.push('/');
            canonical.push_str(&name);
        }
        if depth > DEPTH_MAX {
            return Err(Problem::TooDeep { depth }.into());
        }
        check_length(&canonical)?;
        Ok((canonical, normalised))
    }

    fn explain(
        &self,
        raw: &str,
        fault: Fault,
        suggestion: impl FnOnce() -> Option<MemoryPath>,
    ) -> GuardError {
        let quoted = || Quoted::new(raw);
        match fault {
            Fault::Empty => GuardError::Empty,
            Fault::Outside => GuardError::Outside { raw: quoted() },
            Fault::Escapes => GuardError::Escapes { raw: quoted() },
            Fault::Problem(problem) => GuardError::Refused {
                raw: quoted(),
                problem,
                suggestion: Suggestion(suggestion()),
            },
        }
    }
}

/// Why a path fails, before it is put into words.
#[derive(Debug)]
pub(super) enum Fault {
    Empty,
    Outside,
    Escapes,
    Problem(Problem),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Rules 1 and 2: what follows `/memories`.
fn check_frame(raw: &str) -> Result<&str, Fault> {
    if raw.is_empty() {
        return Err(Fault::Empty);
    }
    check_length(raw)?;
    raw.strip_prefix(ROOT)
        .filter(|below| below.is_empty() || below.starts_with('/'))
        .ok_or(Fault::Outside)
}

fn check_length(path: &str) -> Result<(), Problem> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Problem::PathTooLong { bytes: path.len() });
    }
    Ok(())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/')
}

/// Rule 3.
fn check_characters(raw: &str) -> Result<(), Problem> {
    match chars::first_refused(raw) {
        Some(refused) => Err(Problem::RefusedCharacter {
            character: refused.character,
            position: refused.position,
            class: refused.class,
        }),
        None => Ok(()),
    }
}

/// Rule 4. An escape holds no slash, so each lies in one component.
fn check_escapes(below_root: &str) -> Result<(), Problem> {
    let kept = below_root.split('/').filter(|c| !matches!(*c, "" | "."));
    for (index, text) in kept.enumerate() {
        let component = index + 1;
        percent::check(text).map_err(|trouble| match trouble {
            Trouble::Character(character) => Problem::EscapedCharacter {
                character,
                component,
            },
            Trouble::Surrogate => Problem::EscapedSurrogate { component },
            Trouble::Bytes(byte) => Problem::EscapedBytes { byte, component },
            Trouble::Layers => Problem::EscapedLayers { component },
        })?;
    }
    Ok(())
}

/// What to say of a path with `..` in it: whether it climbs out at any point.
fn parent_fault(below_root: &str) -> Fault {
    let kept = below_root.split('/').filter(|c| !matches!(*c, "" | "."));
    let mut depth = 0_usize;
    let mut first = None;
    for (index, component) in kept.enumerate() {
        if component != ".." {
            depth += 1;
            continue;
        }
        first = first.or(Some(index + 1));
        match depth.checked_sub(1) {
            Some(above) => depth = above,
            None => return Fault::Escapes,
        }
    }
    let component = first.unwrap_or_default();
    Fault::Problem(Problem::ParentComponent { component })
}
