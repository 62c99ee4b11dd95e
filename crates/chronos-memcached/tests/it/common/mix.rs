//! The paper's requests: 64-byte keys, 1024-byte values, 9 gets to 1 set.

use std::ops::Range;

use anyhow::{Result, bail};

/// Bytes of a value.
const VALUE_BYTES: usize = 1024;

/// Requests with these numbers: a tenth of all are sets, and keys come in an order that the processor cannot foresee.
pub fn requests(protocol: &str, keys: u64, numbers: Range<u64>, input: &mut Vec<u8>) -> Result<()> {
    input.clear();
    for number in numbers {
        let mixed =
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xa076_1d64_78bd_642f);
        let key = (mixed >> 32) % keys;
        if number % 10 == 9 {
            set(protocol, key, input)?;
        } else {
            get(protocol, key, input)?;
        }
    }
    Ok(())
}

fn key(number: u64) -> [u8; 64] {
    let mut key = *b"key-000000000000000000000000000000000000000000000000000000000000";
    let mut rest = number;
    for place in key.iter_mut().rev().take(8) {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// A get of key `number`.
pub fn get(protocol: &str, number: u64, input: &mut Vec<u8>) -> Result<()> {
    let key = key(number);
    let parts: [&[u8]; 3] = match protocol {
        "text" => [b"get ", &key, b"\r\n"],
        "meta" => [b"mg ", &key, b" v\r\n"],
        "binary" => [b"\x80\x00\x00\x40\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0", &key, b""],
        other => bail!("{other} is none of text, meta and binary"),
    };
    parts.iter().for_each(|part| input.extend_from_slice(part));
    Ok(())
}

/// A set of key `number`.
pub fn set(protocol: &str, number: u64, input: &mut Vec<u8>) -> Result<()> {
    let key = key(number);
    let value = [b'v'; VALUE_BYTES];
    let parts: [&[u8]; 5] = match protocol {
        "text" => [b"set ", &key, b" 0 0 1024\r\n", &value, b"\r\n"],
        "meta" => [b"ms ", &key, b" 1024\r\n", &value, b"\r\n"],
        "binary" => [
            b"\x80\x01\x00\x40\x08\0\0\0\0\0\x04\x48\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            &key,
            &value,
            b"",
            b"",
        ],
        other => bail!("{other} is none of text, meta and binary"),
    };
    parts.iter().for_each(|part| input.extend_from_slice(part));
    Ok(())
}
