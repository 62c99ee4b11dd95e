//! Implements memcached's text protocol (protocol.txt, "Storage commands" and "Retrieval command").

use super::message::{
    Answer, Parsed, Request, RequestKind, Texts, bad, block, line, no_line, number, position, refusal,
};

pub fn encode(request: &Request, texts: &Texts, out: &mut Vec<u8>) {
    match request.kind {
        RequestKind::Get => {
            out.extend_from_slice(b"get");
            for &key in &request.keys {
                out.push(b' ');
                texts.keys.write(key, out);
            }
            out.extend_from_slice(b"\r\n");
        }
        RequestKind::Set => {
            let key = request.keys[0];
            out.extend_from_slice(b"set ");
            texts.keys.write(key, out);
            out.extend_from_slice(b" 0 0 ");
            let mut digits = itoa::Buffer::new();
            out.extend_from_slice(digits.format(texts.values.size(key, request.version)).as_bytes());
            out.extend_from_slice(b"\r\n");
            texts.values.write(key, request.version, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

pub fn parse<'a>(request: &Request, passed: usize, texts: &Texts, input: &'a [u8]) -> Parsed<'a> {
    let Some((line, after)) = line(input) else { return no_line(input) };
    let expected: &[u8] = if request.kind == RequestKind::Set { b"STORED" } else { b"END" };
    if line == expected {
        return Parsed::Over { consumed: after, answer: Answer::Done };
    }
    if request.kind == RequestKind::Get
        && let Some(rest) = line.strip_prefix(b"VALUE ")
    {
        let (key, rest) = word(rest);
        let (_flags, rest) = word(rest);
        let (bytes, _cas) = word(rest);
        return match (position(request, passed, texts, key), number(bytes)) {
            (Some(position), Some(bytes)) => block(input, after, bytes, position),
            _ => bad(line),
        };
    }
    match refusal(line) {
        Some(answer) => Parsed::Over { consumed: after, answer },
        None => bad(line),
    }
}

/// Returns the first word of `line`, and the rest after the space.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(end) => (&line[..end], &line[end + 1..]),
        None => (line, &[]),
    }
}
