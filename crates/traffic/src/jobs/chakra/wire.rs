//! The wire format of protobuf, as far as traces need it: a message is fields, each of which has a number and a value.

use std::io::Read;

use super::BadChakra;

/// The value of a field of a protobuf message, as its wire type has it.
pub(super) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes, which nothing here needs.
    Fixed,
}

/// The fields of a protobuf message that begins at byte `start` of the file.
pub(super) struct WireFields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) start: u64,
    pub(super) at: usize,
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u64, WireValue<'a>), BadChakra>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        if rest.is_empty() {
            return None;
        }
        let field = field(rest);
        let place = self.start + self.at as u64;
        self.at = match &field {
            Some((_, _, after)) => self.bytes.len() - after.len(),
            None => self.bytes.len(),
        };
        let bad = || BadChakra::Format { at: place, problem: "it is no protobuf field".to_owned() };
        Some(field.map(|(number, value, _)| (number, value)).ok_or_else(bad))
    }
}

/// Returns the number and the value of the first field, and what follows it.
fn field(bytes: &[u8]) -> Option<(u64, WireValue<'_>, &[u8])> {
    let (key, rest) = number_of(bytes)?;
    let (value, rest) = match key & 7 {
        0 => number_of(rest).map(|(number, rest)| (WireValue::Number(number), rest))?,
        1 => (WireValue::Fixed, rest.get(8..)?),
        2 => {
            let (length, rest) = number_of(rest)?;
            let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (WireValue::Bytes(value), rest)
        }
        5 => (WireValue::Fixed, rest.get(4..)?),
        _ => return None,
    };
    Some((key >> 3, value, rest))
}

/// Returns the number at the beginning, seven bits a byte with the lowest first, and what follows it.
pub(super) fn number_of(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

/// Reads a length and the bytes that it takes; `None` at the end of the file.
pub(super) fn read_length(input: &mut impl Read, at: u64) -> Result<Option<(u64, u64)>, BadChakra> {
    let mut bytes = Vec::new();
    loop {
        let mut byte = [0];
        if input.read(&mut byte)? == 0 {
            return match bytes.is_empty() {
                true => Ok(None),
                false => Err(BadChakra::Format { at, problem: "the file ends within a length".to_owned() }),
            };
        }
        bytes.push(byte[0]);
        if let Some((length, _)) = number_of(&bytes) {
            return Ok(Some((length, bytes.len() as u64)));
        }
        if bytes.len() == 10 {
            return Err(BadChakra::Format { at, problem: "a length of more than ten bytes".to_owned() });
        }
    }
}
