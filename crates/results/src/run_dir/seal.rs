//! A JSON file that holds a checksum of itself, so that every changed bit is detected.
//!
//! The checksum is the last field, `"checksum": "..."` at the end of the file, and is computed with zeros in its place.

use crate::digest::Digest;

/// The placeholder of a checksum that is yet to be computed.
pub(super) fn open() -> Option<String> {
    Some(ZEROS.to_owned())
}

const FIELD: &str = "\"checksum\": \"";
const ZEROS: &str = "00000000000000000000000000000000";

/// Returns `json` with its checksum, whose last field is the one of [`open`].
pub(super) fn sealed(json: &str) -> String {
    let digest = Digest::of_text(json).to_string();
    match place(json) {
        Some(place) => format!("{}{digest}{}", &json[..place], &json[place + ZEROS.len()..]),
        None => json.to_owned(),
    }
}

/// Checks that a text with a checksum is as it was written.
///
/// # Errors
/// In words, if not.
pub(super) fn check(text: &str) -> Result<(), String> {
    let Some(place) = place(text) else { return Err("its checksum is missing".to_owned()) };
    let (before, after) = (&text[..place], &text[place + ZEROS.len()..]);
    let (said, is) = (&text[place..place + ZEROS.len()], Digest::of_text(&format!("{before}{ZEROS}{after}")));
    if said == is.to_string() { Ok(()) } else { Err(format!("its checksum is {is}, not {said}")) }
}

/// Returns the position of the digits of the checksum.
fn place(text: &str) -> Option<usize> {
    let place = text.rfind(FIELD)? + FIELD.len();
    text.get(place..place + ZEROS.len()).map(|_| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flipped_bit_goes_unseen() {
        let text = sealed(&format!("{{\n  \"format\": 3,\n  \"title\": \"t\",\n  {FIELD}{ZEROS}\"\n}}\n"));
        assert_eq!(check(&text), Ok(()));
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let text = String::from_utf8(bytes).expect("seven bits are UTF-8");
                assert!(check(&text).is_err(), "{text}");
            }
            assert!(check(&text[..at]).is_err(), "{at}");
        }
    }
}
