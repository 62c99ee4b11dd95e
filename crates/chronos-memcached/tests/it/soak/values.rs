//! Values that identify themselves: bytes that follow from the key and the version, so that a wrong one is detected.

use std::borrow::Cow;

/// Bytes of key number and version at the front of a value.
const LABEL_BYTES: usize = 8;

/// Sizes of values, by the key's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// A value of up to 2000 bytes.
    Small,
    /// 4000 to 60 000 bytes.
    Middle,
    /// 100 000 to 900 000 bytes.
    Big,
}

fn mixed(mut number: u64) -> u64 {
    // The output function of splitmix64.
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the value of `key` in its version `version`.
pub fn value(key: u32, version: u32, size: Size) -> Vec<u8> {
    let seed = u64::from(key) << 32 | u64::from(version);
    let span = match size {
        Size::Small => LABEL_BYTES as u64..2000,
        Size::Middle => 4000..60_000,
        Size::Big => 100_000..900_000,
    };
    let bytes = (span.start + mixed(seed) % (span.end - span.start)) as usize;
    let mut value = Vec::with_capacity(bytes + LABEL_BYTES);
    value.extend_from_slice(&key.to_le_bytes());
    value.extend_from_slice(&version.to_le_bytes());
    let mut state = seed;
    while value.len() < bytes {
        state = mixed(state);
        value.extend_from_slice(&state.to_le_bytes());
    }
    value.truncate(bytes);
    value
}

/// Returns the version that `found` is of `key`.
///
/// # Errors
/// If it is not a version of the key; the error describes the difference from every value that the key ever had.
pub fn version(key: u32, size: Size, found: &[u8]) -> Result<u32, Cow<'static, str>> {
    let Some((label, _)) = found.split_first_chunk::<LABEL_BYTES>() else {
        return Err(format!("{} bytes are less than a label", found.len()).into());
    };
    let number = |place: usize| u32::from_le_bytes(label[place..place + 4].try_into().expect("four bytes"));
    if number(0) != key {
        return Err(format!("it is a value of key {}", number(0)).into());
    }
    let expected = value(key, number(4), size);
    if expected.len() != found.len() {
        return Err(format!("{} bytes in place of {}", found.len(), expected.len()).into());
    }
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        Some(place) => Err(format!("version {} is wrong from byte {place} on", number(4)).into()),
        None => Ok(number(4)),
    }
}
