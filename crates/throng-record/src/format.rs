//! Numbers and lists for readers. An absent value is "–", never 0.

/// Replaces a value that was not measured.
pub const ABSENT: &str = "–";

/// Replaces a control character.
const UNSHOWN: char = '\u{fffd}';

/// The character, if it is visible or ends a line: no control character, whose sequences move the cursor or worse,
/// and none that changes the text direction.
pub fn shown(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => UNSHOWN,
        c if c.is_control() => UNSHOWN,
        c => c,
    }
}

/// Text from outside without such characters.
pub fn harmless(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Text filled up with spaces. The width in a format string ends at 65,535.
pub fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &gap(text, width)
}

/// The same, with the text at the right.
pub fn padded_left(text: &str, width: usize) -> String {
    gap(text, width) + text
}

fn gap(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// At most this many characters of a text, the last of which shows that there are more.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let begin = text.chars().take(most.saturating_sub(1));
    begin.chain(['…']).collect()
}

/// Beginning and end of a text with more than `most` characters: an error may quote a whole file.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(length - half).collect();
    format!("{begin} … {end}")
}

/// The value as formatted by `text`, or "–".
pub fn or_absent(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), text)
}

/// Three significant digits, thousands separated: "158,000", "6.41", "0.0123".
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let first_guess = value.abs().log10().floor() as i32 + 1;
    let unit = 10_f64.powi(first_guess - 3);
    let value = (value / unit).round() * unit;
    // Rounding may have carried over: 999.6 has become 1000.
    let digits_before = (value.abs() * (1.0 + 1e-12)).log10().floor() as i32 + 1;
    if digits_before > 3 {
        return whole(value);
    }
    let decimals = (3 - digits_before).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

/// A whole number, thousands separated: "1,000".
pub fn whole(value: f64) -> String {
    let text = grouped(&format!("{:.0}", value.abs()));
    if value <= -0.5 {
        format!("-{text}")
    } else {
        text
    }
}

/// A value with its unit: "1,230 ms", "45.1 %", "50 clients".
pub fn valued(value: f64, unit: Option<&str>) -> String {
    let text = if value.fract() == 0.0 && value.abs() < 1e6 {
        whole(value)
    } else {
        number(value)
    };
    match unit {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    }
}

/// A number with thousands separated and its own decimals: "72,094.85".
pub fn grouped(number: &str) -> String {
    let (before, after) = match number.find('.') {
        Some(point) => number.split_at(point),
        None => (number, ""),
    };
    let (sign, digits) = match before.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", before),
    };
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + after
}

/// Two decimals, for values around 1; none from 100.
pub fn hundredths(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        whole(value)
    }
}

/// A time given in microseconds: "6.41 µs", "12.3 ms", "1.02 s".
pub fn time(microseconds: f64) -> String {
    let (unit, factor) = unit_of_time(microseconds);
    format!("{} {unit}", number(microseconds / factor))
}

/// The unit that suits a time in microseconds, and its number of microseconds.
pub fn unit_of_time(microseconds: f64) -> (&'static str, f64) {
    if microseconds < 999.5 {
        ("µs", 1.0)
    } else if microseconds < 999_500.0 {
        ("ms", 1e3)
    } else {
        ("s", 1e6)
    }
}

/// A duration: "45s", "2m 10s", "1h 05m".
pub fn span(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h {minutes:02}m"),
    }
}

/// An estimated duration in words: "45 seconds", "20 minutes", "1.5 hours".
pub fn about(time: std::time::Duration) -> String {
    match time.as_secs() {
        seconds @ ..90 => counted(seconds.max(1) as u32, "second"),
        seconds @ ..5400 => counted(((seconds + 30) / 60) as u32, "minute"),
        seconds => format!("{:.1} hours", seconds as f64 / 3600.0),
    }
}

/// A size in bytes: "2.31 MiB".
pub fn bytes(value: f64) -> String {
    let (unit, factor) = unit_of_bytes(value);
    format!("{} {unit}", number(value / factor))
}

/// The unit that suits a size in bytes, and its number of bytes.
pub fn unit_of_bytes(value: f64) -> (&'static str, f64) {
    let (mut unit, mut factor) = ("B", 1.0);
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value / factor < 1000.0 {
            break;
        }
        factor *= 1024.0;
        unit = larger;
    }
    (unit, factor)
}

/// A size as users write it: "100 kB", "10 MB", "1,500 bytes".
pub fn decimal_bytes(size: usize) -> String {
    match size {
        size if size >= 1_000_000 && size.is_multiple_of(1_000_000) => {
            format!("{} MB", whole(size as f64 / 1e6))
        }
        size if size >= 1000 && size.is_multiple_of(1000) => {
            format!("{} kB", whole(size as f64 / 1e3))
        }
        size if size >= 1024 && size.is_multiple_of(1024) => {
            format!("{} KiB", whole(size as f64 / 1024.0))
        }
        size => format!("{} bytes", whole(size as f64)),
    }
}

/// Jain's index: three decimals, and never 1 if it is slightly less.
pub fn index(value: f64) -> String {
    if (0.9995..1.0).contains(&value) {
        return ">0.999".to_owned();
    }
    format!("{value:.3}")
}

/// "a", "a and b", "a, b and c".
pub fn list<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let texts: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", texts.join(", "), last.as_ref())
        }
    }
}

/// "a and b", "a, b and 3 more": at most `most` names, and how many more there are.
pub fn first_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let mut texts: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(most));
    if names.len() > most {
        texts.push(&more);
    }
    list(&texts)
}

/// "1 client", "1,000 clients".
pub fn counted(count: u32, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(f64::from(count)))
}

/// With a capital first letter. A letter before a digit, as in `p99`, stays as it is.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if !second.is_ascii_digit() => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// With a capital first letter, unless it begins with one of these names, which keep theirs.
pub fn capitalized_unless(text: &str, names: &[&str]) -> String {
    let begins = |name: &&str| {
        let rest = text.strip_prefix(*name);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    if names.iter().any(begins) {
        return text.to_owned();
    }
    capitalized(text)
}

/// A label within a sentence: with a lower-case first letter, unless it is an abbreviation.
pub fn lowered(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), label.chars().nth(1)) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => label.to_owned(),
    }
}

/// As a sentence: with a capital first letter and a full stop.
pub fn sentence(text: &str) -> String {
    format!("{}.", capitalized(text.trim_end_matches('.')))
}

/// Foreign text without characters that would control the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// "0.5 CPUs": what a quota allows.
pub fn cpus(quota: f64) -> String {
    let two_digits = format!("{quota:.2}");
    let number = two_digits.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {}", if number == "1" { "CPU" } else { "CPUs" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_capitals_but_names_keep_their_letters() {
        assert_eq!(capitalized("its latency"), "Its latency");
        assert_eq!(capitalized("p99 is higher"), "p99 is higher");
        assert_eq!(capitalized(""), "");
        let names = ["epoll", "a.out"];
        assert_eq!(capitalized_unless("epoll's p99", &names), "epoll's p99");
        assert_eq!(capitalized_unless("epolling", &names), "Epolling");
        assert_eq!(
            capitalized_unless("equivalent: p50", &names),
            "Equivalent: p50"
        );
        assert_eq!(lowered("Requests/s"), "requests/s");
        assert_eq!(lowered("CPU per request"), "CPU per request");
        assert_eq!(sentence("no such file."), "No such file.");
    }

    #[test]
    fn texts_are_cut_and_padded_to_any_width() {
        assert_eq!([cut("abc", 3), cut("abcd", 3)], ["abc", "ab…"]);
        assert_eq!([padded("ä", 3), padded_left("ä", 3)], ["ä  ", "  ä"]);
        assert_eq!([padded("abc", 2), padded_left("abc", 2)], ["abc", "abc"]);
        assert_eq!(padded("", 70_000).len(), 70_000);
        assert_eq!(
            [shortened("abcd", 4), shortened("abcde", 4)],
            ["abcd", "ab … de"]
        );
    }

    #[test]
    fn numbers_keep_three_digits() {
        let texts = [158_234.0, 1000.0, 999.6, 64.12, 6.409, 0.012_34, 0.0].map(number);
        assert_eq!(
            texts,
            ["158,000", "1,000", "1,000", "64.1", "6.41", "0.0123", "0"]
        );
    }

    #[test]
    fn times_and_sizes_have_fitting_units() {
        assert_eq!(
            [6.4, 999.9, 1_020_000.0].map(time),
            ["6.40 µs", "1.00 ms", "1.02 s"]
        );
        assert_eq!([512.0, 2_400_000.0].map(bytes), ["512 B", "2.29 MiB"]);
    }

    #[test]
    fn thousands_are_separated_before_the_point() {
        let texts = ["999", "1000", "-12345.6789", "0.12345"].map(grouped);
        assert_eq!(texts, ["999", "1,000", "-12,345.6789", "0.12345"]);
        assert_eq!([-1000.0, -0.4].map(whole), ["-1,000", "0"]);
    }

    #[test]
    fn an_index_just_below_one_does_not_look_perfect() {
        assert_eq!([1.0, 0.9999, 0.98].map(index), ["1.000", ">0.999", "0.980"]);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn times_are_said_as_one_says_them() {
        let text = |seconds: u64| span(std::time::Duration::from_secs(seconds));
        assert_eq!(
            [text(0), text(59), text(130), text(3900)],
            ["0s", "59s", "2m 10s", "1h 05m"]
        );
        assert_eq!(span(std::time::Duration::from_millis(59_700)), "1m 00s");
    }
}
