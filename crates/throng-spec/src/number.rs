//! Numbers as people write them: `1000`, `10k`, `1.5M`, `1e6`.

use serde::Deserializer;

use super::text::deserialize_number;

/// Suffixes of a number, and their power of ten.
const ENDINGS: [(char, i32); 4] = [('k', 3), ('K', 3), ('M', 6), ('G', 9)];
/// Maximum digits of a number, and maximum power of ten: enough for all counts.
const MOST_DIGITS: usize = 30;

/// A number as its digits and a power of ten.
fn read(text: &str) -> Result<(u128, i32), String> {
    let wrong = || format!("`{text}` is not a number; write it like 1000, 10k, 1.5M or 1e6");
    let typed = text.trim();
    if typed.ends_with('m') {
        return Err(format!("`{text}` is not a number; write M for a million"));
    }
    let ending = ENDINGS
        .into_iter()
        .find(|(letter, _)| typed.ends_with(*letter));
    let (number, mut power) = match ending {
        Some((letter, power)) => (&typed[..typed.len() - letter.len_utf8()], power),
        None => (typed, 0),
    };
    let (number, written) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let unsigned = written.strip_prefix('+').unwrap_or(written);
    let is_short = unsigned.len() <= 2 && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let exponent: Option<i32> = unsigned.parse().ok().filter(|_| is_short);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, part].concat();
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !are_digits || digits.len() > MOST_DIGITS {
        return Err(wrong());
    }
    power += exponent.ok_or_else(wrong)? - part.len() as i32;
    Ok((digits.parse().map_err(|_| wrong())?, power))
}

/// Parses a whole number.
///
/// # Errors
/// When it is not one.
pub fn whole_number(text: &str) -> Result<u64, String> {
    let (mut digits, mut power) = read(text)?;
    while power < 0 && digits % 10 == 0 {
        (digits, power) = (digits / 10, power + 1);
    }
    if power < 0 {
        return Err(format!("`{text}` is not a whole number"));
    }
    let factor = 10_u128.checked_pow(power as u32);
    let number = factor.and_then(|factor| digits.checked_mul(factor));
    number
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// Parses a decimal number.
///
/// # Errors
/// When it is not one.
pub fn number(text: &str) -> Result<f64, String> {
    let (digits, power) = read(text)?;
    let number = format!("{digits}e{power}").parse();
    number.map_err(|_| format!("`{text}` is not a number"))
}

/// Parses a whole number of at least 1.
///
/// # Errors
/// When it is not one.
pub fn at_least_one(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| format!("`{text}` is more than {}", u32::MAX))
}

/// The same for larger numbers.
///
/// # Errors
/// When it is not one.
pub fn count(text: &str) -> Result<u64, String> {
    let negative = text.trim().strip_prefix('-');
    if negative.is_some_and(|number| number.parse::<f64>().is_ok()) {
        return Err("must be at least 1".to_owned());
    }
    match whole_number(text)? {
        0 => Err("must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// Serde for whole numbers, which may also be text.
///
/// # Errors
/// When it is not one.
pub fn whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let read = |text: &str| {
        let number = T::try_from(whole_number(text)?);
        number.map_err(|_| format!("{text} is too large"))
    };
    deserialize_number(from, "a whole number, like 1000 or \"10k\"", read)
}

/// The same for optional ones.
///
/// # Errors
/// When it is not one.
pub fn optional_whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    whole(from).map(Some)
}

/// Serde for numbers, which may also be text.
pub(super) fn fraction<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    deserialize_number(from, "a number, like 0.5 or \"10k\"", number)
}

/// The same for optional ones.
pub(super) fn optional_fraction<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<f64>, D::Error> {
    fraction(from).map(Some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("1000", 1000),
            ("007", 7),
            ("1k", 1000),
            ("10K", 10_000),
            ("1M", 1_000_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("1e6", 1_000_000),
            ("1E+3", 1000),
            ("1.25e2", 125),
            ("2.50", 0),
            ("1.000k", 1000),
            ("1.000", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            if text == "2.50" {
                assert!(whole_number(text).unwrap_err().contains("not a whole"));
                assert_eq!(number(text), Ok(2.5));
            } else {
                assert_eq!(whole_number(text), Ok(value), "{text}");
                assert_eq!(number(text), Ok(value as f64), "{text}");
            }
        }
        assert_eq!(number("0.1"), Ok(0.1));
        for (text, why) in [
            ("", "is not a number"),
            ("k", "is not a number"),
            ("-5", "`-5` is not a number; write it like 1000, 10k"),
            ("+5", "is not a number"),
            ("5x", "`5x` is not a number"),
            ("1kk", "is not a number"),
            ("1e", "is not a number"),
            ("1e-3", "is not a number"),
            ("1e100", "is not a number"),
            (".5", "is not a number"),
            ("5.", "is not a number"),
            ("1.2.3", "is not a number"),
            ("1,000", "is not a number"),
            ("1m", "write M for a million"),
            ("inf", "is not a number"),
            ("NaN", "is not a number"),
            ("18446744073709551616", "too large"),
            ("1e30", "too large"),
            ("1e99G", "too large"),
        ] {
            let error = whole_number(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(at_least_one("4G"), Ok(4_000_000_000));
        assert!(at_least_one("5G").unwrap_err().contains("more than"));
        for text in ["0", "-5", "-0.5"] {
            assert_eq!(at_least_one(text).unwrap_err(), "must be at least 1");
        }
        assert_eq!(count("5G"), Ok(5_000_000_000));
    }

    proptest! {
        #[test]
        fn whole_numbers_come_back(value in any::<u64>(), text in "[0-9.eEkMG+-]{0,12}") {
            prop_assert_eq!(whole_number(&value.to_string()), Ok(value));
            if let (Ok(whole), Ok(number)) = (whole_number(&text), number(&text)) {
                prop_assert!((whole as f64 - number).abs() <= number.abs() * 1e-9);
            }
        }
    }
}
