//! Escapes foreign text before it is shown in a terminal, on a page or in a table cell.
//!
//! A name in a scenario may contain any character, and a run directory or a scenario may come from a stranger. Raw ESC
//! and OSC sequences would control the reader's terminal, and bidirectional marks make a line read as a different one
//! (CVE-2021-42574). All text that is shown passes through [`printable`], and each CSV cell through [`csv_cell`], since
//! a spreadsheet would take some cells for formulas.
//!
//! [`csv`] reads the records of a table, and [`spelling`] finds the word that a wrong one was meant to be.

pub mod csv;
pub mod spelling;

use std::borrow::Cow;

/// Returns `text` with each hidden character written as `\u{1b}`: control characters including line breaks, line and
/// paragraph separators, and bidirectional marks.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_, c| is_hidden(c))
}

/// Escapes a text of several lines as [`printable`] does, but keeps its line breaks and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |_, c| is_hidden(c) && c != '\n' && c != '\t')
}

/// Escapes as [`printable`] does, and also escapes text that already has the form of an escape, so that [`original`]
/// restores the text.
fn reversible(text: &str) -> Cow<'_, str> {
    escaped(text, |rest, c| is_hidden(c) || c == '\\' && rest.starts_with(ESCAPE))
}

/// Returns `text` with the selected characters escaped; `is_escaped` receives the rest of the text and the character.
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

/// The prefix of an escaped character.
const ESCAPE: &str = "\\u{";

/// Returns the text that was given to [`reversible`].
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

/// Escapes the hidden characters of a JSON text, as JSON itself does with the first 32 characters. The JSON value stays
/// the same.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Between its tokens, JSON has only blanks and line breaks, which stay as they are.
    let is_raw = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) {
            // All hidden characters are below the first surrogate.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a character is invisible or changes how others are displayed.
pub fn is_hidden(c: char) -> bool {
    let is_bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Writes a whole number, its thousands separated from 10,000 on.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() <= 4 { digits } else { grouped(&digits) }
}

/// Writes a whole number with its noun, whose plural has an `s`: `1 pair`, `2 pairs`.
pub fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Cuts the middle out of a line of more than `most` characters, which quotes a long value; a quarter of the rest is
/// its end.
pub fn shortened(line: &str, most: usize) -> Cow<'_, str> {
    let count = line.chars().count();
    if count <= most {
        return Cow::Borrowed(line);
    }
    let end = most / 4;
    let kept = line.chars().take(most.saturating_sub(end + 3)).chain("...".chars());
    Cow::Owned(kept.chain(line.chars().skip(count - end)).collect())
}

/// Separates the thousands of a whole number's digits by commas.
pub fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a text as a CSV cell: printable, never a formula, and quoted where RFC 4180 requires it. A text that a
/// spreadsheet would take for a formula gets a leading apostrophe, as spreadsheets write it themselves; numbers stay
/// numbers. [`from_csv_cell`] restores the text.
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

/// Returns the text that was given to [`csv_cell`], from a cell without its quotes.
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
