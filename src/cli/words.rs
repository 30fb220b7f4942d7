//! Splits a key command into a program and its arguments. No shell, no expansion.

/// Words are separated by white space; `'…'` and `"…"` keep what is between them as it is and
/// may stand inside a word. A backslash means nothing special. `None` for an open quote.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_white_space_and_quotes_keep_it() {
        for (text, words) in [
            ("", &[][..]),
            ("  \t", &[]),
            ("pass show strongroom", &["pass", "show", "strongroom"]),
            (" a  b\n", &["a", "b"]),
            ("a 'b c' \"d 'e'\"", &["a", "b c", "d 'e'"]),
            ("--x='a b'c", &["--x=a bc"]),
            ("a '' \"\"", &["a", "", ""]),
            (r"C:\dir $HOME *", &[r"C:\dir", "$HOME", "*"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text:?}");
        }
    }

    #[test]
    fn an_open_quote_is_no_command() {
        assert_eq!(split("a 'b"), None);
        assert_eq!(split("a \"b'"), None);
    }
}
