//! Checks that a match must pass: check digits and the like.

mod checks;

use checks::{
    at, china, codice_fiscale, cpf, dni, email, hetu, iban, ipv4, ipv6, is_date, is_version,
    isikukood, luhn, mod11_10, nir, nric, number, pan, pps, repeats, ssn, verhoeff, vin, weighted,
};

/// A check by name. Letters, digits and separators are read as the format's owner defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Validator {
    /// Looks made by a machine: letters and digits, at least eight different characters.
    Random,
    /// A short code, perhaps of digits alone: two digits, six different characters.
    Code,
    /// Letters of both cases and digits, as base62 and base64 have.
    Mixed,
    /// Luhn's check digit (ISO/IEC 7812-1, annex B).
    Luhn,
    /// A payment card number: brand range, length and Luhn.
    Pan,
    /// IBAN, mod 97 (ISO 13616).
    Iban,
    /// Verhoeff's check digit (Aadhaar).
    Verhoeff,
    /// A US social security number that can have been issued.
    Ssn,
    /// A US individual taxpayer number that can have been issued.
    Itin,
    /// US national provider identifier: Luhn over 80840 and the number.
    Npi,
    /// DEA registration number.
    Dea,
    /// UK NHS number, mod 11.
    Nhs,
    /// Spanish DNI and NIE, check letter.
    Dni,
    /// French NIR, key mod 97.
    Nir,
    /// Italian codice fiscale, check letter.
    CodiceFiscale,
    /// German Steuer-ID, mod 11,10.
    SteuerId,
    /// Polish PESEL.
    Pesel,
    /// Dutch BSN, eleven test.
    Bsn,
    /// Belgian national number, mod 97.
    BelgianNn,
    /// Finnish personal identity code, mod 31.
    Hetu,
    /// Brazilian CPF.
    Cpf,
    /// Portuguese NIF.
    Nif,
    /// Romanian CNP.
    Cnp,
    /// Croatian OIB, mod 11,10.
    Oib,
    /// Norwegian fødselsnummer.
    Fodselsnummer,
    /// Swiss AHV number, EAN-13.
    Ahv,
    /// Australian tax file number.
    Tfn,
    /// Singapore NRIC and FIN.
    Nric,
    /// Chinese resident identity number, mod 11-2.
    ChinaId,
    /// Austrian social security number.
    Svnr,
    /// Irish PPS number.
    Pps,
    /// Czech and Slovak birth number, mod 11.
    BirthNumber,
    /// Bulgarian EGN.
    Egn,
    /// Estonian and Lithuanian personal code.
    Isikukood,
    /// An IPv4 address that is neither loopback nor unspecified nor a netmask.
    Ipv4,
    /// An IPv6 address that is neither loopback nor unspecified.
    Ipv6,
    /// A telephone number with a plausible count of digits.
    Phone,
    /// A telephone number in national form: no date, no version, no lone block of digits in a range of years.
    National,
    /// A mail address: not a repository's `git@`, not a file such as `logo@2x.png`.
    Email,
    /// US bank routing number (ABA).
    Aba,
    /// Swedish personal number: Luhn over the last ten digits.
    Personnummer,
    /// Vehicle identification number: letters and digits, check digit in place nine.
    Vin,
    /// Number of a health plan: no date.
    Member,
    /// A diagnosis code with its dot, or three characters long.
    Icd,
}

impl Validator {
    /// Whether `value` passes.
    #[must_use]
    pub fn passes(self, value: &[u8]) -> bool {
        let d: Vec<u32> = value
            .iter()
            .filter(|b| b.is_ascii_digit())
            .map(|b| u32::from(b - b'0'))
            .collect();
        let s: Vec<u8> = value
            .iter()
            .filter(|b| b.is_ascii_alphanumeric())
            .map(u8::to_ascii_uppercase)
            .collect();
        match self {
            Self::Random => {
                let letters = s.iter().any(u8::is_ascii_alphabetic);
                letters && !d.is_empty() && super::text::distinct(value) >= 8
            }
            Self::Code => d.len() >= 2 && super::text::distinct(value) >= 6,
            Self::Mixed => {
                let case = |test: fn(&u8) -> bool| value.iter().any(test);
                case(u8::is_ascii_uppercase)
                    && case(u8::is_ascii_lowercase)
                    && !d.is_empty()
                    && super::text::distinct(value) >= 8
            }
            Self::Luhn => luhn(&d),
            Self::Pan => pan(&d),
            Self::Iban => iban(&s),
            Self::Verhoeff => d.len() == 12 && d.first().is_some_and(|&x| x > 1) && verhoeff(&d),
            Self::Ssn => ssn(&d),
            Self::Itin => {
                d.len() == 9
                    && d.first() == Some(&9)
                    && matches!(number(&d, 3, 5), 50..=65 | 70..=88 | 90..=92 | 94..=99)
            }
            Self::Npi => d.len() == 10 && luhn(&[&[8, 0, 8, 4, 0][..], &d].concat()),
            Self::Dea => {
                let sum =
                    at(&d, 0) + at(&d, 2) + at(&d, 4) + 2 * (at(&d, 1) + at(&d, 3) + at(&d, 5));
                d.len() >= 7 && sum % 10 == at(&d, 6)
            }
            Self::Nhs => {
                d.len() == 10 && {
                    let check = 11 - weighted(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                    check % 11 == at(&d, 9) && check != 10
                }
            }
            Self::Dni => dni(&s),
            Self::Nir => nir(&s),
            Self::CodiceFiscale => codice_fiscale(&s),
            Self::SteuerId => d.len() == 11 && at(&d, 0) != 0 && mod11_10(&d) && repeats(&d),
            Self::Pesel => {
                d.len() == 11
                    && (10 - weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10) % 10 == at(&d, 10)
                    && matches!(number(&d, 4, 6), 1..=31)
            }
            Self::Bsn => {
                d.len() == 9
                    && (weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) + 10 * at(&d, 8)).is_multiple_of(11)
                    && number(&d, 0, 9) > 0
            }
            Self::BelgianNn => {
                d.len() == 11 && {
                    let (n, check) = (number(&d, 0, 9), number(&d, 9, 11));
                    check == 97 - n % 97 || check == 97 - (2_000_000_000 + n) % 97
                }
            }
            Self::Hetu => hetu(&s),
            Self::Cpf => cpf(&d),
            Self::Nif => {
                d.len() == 9 && {
                    let r = weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
                    at(&d, 8) == if r < 2 { 0 } else { 11 - r }
                }
            }
            Self::Cnp => {
                d.len() == 13 && {
                    let r = weighted(&d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
                    at(&d, 12) == if r == 10 { 1 } else { r } && at(&d, 0) != 0
                }
            }
            Self::Oib => d.len() == 11 && mod11_10(&d),
            Self::Fodselsnummer => {
                d.len() == 11 && {
                    let k1 = (11 - weighted(&d, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11;
                    let k2 = (11 - weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
                    k1 == at(&d, 9) && k2 == at(&d, 10)
                }
            }
            Self::Ahv => {
                d.len() == 13
                    && number(&d, 0, 3) == 756
                    && weighted(&d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
            }
            Self::Tfn => {
                d.len() == 9
                    && weighted(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11)
                    && number(&d, 0, 9) > 0
            }
            Self::Nric => nric(&s, &d),
            Self::ChinaId => china(&s),
            Self::Svnr => {
                d.len() == 10 && weighted(&d, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11 == at(&d, 3)
            }
            Self::Pps => pps(&s, &d),
            Self::BirthNumber => {
                d.len() == 10
                    && number(&d, 0, 10).is_multiple_of(11)
                    && matches!(number(&d, 2, 4), 1..=12 | 21..=32 | 51..=62 | 71..=82)
            }
            Self::Egn => {
                d.len() == 10
                    && weighted(&d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10 == at(&d, 9)
                    && matches!(number(&d, 2, 4), 1..=12 | 21..=32 | 41..=52)
            }
            Self::Isikukood => {
                d.len() == 11
                    && isikukood(&d)
                    && (1..=12).contains(&number(&d, 3, 5))
                    && (1..=31).contains(&number(&d, 5, 7))
            }
            Self::Ipv4 => ipv4(value),
            Self::Ipv6 => ipv6(value),
            Self::Phone => (7..=15).contains(&d.len()) && super::text::distinct(&s) >= 3,
            Self::National => {
                (7..=15).contains(&d.len())
                    && super::text::distinct(&s) >= 3
                    && !is_date(value)
                    && !is_version(value)
            }
            Self::Email => email(value),
            Self::Aba => {
                d.len() == 9
                    && number(&d, 0, 9) > 0
                    && weighted(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
            }
            Self::Personnummer => {
                (d.len() == 10 || d.len() == 12) && luhn(d.get(d.len() - 10..).unwrap_or(&[]))
            }
            Self::Vin => vin(&s),
            Self::Member => d.len() >= 5 && !is_date(value),
            Self::Icd => value.len() == 3 || value.get(3) == Some(&b'.') && value.len() > 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_hold_and_a_changed_digit_does_not() {
        let pairs: &[(Validator, &str, &str)] = &[
            (Validator::Pan, "4111 1111 1111 1111", "4111 1111 1111 1112"),
            (Validator::Pan, "3782-822463-10005", "3782-822463-10006"),
            (
                Validator::Iban,
                "DE89 3704 0044 0532 0130 00",
                "DE88 3704 0044 0532 0130 00",
            ),
            (Validator::Verhoeff, "2341 2341 2346", "2341 2341 2347"),
            (Validator::Nhs, "943 476 5919", "943 476 5918"),
            (Validator::Dni, "12345678Z", "12345678A"),
            (
                Validator::CodiceFiscale,
                "RSSMRA85T10A562S",
                "RSSMRA85T10A562T",
            ),
            (Validator::SteuerId, "86095742719", "86095742718"),
            (Validator::Pesel, "44051401359", "44051401358"),
            (Validator::Bsn, "111222333", "111222334"),
            (Validator::Cpf, "529.982.247-25", "529.982.247-26"),
            (Validator::Npi, "1234567893", "1234567894"),
            (Validator::Dea, "AB1234563", "AB1234564"),
            (Validator::Ahv, "756.9217.0769.85", "756.9217.0769.86"),
            (Validator::Nric, "S1234567D", "S1234567E"),
            (Validator::Hetu, "131052-308T", "131052-308U"),
            (Validator::Pps, "1234567T", "1234567U"),
            (
                Validator::ChinaId,
                "11010519491231002X",
                "110105194912310021",
            ),
            (
                Validator::Nir,
                "2 55 08 14 168 025 38",
                "2 55 08 14 168 025 39",
            ),
            (Validator::Isikukood, "37605030299", "37605030298"),
            (Validator::Svnr, "1237 010180", "1238 010180"),
            (Validator::Oib, "94577403194", "94577403195"),
            (Validator::Tfn, "123 456 782", "123 456 783"),
        ];
        for (check, good, bad) in pairs {
            assert!(check.passes(good.as_bytes()), "{check:?} {good}");
            assert!(!check.passes(bad.as_bytes()), "{check:?} {bad}");
        }
    }
}
