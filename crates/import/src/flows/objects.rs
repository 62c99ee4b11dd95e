//! [`Objects`]: the records of a log in JSON, an array of objects or an object a line, one at a time. An object that
//! begins with an array `records`, as exports of Azure do, is that array.

use std::io::{self, BufRead};

use serde_json::Value;

use super::lines::BYTES_MAX;

/// The objects of a log; memory is that of one object.
pub(crate) struct Objects<R> {
    input: R,
    buffer: Vec<u8>,
    /// The line on which the current object begins, from 1.
    pub(crate) line: u64,
    /// The line that is read.
    current: u64,
}

impl<R: BufRead> Objects<R> {
    pub(crate) fn new(input: R) -> Objects<R> {
        Objects { input, buffer: Vec::new(), line: 0, current: 1 }
    }

    /// Reads the text of the next object; brackets and commas between objects are skipped.
    ///
    /// # Errors
    /// Returns the errors of the input, and an error for an object of more than [`BYTES_MAX`] bytes or without its end.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        let (mut depth, mut in_string, mut is_escaped) = (0u32, false, false);
        loop {
            let read = self.input.fill_buf()?;
            if read.is_empty() {
                if depth == 0 {
                    return Ok(None);
                }
                let problem = format!("the object that begins on line {} has no end", self.line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            let mut used = 0;
            let mut is_whole = false;
            for &byte in read {
                used += 1;
                self.current += u64::from(byte == b'\n');
                if depth == 0 && byte != b'{' {
                    continue;
                }
                if depth == 0 {
                    self.line = self.current;
                }
                self.buffer.push(byte);
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_string => is_escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' if !in_string => depth += 1,
                    b'}' if !in_string => depth -= 1,
                    _ => {}
                }
                if byte == b'[' && depth == 1 && is_wrapper(&self.buffer) {
                    self.buffer.clear();
                    depth = 0;
                } else if depth == 0 {
                    is_whole = true;
                    break;
                }
            }
            self.input.consume(used);
            if is_whole {
                return Ok(Some(&self.buffer));
            }
            if self.buffer.len() > BYTES_MAX {
                let problem =
                    format!("the object that begins on line {} has more than {BYTES_MAX} bytes", self.line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
        }
    }
}

/// Returns whether the begin of an object is that of an array `records`.
fn is_wrapper(begin: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\"records\":[";
    begin.len() < 100 && begin.iter().filter(|byte| !byte.is_ascii_whitespace()).eq(BEGIN)
}

/// Returns the texts at the end of a path of arrays within an object.
pub(crate) fn texts_within<'a>(object: &'a Value, path: &[String]) -> Vec<&'a str> {
    let Some((first, rest)) = path.split_first() else { return object.as_str().into_iter().collect() };
    let array = first.split('.').try_fold(object, |value, key| value.get(key)).and_then(Value::as_array);
    array.into_iter().flatten().flat_map(|value| texts_within(value, rest)).collect()
}

/// Returns the text of the value at a path of keys such as `connection.src_ip`; `None` where there is none.
pub(crate) fn text_at(object: &Value, path: &str) -> Option<String> {
    let found = object.get(path).or_else(|| path.split('.').try_fold(object, |value, key| value.get(key)))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_arrays_and_lines_are_read() {
        let text = "{ \"records\": [\n{\"a\": \"}{\\\"\", \"b\": {\"c\": 1}}\n,{\"a\": 2}]}\n{\"a\":3}";
        let mut objects = Objects::new(text.as_bytes());
        let mut seen = Vec::new();
        while let Some(object) = objects.next().unwrap() {
            let value: Value = serde_json::from_slice(object).unwrap();
            seen.push((text_at(&value, "a"), text_at(&value, "b.c"), objects.line));
        }
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(seen, [(text("}{\""), text("1"), 2), (text("2"), None, 3), (text("3"), None, 4)]);
        let error = Objects::new("\n{\"a\": 1".as_bytes()).next().unwrap_err().to_string();
        assert_eq!(error, "the object that begins on line 2 has no end");
    }
}
