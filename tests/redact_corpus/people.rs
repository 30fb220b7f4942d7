//! Numbers of people, cards and patients for every rule about them, with their check digits reckoned here.

use super::Rng;

/// A value for the rule, and how it is named where it does not speak for itself: a variable, words.
pub type Value = (String, Option<(&'static str, &'static str)>);

/// The rules that [`value`] knows.
pub const RULES: &[&str] = &[
    "email-address",
    "phone-international",
    "phone-us",
    "phone-uk",
    "phone-fr",
    "phone-national",
    "us-ssn",
    "us-ssn-context",
    "us-itin",
    "us-ein",
    "uk-nino",
    "ca-sin",
    "ca-sin-context",
    "in-aadhaar",
    "in-aadhaar-context",
    "in-pan",
    "iban",
    "us-routing-number",
    "bank-account",
    "de-steuer-id",
    "fr-nir",
    "es-dni",
    "it-codice-fiscale",
    "pl-pesel",
    "nl-bsn",
    "be-national-number",
    "be-national-number-context",
    "fi-hetu",
    "se-personnummer",
    "se-personnummer-context",
    "no-fodselsnummer",
    "dk-cpr",
    "pt-nif",
    "ro-cnp",
    "bg-egn",
    "hr-oib",
    "cz-birth-number",
    "ee-isikukood",
    "ch-ahv",
    "at-svnr",
    "ie-pps",
    "br-cpf",
    "br-cpf-context",
    "au-tfn",
    "sg-nric",
    "cn-resident-id",
    "za-id",
    "kr-rrn",
    "passport-number",
    "drivers-license",
    "date-of-birth",
    "street-address-en",
    "street-address-de",
    "street-address-fr",
    "po-box",
    "uk-postcode",
    "ipv4-address",
    "ipv6-address",
    "mac-address",
    "vehicle-vin",
    "medical-record-number",
    "health-plan-number",
    "us-medicare-mbi",
    "us-npi",
    "us-dea",
    "uk-nhs-number",
    "au-medicare",
    "ca-health-card",
    "de-kvnr",
    "icd-10-code",
    "prescription-number",
    "device-serial",
    "card-number",
    "card-number-amex",
    "card-number-diners",
    "card-number-other",
    "card-security-code",
    "track-one",
    "track-two",
    "pin-block",
    "card-pin",
    "card-expiry",
];

/// A value that the rule is for.
pub fn value(rule: &str, rng: &mut Rng) -> Value {
    let named = |v: String, variable, words| (v, Some((variable, words)));
    let alone = |v: String| (v, None);
    match rule {
        "email-address" => alone(rng.expand("${l5}.${l7}@mail${d2}.example.org")),
        "phone-international" => alone(rng.expand("+44 20 7${d3} ${d4}")),
        "phone-us" => alone(format!(
            "({}) {}-{}",
            201 + rng.below(700),
            200 + rng.below(700),
            1000 + rng.below(9000)
        )),
        "phone-uk" => alone(rng.expand("020 7${d3} ${d4}")),
        "phone-fr" => alone(rng.expand("01 4${d1} ${d2} ${d2} ${d2}")),
        "phone-national" => named(rng.expand("0171 2${d6}"), "mobile", "her phone number"),
        "us-ssn" => alone(ssn(rng, "-")),
        "us-ssn-context" => named(ssn(rng, ""), "ssn", "her social security number"),
        "us-itin" => named(
            format!(
                "9{:02}-{}-{:04}",
                rng.below(100),
                rng.pick(&[70, 72, 88, 90, 94, 99, 50, 65]),
                rng.below(10_000)
            ),
            "itin",
            "ITIN",
        ),
        "us-ein" => named(rng.expand("12-${d7}"), "ein", "the EIN of the firm"),
        "uk-nino" => alone(rng.expand("AB ${d2} ${d2} ${d2} C")),
        "ca-sin" => alone(grouped(&text(&luhn(digits(rng, 8))), &[3, 3, 3], "-")),
        "ca-sin-context" => named(text(&luhn(digits(rng, 8))), "sin_number", "her SIN"),
        "in-aadhaar" => alone(grouped(&aadhaar(rng), &[4, 4, 4], " ")),
        "in-aadhaar-context" => named(aadhaar(rng), "aadhaar", "Aadhaar number"),
        "in-pan" => alone(rng.expand("${M3}P${M1}${d4}${M1}")),
        "iban" => alone(iban(rng)),
        "us-routing-number" => named(aba(rng), "routing_number", "the routing number"),
        "bank-account" => named(
            rng.expand("${d10}"),
            "account_number",
            "bank account number",
        ),
        "de-steuer-id" => named(steuer(rng), "steuer_id", "Steuer-ID"),
        "fr-nir" => alone(nir(rng)),
        "es-dni" => alone(dni(rng)),
        "it-codice-fiscale" => alone(codice_fiscale(rng)),
        "pl-pesel" => named(pesel(rng), "pesel", "PESEL"),
        "nl-bsn" => named(bsn(rng), "bsn", "BSN"),
        "be-national-number" => alone(belgian(rng, true)),
        "be-national-number-context" => named(
            belgian(rng, false),
            "rijksregisternummer",
            "her rijksregisternummer",
        ),
        "fi-hetu" => alone(hetu(rng)),
        "se-personnummer" => alone(swedish(rng, "-")),
        "se-personnummer-context" => named(swedish(rng, ""), "personnummer", "personnummer"),
        "no-fodselsnummer" => named(norwegian(rng), "fodselsnummer", "fødselsnummer"),
        "dk-cpr" => named(
            format!("{}-{:04}", day_month_year(rng), rng.below(10_000)),
            "cpr",
            "CPR",
        ),
        "pt-nif" => named(nif(rng), "nif", "NIF"),
        "ro-cnp" => named(cnp(rng), "cnp", "CNP"),
        "bg-egn" => named(egn(rng), "egn", "EGN"),
        "hr-oib" => named(mod11_10(digits(rng, 10)), "oib", "OIB"),
        "cz-birth-number" => alone(czech(rng)),
        "ee-isikukood" => named(isikukood(rng), "isikukood", "isikukood"),
        "ch-ahv" => alone(ahv(rng)),
        "at-svnr" => named(svnr(rng), "svnr", "SVNR"),
        "ie-pps" => alone(pps(rng)),
        "br-cpf" => {
            let c = cpf(rng);
            alone(format!("{}.{}.{}-{}", &c[..3], &c[3..6], &c[6..9], &c[9..]))
        }
        "br-cpf-context" => named(cpf(rng), "cpf", "CPF"),
        "au-tfn" => named(tfn(rng), "tfn", "the TFN"),
        "sg-nric" => alone(nric(rng)),
        "cn-resident-id" => alone(chinese(rng)),
        "za-id" => named(
            text(&luhn(numbers(&format!(
                "{}{:06}",
                year_month_day(rng),
                500_008 + 10 * rng.below(40_000)
            )))),
            "sa_id_number",
            "South African ID number",
        ),
        "kr-rrn" => alone(format!(
            "{}-{}{:06}",
            year_month_day(rng),
            1 + rng.below(4),
            rng.below(1_000_000)
        )),
        "passport-number" => named(
            rng.expand("X${d7}"),
            "passport_number",
            "her passport number",
        ),
        "drivers-license" => named(rng.expand("D${d7}"), "drivers_license", "driver's license"),
        "date-of-birth" => named(
            format!(
                "19{:02}-{:02}-{:02}",
                40 + rng.below(59),
                1 + rng.below(12),
                1 + rng.below(28)
            ),
            "date_of_birth",
            "her date of birth",
        ),
        "street-address-en" => alone(format!(
            "{} {} {}",
            1 + rng.below(9000),
            rng.pick(&["Maple", "Old Mill", "Lincoln"]),
            rng.pick(&["Street", "Avenue", "Road", "Lane"])
        )),
        "street-address-de" => alone(format!(
            "{} {}",
            rng.pick(&[
                "Hauptstraße",
                "Gartenstrasse",
                "Lindenallee",
                "Marktplatz",
                "Birkenweg"
            ]),
            1 + rng.below(200)
        )),
        "street-address-fr" => alone(format!(
            "{} {}",
            1 + rng.below(200),
            rng.pick(&[
                "rue de la Paix",
                "avenue des Ternes",
                "boulevard Voltaire",
                "place du Marché"
            ])
            .replace("Marché", "Tertre")
        )),
        "po-box" => alone(format!("P.O. Box {}", 10 + rng.below(9000))),
        "uk-postcode" => named(rng.expand("SW1A ${d1}AB"), "postcode", "postcode"),
        "ipv4-address" => alone(format!(
            "{}.{}.{}.{}",
            11 + rng.below(100),
            rng.below(256),
            rng.below(256),
            1 + rng.below(253)
        )),
        "ipv6-address" => alone(rng.expand("2001:db8:${h4}:${h4}::${h4}:1")),
        "mac-address" => named(
            rng.expand("3c:22:${h2}:${h2}:${h2}:${h2}"),
            "mac_address",
            "the laptop's MAC",
        ),
        "vehicle-vin" => named(vin(rng), "vin", "VIN"),
        "medical-record-number" => named(rng.expand("${d8}"), "mrn", "medical record number"),
        "health-plan-number" => named(
            rng.expand("XYZ${d9}"),
            "member_id",
            "insurance policy number",
        ),
        "us-medicare-mbi" => alone(mbi(rng)),
        "us-npi" => named(npi(rng), "npi", "NPI"),
        "us-dea" => named(dea(rng), "dea_number", "DEA number"),
        "uk-nhs-number" => named(nhs(rng), "nhs_number", "NHS number"),
        "au-medicare" => named(medicare(rng), "medicare_card", "Medicare card"),
        "ca-health-card" => named(rng.expand("${d4}-${d3}-${d3}-${M2}"), "ohip", "OHIP"),
        "de-kvnr" => named(
            rng.expand("${M1}${d9}"),
            "versichertennummer",
            "Versichertennummer",
        ),
        "icd-10-code" => named(rng.expand("E1${d1}.${d1}"), "diagnosis", "diagnosis"),
        "prescription-number" => named(rng.expand("${d7}"), "rx_number", "Rx number"),
        "device-serial" => named(
            rng.expand("PJN${d6}H"),
            "pacemaker_serial_number",
            "pacemaker serial number",
        ),
        "card-number" => alone(card(rng, "4", 16, &[4, 4, 4, 4])),
        "card-number-amex" => alone(card(rng, "37", 15, &[4, 6, 5])),
        "card-number-diners" => alone(card(rng, "36", 14, &[4, 6, 4])),
        "card-number-other" => named(card(rng, "6304", 19, &[19]), "maestro_card", "maestro card"),
        "card-security-code" => named(rng.expand("${d3}"), "cvv", "CVV"),
        "track-one" => alone(format!(
            "%B{}^DOE/JANE^2712101{:08}?",
            card(rng, "4", 16, &[16]),
            rng.below(100_000_000)
        )),
        "track-two" => alone(format!(
            ";{}=2712101{:08}?",
            card(rng, "5", 16, &[16]),
            rng.below(100_000_000)
        )),
        "pin-block" => named(rng.expand("04${H14}"), "pin_block", "PIN block"),
        "card-pin" => named(rng.expand("${d4}"), "card_pin", "card PIN"),
        "card-expiry" => named(
            format!("{:02}/{}", 1 + rng.below(12), 27 + rng.below(9)),
            "card_expiry",
            "card valid thru",
        ),
        _ => unreachable!("no generator for {rule}"),
    }
}

fn digits(rng: &mut Rng, n: usize) -> Vec<u32> {
    (0..n)
        .map(|i| {
            (if i == 0 {
                1 + rng.below(9)
            } else {
                rng.below(10)
            }) as u32
        })
        .collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn text(d: &[u32]) -> String {
    d.iter()
        .map(|x| char::from_digit(*x, 10).unwrap())
        .collect()
}

fn grouped(text: &str, sizes: &[usize], sep: &str) -> String {
    let mut at = 0;
    let parts: Vec<&str> = sizes
        .iter()
        .map(|n| {
            at += n;
            &text[at - n..at]
        })
        .collect();
    parts.join(sep)
}

fn sum(d: &[u32], weights: &[u32]) -> u32 {
    d.iter().zip(weights).map(|(a, b)| a * b).sum()
}

fn year_month_day(rng: &mut Rng) -> String {
    format!(
        "{:02}{:02}{:02}",
        40 + rng.below(59),
        1 + rng.below(12),
        1 + rng.below(28)
    )
}

fn day_month_year(rng: &mut Rng) -> String {
    format!(
        "{:02}{:02}{:02}",
        1 + rng.below(28),
        1 + rng.below(12),
        40 + rng.below(59)
    )
}

/// Appends Luhn's digit (ISO/IEC 7812-1, annex B).
fn luhn(mut body: Vec<u32>) -> Vec<u32> {
    let sum: u32 = body
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &x)| match (i % 2, x) {
            (1, x) => x,
            (_, x) if x > 4 => 2 * x - 9,
            (_, x) => 2 * x,
        })
        .sum();
    body.push((10 - sum % 10) % 10);
    body
}

/// ISO/IEC 7064, mod 11,10.
fn mod11_10(mut body: Vec<u32>) -> String {
    let mut p = 10;
    for d in &body {
        let s = match (d + p) % 10 {
            0 => 10,
            s => s,
        };
        p = 2 * s % 11;
    }
    body.push((11 - p) % 10);
    text(&body)
}

/// Verhoeff's digit, reckoned in the dihedral group of the pentagon.
fn aadhaar(rng: &mut Rng) -> String {
    fn times(a: u32, b: u32) -> u32 {
        match (a < 5, b < 5) {
            (true, true) => (a + b) % 5,
            (true, false) => 5 + (a + b) % 5,
            (false, true) => 5 + (a + 5 - b) % 5,
            (false, false) => (a + 5 - b) % 5,
        }
    }
    const MOVE: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let mut d = digits(rng, 11);
    d[0] = 2 + rng.below(8) as u32;
    let c = d.iter().rev().enumerate().fold(0, |c, (i, &x)| {
        times(c, (0..=i % 8).fold(x, |x, _| MOVE[x as usize]))
    });
    d.push((0..10).find(|&x| times(c, x) == 0).unwrap());
    text(&d)
}

fn ssn(rng: &mut Rng, sep: &str) -> String {
    format!(
        "{:03}{sep}{:02}{sep}{:04}",
        rng.pick(&[123, 219, 457, 518, 601, 733]),
        1 + rng.below(98),
        1 + rng.below(9998)
    )
}

fn iban(rng: &mut Rng) -> String {
    let bban = text(&digits(rng, 18));
    let rest = format!("{bban}131400")
        .chars()
        .fold(0, |n, c| (n * 10 + c.to_digit(10).unwrap()) % 97);
    format!("DE{:02}{bban}", 98 - rest)
}

fn aba(rng: &mut Rng) -> String {
    let mut d = digits(rng, 8);
    (d[0], d[1]) = (0, 1 + rng.below(9) as u32);
    let s = sum(&d, &[3, 7, 1, 3, 7, 1, 3, 7]);
    d.push((10 - s % 10) % 10);
    text(&d)
}

/// Ten digits of which one stands twice, then the check digit.
fn steuer(rng: &mut Rng) -> String {
    let mut d: Vec<u32> = (0..10).collect();
    for i in (1..10).rev() {
        d.swap(i, rng.below(i + 1));
    }
    d[9] = d[rng.below(9)];
    if d[0] == 0 {
        d.swap(0, 1);
    }
    mod11_10(d)
}

fn nir(rng: &mut Rng) -> String {
    let n = format!(
        "2{:02}{:02}75{:03}{:03}",
        40 + rng.below(59),
        1 + rng.below(12),
        1 + rng.below(900),
        1 + rng.below(900)
    );
    let key = 97 - n.parse::<u64>().unwrap() % 97;
    format!(
        "{} {} {} {} {} {} {key:02}",
        &n[..1],
        &n[1..3],
        &n[3..5],
        &n[5..7],
        &n[7..10],
        &n[10..]
    )
}

fn dni(rng: &mut Rng) -> String {
    let n = 10_000_000 + rng.below(89_999_999);
    format!("{n}{}", char::from(b"TRWAGMYFPDXBNJZSQVHLCKE"[n % 23]))
}

fn codice_fiscale(rng: &mut Rng) -> String {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let body = format!(
        "{}{:02}{}{:02}{}",
        rng.expand("RSS${M3}"),
        40 + rng.below(59),
        rng.pick(&["A", "B", "H", "T"]),
        1 + rng.below(28),
        rng.expand("H${d3}")
    );
    let total: u32 = body
        .bytes()
        .enumerate()
        .map(|(i, b)| {
            let v = u32::from(if b.is_ascii_digit() {
                b - b'0'
            } else {
                b - b'A'
            });
            if i % 2 == 0 { ODD[v as usize] } else { v }
        })
        .sum();
    format!("{body}{}", char::from(b'A' + (total % 26) as u8))
}

fn pesel(rng: &mut Rng) -> String {
    let mut d = numbers(&format!("{}{:04}", year_month_day(rng), rng.below(10_000)));
    let s = sum(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]);
    d.push((10 - s % 10) % 10);
    text(&d)
}

fn bsn(rng: &mut Rng) -> String {
    loop {
        let mut d = digits(rng, 8);
        let rest = sum(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
        if rest < 10 {
            d.push(rest);
            return text(&d);
        }
    }
}

fn belgian(rng: &mut Rng, dots: bool) -> String {
    let date = year_month_day(rng);
    let serial = 1 + rng.below(997);
    let n: u64 = format!("{date}{serial:03}").parse().unwrap();
    let check = 97 - n % 97;
    if dots {
        format!(
            "{}.{}.{}-{serial:03}.{check:02}",
            &date[..2],
            &date[2..4],
            &date[4..]
        )
    } else {
        format!("{date}{serial:03}{check:02}")
    }
}

fn hetu(rng: &mut Rng) -> String {
    let (date, serial) = (day_month_year(rng), 2 + rng.below(897));
    let n: usize = format!("{date}{serial:03}").parse().unwrap();
    format!(
        "{date}-{serial:03}{}",
        char::from(b"0123456789ABCDEFHJKLMNPRSTUVWXY"[n % 31])
    )
}

fn swedish(rng: &mut Rng, sep: &str) -> String {
    let n = text(&luhn(numbers(&format!(
        "{}{:03}",
        year_month_day(rng),
        rng.below(1000)
    ))));
    format!("{}{sep}{}", &n[..6], &n[6..])
}

fn norwegian(rng: &mut Rng) -> String {
    loop {
        let mut d = numbers(&format!("{}{:03}", day_month_year(rng), rng.below(500)));
        for weights in [
            &[3, 7, 6, 1, 8, 9, 4, 5, 2][..],
            &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2],
        ] {
            d.push((11 - sum(&d, weights) % 11) % 11);
        }
        if d.iter().all(|&x| x < 10) {
            return text(&d);
        }
    }
}

fn nif(rng: &mut Rng) -> String {
    let mut d = digits(rng, 8);
    d[0] = 2;
    let check = 11 - sum(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    d.push(if check > 9 { 0 } else { check });
    text(&d)
}

fn cnp(rng: &mut Rng) -> String {
    let mut d = numbers(&format!(
        "1{}12{:03}",
        year_month_day(rng),
        1 + rng.below(998)
    ));
    let rest = sum(&d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    d.push(if rest == 10 { 1 } else { rest });
    text(&d)
}

fn egn(rng: &mut Rng) -> String {
    let mut d = numbers(&format!("{}{:03}", year_month_day(rng), rng.below(1000)));
    d.push(sum(&d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10);
    text(&d)
}

fn czech(rng: &mut Rng) -> String {
    loop {
        let head = format!("{}{:03}", year_month_day(rng), rng.below(1000));
        let rest = head.parse::<u64>().unwrap() * 10 % 11;
        if rest != 1 {
            let d = (11 - rest) % 11;
            return format!("{}/{}{d}", &head[..6], &head[6..]);
        }
    }
}

fn isikukood(rng: &mut Rng) -> String {
    let mut d = numbers(&format!(
        "{}{}{:03}",
        3 + rng.below(2),
        year_month_day(rng),
        rng.below(1000)
    ));
    let rests = [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 1],
        [3, 4, 5, 6, 7, 8, 9, 1, 2, 3],
    ]
    .map(|w| sum(&d, &w) % 11);
    d.push(rests.into_iter().find(|&r| r < 10).unwrap_or(0));
    text(&d)
}

fn ahv(rng: &mut Rng) -> String {
    let mut d = numbers(&format!("756{:09}", rng.below(1_000_000_000)));
    let s = sum(&d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]);
    d.push((10 - s % 10) % 10);
    grouped(&text(&d), &[3, 4, 4, 2], ".")
}

fn svnr(rng: &mut Rng) -> String {
    loop {
        let (serial, date) = (100 + rng.below(900), day_month_year(rng));
        let d = numbers(&format!("{serial}{date}"));
        let check = sum(&d, &[3, 7, 9, 5, 8, 4, 2, 1, 6]) % 11;
        if check < 10 {
            return format!("{serial}{check} {date}");
        }
    }
}

fn pps(rng: &mut Rng) -> String {
    let d = digits(rng, 7);
    let rest = sum(&d, &[8, 7, 6, 5, 4, 3, 2]) % 23;
    format!(
        "{}{}",
        text(&d),
        char::from(b"WABCDEFGHIJKLMNOPQRSTUV"[rest as usize])
    )
}

fn cpf(rng: &mut Rng) -> String {
    let mut d = digits(rng, 9);
    for _ in 0..2 {
        let n = d.len() as u32;
        let s: u32 = d
            .iter()
            .enumerate()
            .map(|(i, x)| x * (n + 1 - i as u32))
            .sum();
        d.push(s * 10 % 11 % 10);
    }
    text(&d)
}

fn tfn(rng: &mut Rng) -> String {
    loop {
        let d = digits(rng, 9);
        if sum(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11) {
            return grouped(&text(&d), &[3, 3, 3], " ");
        }
    }
}

fn nric(rng: &mut Rng) -> String {
    let d = digits(rng, 7);
    let rest = sum(&d, &[2, 7, 6, 5, 4, 3, 2]) % 11;
    format!("S{}{}", text(&d), char::from(b"JZIHGFEDCBA"[rest as usize]))
}

fn chinese(rng: &mut Rng) -> String {
    let body = format!("11010519{}{:03}", year_month_day(rng), rng.below(1000));
    let rest = sum(
        &numbers(&body),
        &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2],
    ) % 11;
    format!("{body}{}", char::from(b"10X98765432"[rest as usize]))
}

fn vin(rng: &mut Rng) -> String {
    let mut v = rng.expand("1HGCM8${d2}0${d1}A${d6}").into_bytes();
    let value = |b: u8| match b {
        b'0'..=b'9' => u32::from(b - b'0'),
        b'A'..=b'H' => u32::from(b - b'A') + 1,
        b'J'..=b'R' => u32::from(b - b'J') + 1,
        _ => u32::from(b - b'S') + 2,
    };
    let d: Vec<u32> = v.iter().map(|&b| value(b)).collect();
    let rest = sum(&d, &[8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    v[8] = if rest == 10 { b'X' } else { b'0' + rest as u8 };
    String::from_utf8(v).unwrap()
}

fn mbi(rng: &mut Rng) -> String {
    let letter = |rng: &mut Rng| *rng.pick(&['A', 'C', 'E', 'G', 'K', 'M', 'T', 'W', 'Y']);
    let (a, b, c, d) = (letter(rng), letter(rng), letter(rng), letter(rng));
    format!(
        "1{a}{}{}-{b}{}{}-{c}{d}{}{}",
        rng.below(10),
        rng.below(10),
        rng.below(10),
        rng.below(10),
        rng.below(10),
        rng.below(10)
    )
}

fn npi(rng: &mut Rng) -> String {
    let mut body = vec![8, 0, 8, 4, 0, 1];
    body.extend((0..8).map(|_| rng.below(10) as u32));
    text(&luhn(body)[5..])
}

fn dea(rng: &mut Rng) -> String {
    let mut d = digits(rng, 6);
    d.push((d[0] + d[2] + d[4] + 2 * (d[1] + d[3] + d[5])) % 10);
    format!("BM{}", text(&d))
}

fn nhs(rng: &mut Rng) -> String {
    loop {
        let mut d = digits(rng, 9);
        let check = 11 - sum(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
        if check != 10 {
            d.push(check % 11);
            return grouped(&text(&d), &[3, 3, 4], " ");
        }
    }
}

fn medicare(rng: &mut Rng) -> String {
    let mut d = digits(rng, 8);
    d[0] = 2 + rng.below(5) as u32;
    d.push(sum(&d, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10);
    d.push(1);
    grouped(&text(&d), &[4, 5, 1], " ")
}

fn card(rng: &mut Rng, prefix: &str, len: usize, groups: &[usize]) -> String {
    let mut body = numbers(prefix);
    while body.len() < len - 1 {
        body.push(rng.below(10) as u32);
    }
    if prefix == "5" {
        body[1] = 1 + rng.below(5) as u32;
    }
    grouped(&text(&luhn(body)), groups, " ")
}
