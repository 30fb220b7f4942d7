//! The arithmetic of check digits, as each number's owner defines it.

pub(super) fn at(d: &[u32], i: usize) -> u32 {
    d.get(i).copied().unwrap_or(0)
}

pub(super) fn number(d: &[u32], from: usize, to: usize) -> u64 {
    d.iter()
        .take(to)
        .skip(from)
        .fold(0, |n, &x| n * 10 + u64::from(x))
}

pub(super) fn weighted(d: &[u32], weights: &[u32]) -> u32 {
    d.iter().zip(weights).map(|(a, b)| a * b).sum()
}

pub(super) fn luhn(d: &[u32]) -> bool {
    let sum: u32 = d
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &x)| {
            if i % 2 == 0 {
                x
            } else if x > 4 {
                2 * x - 9
            } else {
                2 * x
            }
        })
        .sum();
    d.len() > 1 && sum.is_multiple_of(10) && d.iter().any(|&x| x != 0)
}

/// Brand ranges: Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Maestro, RuPay, Mir.
pub(super) fn pan(d: &[u32]) -> bool {
    let (four, six) = (number(d, 0, 4), number(d, 0, 6));
    let fits = match d.len() {
        13 | 19 if four / 1000 == 4 => true,
        15 => matches!(four / 100, 34 | 37),
        14 => matches!(four / 10, 300..=305 | 309) || matches!(four / 100, 36 | 38 | 39),
        16 => {
            four / 1000 == 4
                || matches!(four, 2221..=2720 | 5100..=5599 | 3528..=3589 | 6011 | 2200..=2204 | 6521 | 6522)
                || matches!(four / 10, 644..=649)
                || matches!(
                    four / 100,
                    62 | 65 | 60 | 81 | 82 | 36 | 50 | 56..=58 | 63 | 67
                )
                || matches!(six, 622_126..=622_925)
        }
        12 | 17..=19 => matches!(four / 100, 50 | 56..=58 | 62 | 63 | 67),
        _ => false,
    };
    fits && luhn(d)
}

pub(super) fn iban(s: &[u8]) -> bool {
    #[rustfmt::skip]
    const LENGTHS: &[(&[u8; 2], usize)] = &[
        (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16),
        (b"BG", 22), (b"BH", 22), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22), (b"CY", 28),
        (b"CZ", 24), (b"DE", 22), (b"DK", 18), (b"DO", 28), (b"EE", 20), (b"EG", 29), (b"ES", 24),
        (b"FI", 18), (b"FO", 18), (b"FR", 27), (b"GB", 22), (b"GE", 22), (b"GI", 23), (b"GL", 18),
        (b"GR", 27), (b"GT", 28), (b"HR", 21), (b"HU", 28), (b"IE", 22), (b"IL", 23), (b"IQ", 23),
        (b"IS", 26), (b"IT", 27), (b"JO", 30), (b"KW", 30), (b"KZ", 20), (b"LB", 28), (b"LC", 32),
        (b"LI", 21), (b"LT", 20), (b"LU", 20), (b"LV", 21), (b"LY", 25), (b"MC", 27), (b"MD", 24),
        (b"ME", 22), (b"MK", 19), (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"NL", 18), (b"NO", 15),
        (b"PK", 24), (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22),
        (b"SA", 24), (b"SC", 31), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27), (b"ST", 25),
        (b"SV", 28), (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24),
        (b"XK", 20),
    ];
    let known = LENGTHS
        .iter()
        .any(|(c, n)| s.starts_with(*c) && s.len() == *n);
    let rest = s.iter().skip(4).chain(s.iter().take(4));
    let sum = rest.fold(0u32, |n, &b| {
        if b.is_ascii_digit() {
            (n * 10 + u32::from(b - b'0')) % 97
        } else {
            (n * 100 + u32::from(b) - 55) % 97
        }
    });
    known && sum == 1
}

pub(super) fn verhoeff(d: &[u32]) -> bool {
    const D: [[u32; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const P: [[u32; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    let pick = |table: &[[u32; 10]], i: usize, j: u32| {
        table
            .get(i)
            .and_then(|row| row.get(j as usize))
            .copied()
            .unwrap_or(0)
    };
    d.iter()
        .rev()
        .enumerate()
        .fold(0, |c, (i, &x)| pick(&D, c as usize, pick(&P, i % 8, x)))
        == 0
}

pub(super) fn ssn(d: &[u32]) -> bool {
    let (area, group, serial) = (number(d, 0, 3), number(d, 3, 5), number(d, 5, 9));
    d.len() == 9 && !matches!(area, 0 | 666 | 900..=999) && group != 0 && serial != 0
}

pub(super) fn mod11_10(d: &[u32]) -> bool {
    let Some((check, body)) = d.split_last() else {
        return false;
    };
    let p = body.iter().fold(10, |p, &x| {
        let s = (x + p) % 10;
        (if s == 0 { 10 } else { s }) * 2 % 11
    });
    (11 - p) % 10 == *check
}

/// A Steuer-ID repeats one digit two or three times among its first ten.
pub(super) fn repeats(d: &[u32]) -> bool {
    let count = |x: u32| d.iter().take(10).filter(|&&y| y == x).count();
    let most = (0..10).map(count).max().unwrap_or(0);
    matches!(most, 2 | 3)
}

pub(super) fn dni(s: &[u8]) -> bool {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let Some((check, body)) = s.split_last() else {
        return false;
    };
    let value = body
        .iter()
        .enumerate()
        .try_fold(0u64, |n, (i, &b)| match b {
            b'0'..=b'9' => Some(n * 10 + u64::from(b - b'0')),
            b'X'..=b'Z' if i == 0 => Some(u64::from(b - b'X')),
            _ => None,
        });
    body.len() == 8 && value.is_some_and(|v| LETTERS.get((v % 23) as usize) == Some(check))
}

pub(super) fn nir(s: &[u8]) -> bool {
    if s.len() != 15 {
        return false;
    }
    let text: String = s.iter().map(|&b| char::from(b)).collect();
    let (text, less) = if text.contains("2A") {
        (text.replace("2A", "19"), 0)
    } else {
        (text.replace("2B", "18"), 0)
    };
    let (Some(body), Some(key)) = (text.get(..13), text.get(13..)) else {
        return false;
    };
    match (body.parse::<u64>(), key.parse::<u64>()) {
        (Ok(n), Ok(key)) => 97 - (n - less) % 97 == key && n > 1_000_000_000_000,
        _ => false,
    }
}

pub(super) fn codice_fiscale(s: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let value = |b: u8| {
        u32::from(if b.is_ascii_digit() {
            b - b'0'
        } else {
            b.wrapping_sub(b'A')
        })
    };
    let sum: u32 = s
        .iter()
        .take(15)
        .enumerate()
        .map(|(i, &b)| {
            if i % 2 == 0 {
                at(&ODD, value(b) as usize)
            } else {
                value(b)
            }
        })
        .sum();
    s.len() == 16
        && s.get(15)
            .is_some_and(|&c| u32::from(c.wrapping_sub(b'A')) == sum % 26)
}

pub(super) fn hetu(s: &[u8]) -> bool {
    const CHECK: &[u8; 31] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let (Some(check), true) = (s.last(), s.len() == 10 || s.len() == 11) else {
        return false;
    };
    let digits: Vec<u32> = s
        .iter()
        .take(s.len() - 1)
        .filter(|b| b.is_ascii_digit())
        .map(|b| u32::from(b - b'0'))
        .collect();
    digits.len() == 9
        && CHECK.get((number(&digits, 0, 9) % 31) as usize) == Some(check)
        && (1..=31).contains(&number(&digits, 0, 2))
        && (1..=12).contains(&number(&digits, 2, 4))
}

pub(super) fn cpf(d: &[u32]) -> bool {
    let digit = |weights: &[u32]| match weighted(d, weights) * 10 % 11 {
        10 => 0,
        x => x,
    };
    d.len() == 11
        && d.iter().any(|x| *x != at(d, 0))
        && digit(&[10, 9, 8, 7, 6, 5, 4, 3, 2]) == at(d, 9)
        && digit(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) == at(d, 10)
}

pub(super) fn nric(s: &[u8], d: &[u32]) -> bool {
    if s.len() != 9 || d.len() != 7 {
        return false;
    }
    let sum = weighted(d, &[2, 7, 6, 5, 4, 3, 2]);
    let (table, offset): (&[u8; 11], u32) = match s.first() {
        Some(b'S') => (b"JZIHGFEDCBA", 0),
        Some(b'T') => (b"JZIHGFEDCBA", 4),
        Some(b'F') => (b"XWUTRQPNMLK", 0),
        Some(b'G') => (b"XWUTRQPNMLK", 4),
        Some(b'M') => (b"KLJNPQRTUWX", 3),
        _ => return false,
    };
    let i = ((sum + offset) % 11) as usize;
    let i = if s.first() == Some(&b'M') { 10 - i } else { i };
    table.get(i) == s.get(8)
}

pub(super) fn china(s: &[u8]) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let d: Vec<u32> = s
        .iter()
        .take(17)
        .filter(|b| b.is_ascii_digit())
        .map(|b| u32::from(b - b'0'))
        .collect();
    s.len() == 18
        && d.len() == 17
        && b"10X98765432".get((weighted(&d, &WEIGHTS) % 11) as usize) == s.get(17)
        && matches!(number(&d, 6, 8), 18..=20)
}

pub(super) fn pps(s: &[u8], d: &[u32]) -> bool {
    if d.len() != 7 || !(8..=9).contains(&s.len()) {
        return false;
    }
    let second = s
        .get(8)
        .filter(|b| **b != b'W')
        .map_or(0, |b| u32::from(b.wrapping_sub(b'A')) + 1);
    let sum = (weighted(d, &[8, 7, 6, 5, 4, 3, 2]) + 9 * second) % 23;
    let letter = if sum == 0 {
        b'W'
    } else {
        b'A' + u8::try_from(sum).unwrap_or(1) - 1
    };
    s.get(7) == Some(&letter)
}

pub(super) fn isikukood(d: &[u32]) -> bool {
    let first = weighted(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    let second = weighted(d, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11;
    let check = if first < 10 { first } else { second % 10 };
    check == at(d, 10) && (1..=8).contains(&at(d, 0))
}

/// `2024-01-15`, `15.01.2024` and so on.
pub(super) fn is_date(value: &[u8]) -> bool {
    let parts: Vec<&[u8]> = value
        .split(|b| !b.is_ascii_digit())
        .filter(|p| !p.is_empty())
        .collect();
    let part = |i: usize| {
        parts.get(i).map_or((0, 0), |p| {
            (
                p.len(),
                p.iter().fold(0u32, |n, b| {
                    n.saturating_mul(10).saturating_add(u32::from(b - b'0'))
                }),
            )
        })
    };
    let year = |(len, n): (usize, u32)| len == 4 && (1900..=2100).contains(&n);
    let small = |(len, n): (usize, u32)| len <= 2 && (1..=31).contains(&n);
    parts.len() >= 3
        && (year(part(0)) && small(part(1)) && small(part(2))
            || small(part(0)) && small(part(1)) && year(part(2)))
}

pub(super) fn is_version(value: &[u8]) -> bool {
    let dots = value.iter().filter(|&&b| b == b'.').count();
    let digits_only = value.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    (dots >= 2 && value.split(|&b| b == b'.').any(|p| p.len() < 2)) || (dots == 1 && digits_only)
}

pub(super) fn email(value: &[u8]) -> bool {
    let mut parts = value.rsplitn(2, |&b| b == b'@');
    let (domain, local) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
    let end = domain
        .rsplit(|&b| b == b'.')
        .next()
        .unwrap_or(&[])
        .to_ascii_lowercase();
    let file = [
        "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "css", "json", "html", "local",
    ]
    .iter()
    .any(|e| end == e.as_bytes());
    !file
        && !local.is_empty()
        && !matches!(local, b"git" | b"hg" | b"svn")
        && !local.starts_with(b".")
        && !local.ends_with(b".")
}

pub(super) fn vin(s: &[u8]) -> bool {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    let value = |b: &u8| match b {
        b'0'..=b'9' => u32::from(b - b'0'),
        b'A'..=b'H' => u32::from(b - b'A') + 1,
        b'J'..=b'N' => u32::from(b - b'J') + 1,
        b'P' => 7,
        b'R' => 9,
        b'S'..=b'Z' => u32::from(b - b'S') + 2,
        _ => 0,
    };
    let sum: u32 = s
        .iter()
        .map(value)
        .zip(WEIGHTS)
        .map(|(v, w)| v * w)
        .sum::<u32>()
        % 11;
    let check = if sum == 10 {
        b'X'
    } else {
        b'0' + u8::try_from(sum).unwrap_or(0)
    };
    s.len() == 17 && s.get(8) == Some(&check) && s.iter().any(u8::is_ascii_alphabetic)
}

pub(super) fn ipv4(value: &[u8]) -> bool {
    let Some(ip) = str::from_utf8(value)
        .ok()
        .and_then(|s| s.parse::<std::net::Ipv4Addr>().ok())
    else {
        return false;
    };
    let first = ip.octets().first().copied().unwrap_or(0);
    !ip.is_loopback()
        && !ip.is_unspecified()
        && !ip.is_broadcast()
        && first != 255
        && first > 0
        && !ip.is_multicast()
        && !value.ends_with(b".0.0")
        && ip.octets().iter().any(|&o| o > 9)
}

pub(super) fn ipv6(value: &[u8]) -> bool {
    let Some(ip) = str::from_utf8(value)
        .ok()
        .and_then(|s| s.parse::<std::net::Ipv6Addr>().ok())
    else {
        return false;
    };
    !ip.is_loopback() && !ip.is_unspecified() && value.len() > 6
}
