//! Lines of JSON that hold a checksum of themselves, for journals of finished runs.
//!
//! The checksum is the last field, `"check"`, and is computed of the line without it. A killed writer leaves a last
//! line without its end; its run is lost, and the reader of the journal reports that.

use std::borrow::Cow;
use std::path::Path;

use plimsoll_results::Digest;

const FIELD: &str = ",\"check\":\"";

/// The longest line of a journal, in bytes; lines of the largest runs have some thousands.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Splits a journal into its finished lines and the rest, which a writer that was killed left unfinished.
pub fn split(journal: &[u8]) -> (&[u8], &[u8]) {
    journal.split_at(journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1))
}

/// Checks that the rest of a journal may be the beginning of a line, and returns a warning that it is dropped; `None`
/// without a rest.
///
/// # Errors
/// In words, if the rest is longer than any line.
pub fn dropped(path: &Path, rest: &[u8]) -> Result<Option<String>, String> {
    check_length(rest)?;
    let warning = format!(
        "{}: the unfinished last line, {} bytes, is dropped, and its run is made again",
        path.display(),
        rest.len()
    );
    Ok((!rest.is_empty()).then_some(warning))
}

fn check_length(line: &[u8]) -> Result<(), String> {
    if line.len() <= LINE_BYTES_MAX {
        return Ok(());
    }
    Err(format!("the line has {} bytes, where {} MiB are allowed", line.len(), LINE_BYTES_MAX >> 20))
}

/// A line for a JSON object that has at least one field; without an end of line.
pub fn sealed(json: &str) -> String {
    let open = json.strip_suffix('}').unwrap_or(json);
    format!("{open}{FIELD}{}\"}}", Digest::of_text(json))
}

/// The JSON object of a line. One without a checksum, of an earlier version, is taken as it is.
///
/// # Errors
/// In words, if the line has been changed since it was written, or is longer than any line.
pub fn opened(line: &str) -> Result<Cow<'_, str>, String> {
    check_length(line.as_bytes())?;
    let Some((open, checksum)) = line.rsplit_once(FIELD) else { return Ok(Cow::Borrowed(line)) };
    let json = format!("{open}}}");
    let is = format!("{}\"}}", Digest::of_text(&json));
    if checksum == is { Ok(Cow::Owned(json)) } else { Err("its checksum is another".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_or_is_seen_to_be_damaged() {
        let json = r#"{"load":0.25,"runs":[1,2]}"#;
        let line = sealed(json);
        assert_eq!(opened(&line).as_deref(), Ok(json));
        assert_eq!(opened(json).as_deref(), Ok(json), "an earlier version's");
        for at in 0..line.len() {
            for bit in 0..7 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let damaged = String::from_utf8(bytes).expect("seven bits are UTF-8");
                // If the field itself is damaged, the numbers before it are whole.
                let is_seen = opened(&damaged).is_err()
                    || serde_json::from_str::<serde_json::Value>(&damaged).is_err()
                    || damaged.starts_with(json.trim_end_matches('}'));
                assert!(is_seen, "{damaged}");
            }
        }
    }
    #[test]
    fn an_unfinished_line_is_reported_and_has_a_limit() {
        let path = Path::new("runs.jsonl");
        assert_eq!(split(b"{}\n{}\n"), (&b"{}\n{}\n"[..], &b""[..]));
        assert_eq!(split(b"{}\n{\xff"), (&b"{}\n"[..], &b"{\xff"[..]));
        assert_eq!(split(b"{"), (&b""[..], &b"{"[..]));
        assert_eq!(dropped(path, b""), Ok(None));
        let said = "runs.jsonl: the unfinished last line, 3 bytes, is dropped, and its run is made again";
        assert_eq!(dropped(path, b"{\"a"), Ok(Some(said.to_owned())));
        let long = " ".repeat(LINE_BYTES_MAX + 1);
        let error = "the line has 16777217 bytes, where 16 MiB are allowed";
        assert_eq!(dropped(path, long.as_bytes()), Err(error.to_owned()));
        assert_eq!(opened(&long), Err(error.to_owned()));
    }
}
