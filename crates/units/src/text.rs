//! Texts of others, made fit to be shown: in a terminal, on a page, in a cell of a table.
//!
//! A name in a scenario may hold whatever its author likes, and a run directory or a scenario may be a stranger's.
//! Raw, ESC and OSC sequences would steer the reader's terminal, and bidirectional marks make a line read as
//! another than it is (CVE-2021-42574). Everything that is shown passes [`printable`], and every cell of CSV
//! [`csv_cell`], which a spreadsheet would otherwise take for a formula.

use std::borrow::Cow;

/// `text` with each character that is not to be seen written as `\u{1b}`: control characters, line breaks among
/// them, separators of lines and bidirectional marks.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_, c| is_hidden(c))
}

/// [`printable`] for a text of several lines, which keeps its line breaks and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |_, c| is_hidden(c) && c != '\n' && c != '\t')
}

/// [`printable`], so that [`original`] gives the text back: where it has the form of an escape itself, that is escaped.
fn reversible(text: &str) -> Cow<'_, str> {
    escaped(text, |rest, c| is_hidden(c) || c == '\\' && rest.starts_with(ESCAPE))
}

/// `text` with those characters escaped of which `is_escaped` says so, by the text from there on and the character.
fn escaped(text: &str, is_escaped: impl Fn(&str, char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.char_indices().position(|(at, c)| is_escaped(&text[at..], c)) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    for (number, (at, c)) in text.char_indices().enumerate() {
        if number >= first && is_escaped(&text[at..], c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// How an escaped character begins.
const ESCAPE: &str = "\\u{";

/// The text that [`reversible`] was given.
fn original(shown: &str) -> Cow<'_, str> {
    if !shown.contains(ESCAPE) {
        return Cow::Borrowed(shown);
    }
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some(start) = rest.find(ESCAPE) {
        text.push_str(&rest[..start]);
        let after = &rest[start + ESCAPE.len()..];
        let number =
            after.find('}').and_then(|end| Some((u32::from_str_radix(&after[..end], 16).ok()?, end)));
        match number.and_then(|(number, end)| Some((char::from_u32(number)?, end))) {
            Some((c, end)) => {
                text.push(c);
                rest = &after[end + 1..];
            }
            None => {
                text.push_str(ESCAPE);
                rest = after;
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// A text of JSON in which all that is not to be seen is escaped, as JSON itself does with the first 32 characters.
/// It means the same.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Between its tokens JSON has no characters but line breaks and blanks that this could meet.
    let is_raw = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) {
            // All of them are below the first surrogate.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is not to be seen, or changes how others are seen.
pub fn is_hidden(c: char) -> bool {
    let is_bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A text as a cell of CSV: printable, no formula, and in quotes where it must be (RFC 4180). What a spreadsheet would
/// take for a formula gets an apostrophe in front, as a spreadsheet itself writes it; numbers stay numbers.
/// [`from_csv_cell`] gives the text back.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let shown = reversible(text);
    let is_number = || shown.parse::<f64>().is_ok();
    let guarded = match shown.chars().next() {
        Some('=' | '+' | '-' | '@' | '\'') if !is_number() => Cow::Owned(format!("'{shown}")),
        _ => shown,
    };
    if guarded.contains([',', '"']) {
        Cow::Owned(format!("\"{}\"", guarded.replace('"', "\"\"")))
    } else {
        guarded
    }
}

/// The text that [`csv_cell`] was given, from a cell without its quotes.
pub fn from_csv_cell(cell: &str) -> Cow<'_, str> {
    original(cell.strip_prefix('\'').unwrap_or(cell))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_to_be_seen_is_written_out() {
        let cases = [
            ("plain, naïve, 東京, a\\b", "plain, naïve, 東京, a\\b"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("a\u{202e}b\u{2066}c\u{200f}\u{61c}", "a\\u{202e}b\\u{2066}c\\u{200f}\\u{61c}"),
            ("two\nlines\t", "two\\u{a}lines\\u{9}"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\\u{1b}", "\\u{1b}"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\n\tb\r\n\u{1b}"), "a\n\tb\\u{d}\n\\u{1b}");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let json = "{\n  \"a\u{202e}b\": \"\u{9b}\\u001b\"\n}";
        assert_eq!(printable_json(json), "{\n  \"a\\u202eb\": \"\\u009b\\u001b\"\n}");
    }

    #[test]
    fn no_cell_begins_a_formula_and_numbers_stay_numbers() {
        let cases = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("\t=1", "\\u{9}=1"),
            ("\r=1", "\\u{d}=1"),
            ("'=1", "''=1"),
            ("-0.5", "-0.5"),
            ("+1e9", "+1e9"),
            ("-", "'-"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("=a,b", "\"'=a,b\""),
            ("\\u{1b}", "\\u{5c}u{1b}"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(csv_cell(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn texts_come_back(text in r"(?s)(\\u\{|\\|\}|'|=|\x1b|\u{202e}|.){0,20}") {
            let shown = printable(&text);
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
            let shown = reversible(&text);
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
            prop_assert_eq!(original(&shown), text.as_str());
            let cell = csv_cell(&text);
            let inner = match cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')) {
                Some(inner) if cell.len() > 1 && text != cell => inner.replace("\"\"", "\""),
                _ => cell.clone().into_owned(),
            };
            prop_assert_eq!(from_csv_cell(&inner), text.as_str());
        }

        #[test]
        fn no_text_panics(text in "(?s).*") {
            original(&text);
            from_csv_cell(&text);
        }
    }
}
