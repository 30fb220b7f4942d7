//! Personal, card and health data that is planted, and numbers that are none.

use super::{Rng, Sample, surround};

fn digits(rng: &mut Rng, n: usize) -> Vec<u32> {
    (0..n)
        .map(|i| {
            if i == 0 {
                1 + rng.below(9) as u32
            } else {
                rng.below(10) as u32
            }
        })
        .collect()
}

fn text(d: &[u32]) -> String {
    d.iter()
        .map(|x| char::from_digit(*x, 10).unwrap())
        .collect()
}

fn luhn(mut body: Vec<u32>) -> Vec<u32> {
    let sum: u32 = body
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &x)| {
            if i % 2 == 1 {
                x
            } else if x > 4 {
                2 * x - 9
            } else {
                2 * x
            }
        })
        .sum();
    body.push((10 - sum % 10) % 10);
    body
}

fn card(rng: &mut Rng) -> String {
    let (prefix, len) = *rng.pick(&[
        ("4", 16),
        ("51", 16),
        ("55", 16),
        ("2221", 16),
        ("34", 15),
        ("37", 15),
        ("6011", 16),
        ("3528", 16),
        ("36", 14),
        ("62", 16),
    ]);
    let mut body: Vec<u32> = prefix.chars().map(|c| c.to_digit(10).unwrap()).collect();
    while body.len() < len - 1 {
        body.push(rng.below(10) as u32);
    }
    let all = text(&luhn(body));
    let sep = *rng.pick(&["", " ", "-"]);
    let cuts: &[usize] = match len {
        16 => &[4, 8, 12],
        15 => &[4, 10],
        _ => &[4, 10],
    };
    all.char_indices()
        .map(|(i, c)| {
            if cuts.contains(&i) {
                format!("{sep}{c}")
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn iban(rng: &mut Rng) -> String {
    let (country, len) = *rng.pick(&[
        ("DE", 22),
        ("FR", 27),
        ("ES", 24),
        ("NL", 18),
        ("GB", 22),
        ("AT", 20),
        ("CH", 21),
        ("PL", 28),
    ]);
    let mut bban = text(&digits(rng, len - 4));
    if country == "GB" || country == "NL" {
        bban.replace_range(0..4, "ABNA");
    }
    let value = |s: &str| {
        s.chars().fold(0u32, |n, c| {
            let v = c.to_digit(36).unwrap();
            if v < 10 {
                (n * 10 + v) % 97
            } else {
                (n * 100 + v) % 97
            }
        })
    };
    let check = 98 - value(&format!("{bban}{country}00"));
    let all = format!("{country}{check:02}{bban}");
    if rng.below(2) == 0 {
        all
    } else {
        all.as_bytes()
            .chunks(4)
            .map(|c| str::from_utf8(c).unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn npi(rng: &mut Rng) -> String {
    let mut body = vec![8, 0, 8, 4, 0, 1];
    body.extend((0..8).map(|_| rng.below(10) as u32));
    text(&luhn(body)[5..])
}

fn ssn(rng: &mut Rng) -> String {
    format!(
        "{:03}-{:02}-{:04}",
        [123, 219, 457, 518, 601, 733][rng.below(6)],
        1 + rng.below(98),
        1 + rng.below(9998)
    )
}

fn dni(rng: &mut Rng) -> String {
    let n = 10_000_000 + rng.below(89_999_999);
    format!("{n}{}", char::from(b"TRWAGMYFPDXBNJZSQVHLCKE"[n % 23]))
}

fn bsn(rng: &mut Rng) -> String {
    loop {
        let d = digits(rng, 9);
        let sum: u32 = d
            .iter()
            .zip([9, 8, 7, 6, 5, 4, 3, 2])
            .map(|(a, b)| a * b)
            .sum::<u32>()
            + 10 * d[8];
        if sum.is_multiple_of(11) {
            return text(&d);
        }
    }
}

/// Values with check digits.
pub fn checked(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let (class, value, forms): (&'static str, String, &[&str]) = match i % 7 {
                0 => (
                    "card",
                    card(rng),
                    &[
                        "card {}",
                        "paid with {}.",
                        "\"pan\": \"{}\"",
                        "{} exp soon",
                        "charge {} please",
                        "| {} |",
                    ],
                ),
                1 => (
                    "iban",
                    iban(rng),
                    &["IBAN {}", "transfer to {} today", "account: {},", "{}"],
                ),
                2 => (
                    "sin",
                    text(&luhn(digits(rng, 8))),
                    &["SIN {}", "her SIN is {}.", "social insurance number: {}"],
                ),
                3 => ("npi", npi(rng), &["NPI {}", "provider NPI: {}", "npi={}"]),
                4 => ("dni", dni(rng), &["DNI {}", "con DNI {}.", "dni: {}"]),
                5 => (
                    "bsn",
                    bsn(rng),
                    &["BSN {}", "bsn: {}", "burgerservicenummer {}"],
                ),
                _ => (
                    "aadhaar",
                    aadhaar(rng),
                    &["aadhaar {}", "Aadhaar no. {}", "{}"],
                ),
            };
            let form = *rng.pick(forms);
            Sample {
                text: surround(rng, &form.replace("{}", &value)),
                planted: vec![value],
                class,
                context: "checked",
            }
        })
        .collect()
}

fn aadhaar(rng: &mut Rng) -> String {
    loop {
        let mut d = digits(rng, 12);
        d[0] = 2 + rng.below(8) as u32;
        let t = text(&d);
        if strongroom::redact::Validator::Verhoeff.passes(t.as_bytes()) {
            return format!("{} {} {}", &t[..4], &t[4..8], &t[8..]);
        }
    }
}

/// Values without, or with weak, check digits.
pub fn plain(rng: &mut Rng, n: usize) -> Vec<Sample> {
    const FIRST: &[&str] = &["maria", "john", "li", "aisha", "tomasz", "eva"];
    (0..n)
        .map(|i| {
            let d = |rng: &mut Rng, n: usize| text(&digits(rng, n));
            let (class, value, forms): (&'static str, String, &[&str]) = match i % 13 {
                0 => (
                    "email",
                    format!(
                        "{}.{}@mail{}.example.com",
                        *rng.pick(FIRST),
                        *rng.pick(FIRST),
                        rng.below(90)
                    ),
                    &["write to {}.", "<{}>", "{}", "email: {}", "cc {} and me"],
                ),
                1 => (
                    "phone",
                    format!(
                        "+{} {} {} {}",
                        rng.pick(&["1", "44", "49", "33", "91"]),
                        d(rng, 3),
                        d(rng, 3),
                        d(rng, 4)
                    ),
                    &["call {}", "phone: {}", "{} is his mobile"],
                ),
                2 => (
                    "phone",
                    format!(
                        "({}) {}-{}",
                        200 + rng.below(799),
                        200 + rng.below(799),
                        1000 + rng.below(8999)
                    ),
                    &["call {}", "tel {}", "{}"],
                ),
                3 => (
                    "phone",
                    format!(
                        "{}-{}-{}",
                        200 + rng.below(799),
                        200 + rng.below(799),
                        1000 + rng.below(8999)
                    ),
                    &["phone {}", "reach her at {}"],
                ),
                4 => ("ssn", ssn(rng), &["ssn {}", "SSN: {}", "social {}", "{}"]),
                5 => (
                    "dob",
                    format!(
                        "{:02}/{:02}/19{}",
                        1 + rng.below(12),
                        1 + rng.below(28),
                        40 + rng.below(59)
                    ),
                    &["DOB: {}", "born {}", "date of birth {}"],
                ),
                6 => (
                    "dob",
                    format!(
                        "19{}-{:02}-{:02}",
                        40 + rng.below(59),
                        1 + rng.below(12),
                        1 + rng.below(28)
                    ),
                    &["dob={}", "\"birthdate\": \"{}\""],
                ),
                7 => (
                    "passport",
                    format!("{}{}", rng.pick(&["X", "C", "PA", ""]), d(rng, 8)),
                    &["passport {}", "passport no. {}", "Passport number: {}"],
                ),
                8 => (
                    "address",
                    format!(
                        "{} {} {}",
                        1 + rng.below(9999),
                        rng.pick(&["Maple", "Old Mill", "Lincoln", "Station"]),
                        rng.pick(&["Street", "Ave", "Road", "Blvd", "Lane"])
                    ),
                    &["lives at {}", "address: {}", "{}, second floor"],
                ),
                9 => (
                    "ip",
                    format!(
                        "{}.{}.{}.{}",
                        11 + rng.below(200),
                        rng.below(255),
                        rng.below(255),
                        1 + rng.below(253)
                    ),
                    &["from {}", "client {} connected", "ip={}"],
                ),
                10 => (
                    "mrn",
                    format!("{}{}", rng.pick(&["", "M", "P-"]), d(rng, 8)),
                    &[
                        "MRN: {}",
                        "medical record number {}",
                        "\"mrn\": \"{}\"",
                        "patient id {}",
                    ],
                ),
                11 => (
                    "health plan",
                    format!("{}{}", rng.pick(&["XYZ", "H", "W"]), d(rng, 9)),
                    &[
                        "member id: {}",
                        "insurance policy number {}",
                        "subscriber id {}",
                    ],
                ),
                _ => (
                    "nino",
                    format!(
                        "AB {:02} {:02} {:02} C",
                        rng.below(99),
                        rng.below(99),
                        rng.below(99)
                    ),
                    &["NI number {}", "nino {}"],
                ),
            };
            let form = *rng.pick(forms);
            Sample {
                text: surround(rng, &form.replace("{}", &value)),
                planted: vec![value],
                class,
                context: "plain",
            }
        })
        .collect()
}

const NONE: &[&str] = &[
    "order ${d16} shipped",
    "version 1.2.3.4-beta",
    "2026-03-02T10:11:12Z",
    "sha ${h40}",
    "port 8080, pid 31337",
    "took 1234567 us",
    "ticket #48291",
    "room 101, floor 3",
    "isbn 978-3-16-148410-0",
    "${u}",
    "the ratio was 0.123456789",
    "listening on 127.0.0.1:8080",
    "0.0.0.0/0",
    "100-200-300 boxes",
    "page 12-15 of 300",
    "git@github.com:org/repo.git",
    "at 10:30-11:45",
    "build ${d6}",
    "npm i pkg@1.2.3",
    "@types/node",
    "x = 3.14159265",
    "range 1000-2000",
    "lat 52.5200 lon 13.4050",
    "section 4.3.2.1 of the spec says",
    "error 0x80070005",
    "chr1:12345678",
    "$1,234,567.89",
    "12/27 is the deadline",
    "born to be wild",
    "the card game",
    "std::io::Error",
    "epoch 1767225600",
    "1280x720",
    "IPv4 and IPv6",
    "phone home feature flag",
    "the patient approach",
    "10.000.000 rows",
    "RFC 2119",
    "call back in 20 minutes",
    "insurance is a topic",
];

/// Texts with numbers that say nothing about a person.
pub fn none(rng: &mut Rng, n: usize) -> Vec<String> {
    (0..n)
        .map(|i| {
            let core = rng.expand(NONE[i % NONE.len()]);
            surround(rng, &core)
        })
        .collect()
}
