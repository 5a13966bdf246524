//! Numbers of bytes, with the units that people write.

use throng_protocol::LARGEST_SIZE;

/// Units of bytes, in any case, and their sizes.
const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Parses a number of bytes such as `1000`, `64KiB`, `1.5MB`.
///
/// # Errors
/// When it is invalid.
pub fn bytes(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is not a number of bytes; write it like 1000, 64KiB or 10MB"
        ));
    }
    let unit = unit.trim_start();
    let known = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let Some((_, factor)) = known else {
        let letter = unit.to_ascii_uppercase();
        return Err(match letter.as_str() {
            "K" => format!(
                "`{text}` is ambiguous; write {digits}kB (1000 bytes) or {digits}KiB (1024 bytes)"
            ),
            "M" | "G" => {
                format!("`{text}` is ambiguous; write {digits}{letter}B or {digits}{letter}iB")
            }
            _ => format!(
                "`{unit}` in `{text}` is not a unit of bytes; use B, kB, MB, GB, KiB, MiB or GiB"
            ),
        });
    };
    if digits.contains('.') {
        return fraction(digits, *factor)
            .ok_or_else(|| format!("`{text}` is not a whole number of bytes"));
    }
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// A decimal number times a unit, if that is a whole number of bytes.
fn fraction(digits: &str, factor: u64) -> Option<u64> {
    let bytes = digits.parse::<f64>().ok()? * factor as f64;
    // Beyond that, floats cannot represent every whole number.
    let is_exact = bytes.fract() == 0.0 && bytes < 9e15;
    is_exact.then_some(bytes as u64)
}

/// Parses the size of a request.
///
/// # Errors
/// When it is invalid, or too large.
pub fn request_size(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        size if (1..=LARGEST_SIZE as u64).contains(&size) => Ok(size as usize),
        _ => Err(format!("`{text}` must be from 1B to 64MiB")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_in_any_case() {
        for (text, number) in [
            ("0", 0),
            ("1000", 1000),
            ("7B", 7),
            ("5 kB", 5_000),
            ("5KB", 5_000),
            ("2MB", 2_000_000),
            ("3GB", 3_000_000_000),
            ("4KiB", 4096),
            ("1mib", 1 << 20),
            ("1GiB", 1 << 30),
            ("1.5MB", 1_500_000),
            ("0.5KiB", 512),
        ] {
            assert_eq!(bytes(text), Ok(number));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, why) in [
            ("", "`` is not a number of bytes"),
            ("kB", "`kB` is not a number of bytes"),
            ("-1", "`-1` is not a number of bytes"),
            (".5MB", "`.5MB` is not a number of bytes"),
            ("1.5", "`1.5` is not a whole number of bytes"),
            ("1..5kB", "is not a whole number of bytes"),
            ("1k", "write 1kB (1000 bytes) or 1KiB (1024 bytes)"),
            ("10M", "write 10MB or 10MiB"),
            ("5x", "`x` in `5x` is not a unit of bytes; use B, kB"),
            ("18446744073709551616", "too large"),
            ("18446744073709551615GiB", "too large"),
        ] {
            let error = bytes(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn requests_have_sizes_within_bounds() {
        assert_eq!(request_size("64MiB"), Ok(LARGEST_SIZE));
        assert_eq!(LARGEST_SIZE, 64 << 20);
        for text in ["0", "65MiB", "18446744073709551615"] {
            assert!(request_size(text).unwrap_err().contains("from 1B to"));
        }
    }
}
