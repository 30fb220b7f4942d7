//! Looks for a name near a refused one that would pass.

use unicode_normalization::UnicodeNormalization;

use super::chars::{self, CharacterClass, is_mark, is_stacking_mark};
use super::component::{device, is_reserved};
use super::{COMBINING_RUN_MAX, Guard, MemoryPath, PATH_BYTES_MAX, ROOT, percent};

/// A path near `raw` that the guard lets pass; never the root, and never one from which a whole
/// component had to go.
pub(super) fn near(guard: &Guard, raw: &str) -> Option<MemoryPath> {
    if raw.len() > PATH_BYTES_MAX {
        return None;
    }
    let below_root = raw.strip_prefix(ROOT)?.replace('\\', "/");
    let mut names = Vec::new();
    for component in below_root.split('/') {
        match component {
            "" | "." => {}
            // What the writer of `a/../b` meant.
            ".." => _ = names.pop()?,
            _ => names.push(clean(component, guard.portable())?),
        }
    }
    let path = guard.judge(&format!("{ROOT}/{}", names.join("/"))).ok()?;
    (!path.is_root()).then_some(path)
}

fn clean(component: &str, portable: bool) -> Option<String> {
    let allowed = replace_refused(component, portable);
    let literal = match percent::check(&allowed) {
        Ok(()) => allowed,
        Err(_) => percent::without_escapes(&allowed),
    };
    let short = cut_marks(&literal);
    let trimmed = short
        .trim_start_matches(|c| c == ' ' || is_mark(c))
        .trim_end_matches([' ', '.']);
    if trimmed.is_empty() {
        return None;
    }
    Some(match device(trimmed) {
        Some(device) if portable => format!("{device}_{}", trimmed.strip_prefix(device)?),
        _ => trimmed.to_owned(),
    })
}

fn replace_refused(component: &str, portable: bool) -> String {
    let mut replaced = String::with_capacity(component.len());
    let mut previous = None;
    let mut rest = component.chars().peekable();
    while let Some(character) = rest.next() {
        match chars::class(previous, character, rest.peek().copied()) {
            None if portable && is_reserved(character) => replaced.push('-'),
            None => replaced.push(character),
            Some(CharacterClass::Space | CharacterClass::LineSeparator) => replaced.push(' '),
            Some(CharacterClass::Control) if character.is_ascii_whitespace() => replaced.push(' '),
            Some(CharacterClass::LookAlike(ascii @ ('.' | '%'))) => replaced.push(ascii),
            Some(CharacterClass::LookAlike(_)) => replaced.push('-'),
            Some(_) => {}
        }
        previous = Some(character);
    }
    replaced
}

fn cut_marks(text: &str) -> String {
    let mut run = 0;
    text.nfd()
        .filter(|character| {
            run = if is_stacking_mark(*character) {
                run + 1
            } else {
                0
            };
            run <= COMBINING_RUN_MAX
        })
        .nfc()
        .collect()
}
