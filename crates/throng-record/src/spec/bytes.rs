//! Numbers of bytes, with the units that people write.

use throng_protocol::LARGEST_SIZE;

/// What a number of bytes may end with, in whatever case, and how many bytes that is.
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

/// Reads a number of bytes such as `1000`, `64KiB`, `10MB`.
///
/// # Errors
/// When it is none.
pub fn bytes(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err(format!(
            "`{text}` is no number of bytes; write it like 1000, 64KiB or 10MB"
        ));
    }
    let unit = unit.trim_start();
    let known = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let Some((_, factor)) = known else {
        return Err(format!(
            "`{unit}` in `{text}` is no unit of bytes; there are B, kB, MB, GB, KiB, MiB and GiB"
        ));
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| format!("`{text}` is too great a number"))
}

/// Reads how many bytes a request has.
///
/// # Errors
/// When it is no such number, or too great.
pub fn request_size(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        size if (1..=LARGEST_SIZE as u64).contains(&size) => Ok(size as usize),
        _ => Err(format!(
            "`{text}` is no size of a request; it must be from 1 to {LARGEST_SIZE} bytes (64MiB)"
        )),
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
        ] {
            assert_eq!(bytes(text), Ok(number));
        }
    }

    #[test]
    fn what_is_no_number_of_bytes_is_refused_by_what_is_wrong() {
        for (text, why) in [
            ("", "`` is no number of bytes"),
            ("kB", "`kB` is no number of bytes"),
            ("-1", "`-1` is no number of bytes"),
            ("1.5MB", "`.5MB` in `1.5MB` is no unit"),
            ("5x", "`x` in `5x` is no unit of bytes; there are B, kB"),
            ("18446744073709551616", "too great"),
            ("18446744073709551615GiB", "too great"),
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
            assert!(request_size(text).unwrap_err().contains("from 1 to"));
        }
    }
}
