//! Generated parts of pages that are otherwise written by hand.
//!
//! A part is between the lines `<!-- NAME: ... -->` and `<!-- end of NAME -->`.

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    pub name: &'a str,
    /// The rest of its first mark, after the name.
    pub about: &'a str,
    pub text: &'a str,
}

/// The parts of a page, in order.
pub fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = page;
    while let Some((before, part)) = next(rest) {
        rest = &rest[before.len() + part.text.len()..];
        parts.push(part);
    }
    parts
}

/// The page with a new text for each part.
pub fn renewed(page: &str, mut text: impl FnMut(Part<'_>) -> String) -> String {
    let mut renewed = String::new();
    let mut rest = page;
    while let Some((before, part)) = next(rest) {
        rest = &rest[before.len() + part.text.len()..];
        renewed += before;
        renewed += &text(part);
    }
    renewed + rest
}

/// The text up to and including the first mark of the next part, and that part.
fn next(page: &str) -> Option<(&str, Part<'_>)> {
    let mut begin = 0;
    for line in page.split_inclusive('\n') {
        begin += line.len();
        let mark = line
            .strip_prefix("<!-- ")
            .and_then(|mark| mark.trim_end().strip_suffix(" -->"));
        let Some((name, about)) = mark.and_then(|mark| mark.split_once(": ")) else {
            continue;
        };
        let (before, after) = page.split_at(begin);
        let end = after.find(&format!("<!-- end of {name} -->"))?;
        let text = &after[..end];
        return Some((before, Part { name, about, text }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Page

<!-- one: of it -->
old
<!-- end of one -->
by hand
<!-- two: of that -->
<!-- end of two -->
";

    #[test]
    fn parts_are_found_and_renewed() {
        let part = |name, about, text| Part { name, about, text };
        assert_eq!(
            parts(PAGE),
            [part("one", "of it", "old\n"), part("two", "of that", "")]
        );
        assert_eq!(renewed(PAGE, |part| part.text.to_owned()), PAGE);
        let renewed = renewed(PAGE, |part| format!("new {}\n", part.name));
        assert!(renewed.contains("-->\nnew one\n<!-- end of one -->\nby hand"));
        assert!(renewed.ends_with("-->\nnew two\n<!-- end of two -->\n"));
    }

    #[test]
    fn a_part_without_an_end_is_none() {
        assert_eq!(parts("<!-- one: of it -->\nold\n"), []);
        assert_eq!(parts("<!-- a remark -->\n"), []);
    }
}
