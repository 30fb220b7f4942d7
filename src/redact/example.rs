//! Templates for example secrets, so that no file of the project holds anything that looks like a live one.
//!
//! `${A36}` stands for 36 letters and digits, and so on by its first letter; `${=text}` stands for `text`
//! itself, to cut a literal in two. The same template and seed give the same text.

/// Expands `template` with characters drawn from `seed`.
///
/// | code | characters |
/// |---|---|
/// | `A` | letters and digits |
/// | `a` | lower-case letters and digits |
/// | `U` | upper-case letters and digits |
/// | `l`, `M` | lower-case, upper-case letters |
/// | `h`, `H` | lower-case, upper-case hexadecimal |
/// | `d` | digits |
/// | `W` | letters, digits, `_` and `-` |
/// | `B` | base64 (`+` and `/` included) |
/// | `S` | base32: upper-case letters and 2 to 7 |
/// | `b` | base58: no 0, O, I, l |
/// | `u` | a UUID, whatever number follows |
///
/// An unknown code is left as it stands.
#[must_use]
pub fn expand(template: &str, seed: u64) -> String {
    let mut draw = Draw(seed ^ hash(template));
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((head, tail)) = rest.split_once("${") {
        out.push_str(head);
        let Some((code, after)) = tail.split_once('}') else {
            out.push_str("${");
            rest = tail;
            continue;
        };
        if !draw.code(code, &mut out) {
            out.push_str("${");
            out.push_str(code);
            out.push('}');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// SplitMix64, a small seeded generator (Steele, Lea, Flood 2014); for tests, never for keys.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn from(&mut self, set: &[u8], n: usize, out: &mut String) {
        let start = out.len();
        for _ in 0..n {
            let i = (self.next() >> 33) as usize % set.len().max(1);
            out.push(char::from(set.get(i).copied().unwrap_or(b'a')));
        }
        // A long random value has a digit and letters of each case the set has; a drawn one should too.
        let fresh = out.get(start..).unwrap_or("");
        let has = |test: fn(&u8) -> bool| fresh.bytes().any(|b| test(&b)) || !set.iter().any(test);
        if n >= 8
            && !(has(u8::is_ascii_digit)
                && has(u8::is_ascii_lowercase)
                && has(u8::is_ascii_uppercase))
        {
            out.truncate(start);
            self.from(set, n, out);
        }
    }

    fn code(&mut self, code: &str, out: &mut String) -> bool {
        if let Some(text) = code.strip_prefix('=') {
            out.push_str(text);
            return true;
        }
        let mut chars = code.chars();
        let Some(kind) = chars.next() else {
            return false;
        };
        let count = chars.as_str();
        if kind == 'u' && (count.is_empty() || count.parse::<usize>().is_ok()) {
            for (i, n) in [8, 4, 4, 4, 12].into_iter().enumerate() {
                if i > 0 {
                    out.push('-');
                }
                for _ in 0..n {
                    let nibble = (self.next() >> 60) as u32;
                    out.push(char::from_digit(nibble, 16).unwrap_or('0'));
                }
            }
            return true;
        }
        let Ok(n) = count.parse::<usize>() else {
            return false;
        };
        let set: &[u8] = match kind {
            'A' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            'a' => b"abcdefghijklmnopqrstuvwxyz0123456789",
            'U' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            'l' => b"abcdefghijklmnopqrstuvwxyz",
            'M' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            'h' => b"0123456789abcdef",
            'H' => b"0123456789ABCDEF",
            'd' => b"0123456789",
            'W' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
            'B' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            'b' => b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
            'S' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            _ => return false,
        };
        if n > 100_000 {
            return false;
        }
        self.from(set, n, out);
        // A token that ends in `-` or `_` would read as punctuation.
        if matches!(kind, 'W' | 'B') && out.ends_with(['-', '_', '+', '/']) {
            out.pop();
            out.push('7');
        }
        true
    }
}

fn hash(text: &str) -> u64 {
    // FNV-1a: templates draw different characters from one seed.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_expands_the_same_way_each_time() {
        let one = expand("ghp_${A36} ${=ab}c ${u}", 7);
        assert_eq!(one, expand("ghp_${A36} ${=ab}c ${u}", 7));
        assert_ne!(one, expand("ghp_${A36} ${=ab}c ${u}", 8));
        assert_eq!(one.len(), 4 + 36 + 1 + 3 + 1 + 36);
        assert_eq!(expand("${HOME} ${", 1), "${HOME} ${");
    }
}
