//! Edits and views as slowly and plainly as they can be written, to compare with.

/// What a replacement comes to: the text, and the first and last line that the new text stands in.
pub type Replaced = (String, usize, usize);

/// The lines of a text with their ends.
#[must_use]
pub fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for c in text.chars() {
        lines.last_mut().expect("there is always one").push(c);
        if c == '\n' {
            lines.push(String::new());
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The number of the line in which the byte at this place stands.
fn line_of(text: &str, place: usize) -> usize {
    text.bytes()
        .take(place)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

/// Puts `new` in the place of the one `old`. Otherwise the lines of all hits, each once.
///
/// # Errors
/// The lines, none if there is no hit.
pub fn str_replace(text: &str, old: &str, new: &str) -> Result<Replaced, Vec<usize>> {
    let hits: Vec<usize> = (0..text.len())
        .filter(|at| text.as_bytes()[*at..].starts_with(old.as_bytes()))
        .collect();
    let [hit] = hits[..] else {
        let mut lines: Vec<usize> = hits.iter().map(|hit| line_of(text, *hit)).collect();
        lines.dedup();
        return Err(lines);
    };
    let edited = format!("{}{new}{}", &text[..hit], &text[hit + old.len()..]);
    let count = lines(&edited).len();
    let (first, last) = if new.is_empty() {
        // Where something was taken out; past the end it is the last line that is left.
        let line = line_of(&edited, hit).min(count);
        (line, line)
    } else {
        (line_of(&edited, hit), line_of(&edited, hit + new.len() - 1))
    };
    Ok((edited, first, last))
}

/// Puts whole lines after line `line`; `None` when there is no such line.
#[must_use]
pub fn insert(text: &str, line: i64, new: &str) -> Option<String> {
    let mut lines = lines(text);
    let at = usize::try_from(line).ok().filter(|at| *at <= lines.len())?;
    let (body, end) = match new {
        _ if new.ends_with("\r\n") => (&new[..new.len() - 2], "\r\n"),
        _ if new.ends_with('\n') => (&new[..new.len() - 1], "\n"),
        _ => (new, "\n"),
    };
    let is_open = at == lines.len() && lines.last().is_some_and(|last| !last.ends_with('\n'));
    if is_open {
        // The line before lends its missing end to the last new one, unless that is blank.
        lines[at - 1].push_str(end);
        lines.push(body.to_owned());
        if body.is_empty() || body.ends_with('\n') {
            lines.push(end.to_owned());
        }
    } else {
        lines.insert(at, format!("{body}{end}"));
    }
    Some(lines.concat())
}

/// The rows from `first` to `last` (1-based) of a numbered view under a cap of characters,
/// and the note that says what the cap left out.
#[must_use]
pub fn numbered(text: &str, first: usize, last: usize, chars_max: usize) -> Vec<String> {
    let lines = lines(text);
    let mut rows = Vec::new();
    let mut chars = 0;
    for number in first..=last {
        let line = &lines[number - 1];
        chars += line.chars().count();
        if chars > chars_max && number > first {
            rows.push(rest(number, last, lines.len(), "lines"));
            break;
        }
        rows.push(format!("{number:>6}\t{}", line.trim_end_matches('\n')));
    }
    rows
}

/// The note on what a cap left out.
#[must_use]
pub fn rest(next: usize, last: usize, total: usize, unit: &str) -> String {
    format!(
        "Note: {unit} {next}-{last} of {total} are not shown. Continue with view_range [{next}, {last}]."
    )
}

/// What a range comes to: first, last, and the note that its end was cut. `None`: it does not fit.
#[must_use]
pub fn fit(
    range: Option<(i64, i64)>,
    total: usize,
    unit: &str,
) -> Option<(usize, usize, Vec<String>)> {
    let Some((start, end)) = range else {
        return Some((1, total, Vec::new()));
    };
    let count = i64::try_from(total).ok()?;
    if start < 1 || start > count || (end < start && end != -1) {
        return None;
    }
    let last = if end == -1 || end > count { count } else { end };
    let note = (end > count).then(|| {
        format!("Note: view_range was cut to [{start}, {count}]; the last {unit} is {count}.")
    });
    Some((start as usize, last as usize, note.into_iter().collect()))
}

/// The whole text of a view of a file; `None` where the range does not fit.
#[must_use]
pub fn view(path: &str, text: &str, range: Option<(i64, i64)>, chars_max: usize) -> Option<String> {
    let total = lines(text).len();
    let (first, last, mut notes) = fit(range, total, "line")?;
    let mut rows = vec![format!("Here's the content of {path} with line numbers:")];
    let mut body = numbered(text, first, last, chars_max);
    let cut = body.pop_if(|row| row.starts_with("Note: "));
    rows.extend(body);
    if total == 0 {
        notes.push("Note: the file is empty (0 lines).".to_owned());
    }
    rows.extend(notes);
    rows.extend(cut);
    Some(rows.join("\n"))
}

/// A size as a listing shows it: half up, with the next unit from 1,024.0 on.
#[must_use]
pub fn size(bytes: u64) -> String {
    if bytes < 1_024 {
        return format!("{bytes}B");
    }
    let units = [('K', 1_u128 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    let tenths = |unit: u128| (u128::from(bytes) * 20 + unit) / (2 * unit);
    let (name, unit) = units
        .into_iter()
        .find(|(name, unit)| tenths(*unit) < 10_240 || *name == 'G')
        .expect("the last one takes all");
    let tenths = tenths(unit);
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}
