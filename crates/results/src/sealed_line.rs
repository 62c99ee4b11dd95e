//! Lines of JSON that hold a checksum of themselves, for journals of finished runs.
//!
//! The checksum is the last field, `"check"`, and is that of the line without it.

use std::borrow::Cow;

use crate::digest::Digest;

const FIELD: &str = ",\"check\":\"";

/// A line for a JSON object that has at least one field; without an end of line.
pub fn sealed(json: &str) -> String {
    let open = json.strip_suffix('}').unwrap_or(json);
    format!("{open}{FIELD}{}\"}}", Digest::of_text(json))
}

/// The JSON object of a line. One without a checksum, of an earlier version, is taken as it is.
///
/// # Errors
/// In words, if the line has been changed since it was written.
pub fn opened(line: &str) -> Result<Cow<'_, str>, String> {
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
                // Where the field itself is no longer known, the numbers before it are whole.
                let is_seen = opened(&damaged).is_err()
                    || serde_json::from_str::<serde_json::Value>(&damaged).is_err()
                    || damaged.starts_with(json.trim_end_matches('}'));
                assert!(is_seen, "{damaged}");
            }
        }
    }
}
