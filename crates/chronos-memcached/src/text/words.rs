//! Words of a command line, and numbers in them, with the meanings that C's functions give them in memcached: text
//! clients depend on the accepted forms.

use memchr::memchr;

/// The words of a line, divided by spaces.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| byte != b' ')?;
        let line = &self.0[start..];
        let end = memchr(b' ', line).unwrap_or(line.len());
        self.0 = &line[end..];
        Some(&line[..end])
    }
}

/// The same, where words are flags: searched byte by byte, as most end before a search that is made for long ones has
/// begun.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a>(pub &'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut start, line) = (0, self.0);
        while *line.get(start)? == b' ' {
            start += 1;
        }
        let mut end = start + 1;
        while end < line.len() && line[end] != b' ' {
            end += 1;
        }
        self.0 = &line[end..];
        Some(&line[start..end])
    }
}

/// Returns the first `N` words of `line`, and their number; `N` + 1 means that there are more.
pub fn first_words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut words: [&[u8]; N] = [&[]; N];
    let mut rest = Words(line);
    for (count, place) in words.iter_mut().enumerate() {
        match rest.next() {
            Some(word) => *place = word,
            None => return (words, count),
        }
    }
    let more = usize::from(rest.next().is_some());
    (words, N + more)
}

/// True for the first line of an HTTP request. The rest comes from a web page and must not become commands: the
/// connection is closed, as memcached closes it. memcached does so only if the first letter begins none of its frequent
/// commands: it answers `ERROR` to `search / HTTP/1.1`, and keeps the connection.
pub fn is_http(line: &[u8]) -> bool {
    Words(line).last().is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// Reports whether a byte is white space to C's isspace.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// Parses sign, digits, and whether they fit in 64 bits, at the head of `text`; None if the next byte is not white
/// space.
fn digits(text: &[u8]) -> Option<(bool, u64)> {
    let start = text.iter().position(|&byte| !is_space(byte))?;
    let text = &text[start..];
    let (negative, text) = match text[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let count = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if count == 0 || text.get(count).is_some_and(|&byte| byte != 0 && !is_space(byte)) {
        return None;
    }
    let mut number = 0_u64;
    for digit in &text[..count] {
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some((negative, number))
}

/// Parses like strtoull with memcached's checks: a minus sign wraps, and only a result that then looks negative is
/// refused.
pub fn unsigned_64(text: &[u8]) -> Option<u64> {
    let (negative, number) = digits(text)?;
    let number = if negative { number.wrapping_neg() } else { number };
    (!negative || (number as i64) >= 0).then_some(number)
}

/// Parses like strtoul into 32 bits: higher bits are cut off.
pub fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned_64(text).map(|number| number as u32)
}

/// Parses like strtol into 32 bits: higher bits are cut off, so that 4294967297 is 1.
pub fn signed_32(text: &[u8]) -> Option<i32> {
    let (negative, number) = digits(text)?;
    let number = if negative { 0_i64.checked_sub_unsigned(number)? } else { i64::try_from(number).ok()? };
    Some(number as i32)
}

/// Appends `number` in decimal.
pub fn push_number(reply: &mut Vec<u8>, number: impl itoa::Integer) {
    reply.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cs() {
        let cases: [(&[u8], Option<u64>, Option<i32>); 17] = [
            (b"0", Some(0), Some(0)),
            (b"12", Some(12), Some(12)),
            (b"+7", Some(7), Some(7)),
            (b"-1", None, Some(-1)),
            (b"-18446744073709551615", Some(1), None),
            (b"18446744073709551615", Some(u64::MAX), None),
            (b"18446744073709551616", None, None),
            (b"2147483648", Some(2_147_483_648), Some(i32::MIN)),
            (b"-2147483648", None, Some(i32::MIN)),
            (b"4294967297", Some(4_294_967_297), Some(1)),
            (b"9223372036854775808", Some(1 << 63), None),
            (b"-9223372036854775809", Some(i64::MAX as u64), None),
            (b"", None, None),
            (b"-", None, None),
            (b"1x", None, None),
            (b"\t5\r", Some(5), Some(5)),
            (b"5 apples", Some(5), Some(5)),
        ];
        for (text, unsigned, signed) in cases {
            assert_eq!(unsigned_64(text), unsigned, "{}", text.escape_ascii());
            assert_eq!(signed_32(text), signed, "{}", text.escape_ascii());
        }
        assert_eq!(unsigned_32(b"4294967297"), Some(1));
    }

    #[test]
    fn words_are_counted_to_one_more() {
        assert_eq!(first_words::<2>(b"  a   bb "), ([&b"a"[..], b"bb"], 2));
        assert_eq!(first_words::<2>(b"a"), ([&b"a"[..], b""], 1));
        assert_eq!(first_words::<2>(b"a b c d").1, 3);
    }
}
