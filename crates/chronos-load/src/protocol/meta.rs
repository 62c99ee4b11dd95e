//! Implements memcached's meta commands (protocol.txt, "Meta Commands"). A get of many keys is one quiet `mg` a key, to
//! which a miss gets no reply, with `mn` after the last.

use super::message::{
    Answer, Parsed, Request, RequestKind, Texts, bad, block, line, no_line, number, position, refusal,
};

pub fn encode(request: &Request, texts: &Texts, out: &mut Vec<u8>) {
    match (request.kind, &request.keys[..]) {
        (RequestKind::Get, [key]) => {
            out.extend_from_slice(b"mg ");
            texts.keys.write(*key, out);
            out.extend_from_slice(b" v\r\n");
        }
        (RequestKind::Get, keys) => {
            for &key in keys {
                out.extend_from_slice(b"mg ");
                texts.keys.write(key, out);
                out.extend_from_slice(b" k q v\r\n");
            }
            out.extend_from_slice(b"mn\r\n");
        }
        (RequestKind::Set, keys) => {
            out.extend_from_slice(b"ms ");
            texts.keys.write(keys[0], out);
            out.push(b' ');
            let mut digits = itoa::Buffer::new();
            out.extend_from_slice(digits.format(texts.values.size(keys[0], request.version)).as_bytes());
            out.extend_from_slice(b"\r\n");
            texts.values.write(keys[0], request.version, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

pub fn parse<'a>(request: &Request, passed: usize, texts: &Texts, input: &'a [u8]) -> Parsed<'a> {
    if passed == 1 && request.kind == RequestKind::Get && request.keys.len() == 1 {
        // The value was the whole reply.
        return Parsed::Over { consumed: 0, answer: Answer::Done };
    }
    let Some((line, after)) = line(input) else { return no_line(input) };
    let over: &[u8] = match (request.kind, request.keys.len()) {
        (RequestKind::Get, 1) => b"EN",
        (RequestKind::Get, _) => b"MN",
        (RequestKind::Set, _) => b"HD",
    };
    let mut words = line.split(|&byte| byte == b' ');
    match words.next() {
        Some(word) if word == over => Parsed::Over { consumed: after, answer: Answer::Done },
        Some(b"VA") if request.kind == RequestKind::Get => {
            let bytes = words.next().and_then(number);
            let key = words.find_map(|flag| flag.strip_prefix(b"k"));
            let position = match key {
                Some(key) => position(request, passed, texts, key),
                None => (request.keys.len() == 1).then_some(0),
            };
            match (bytes, position) {
                (Some(bytes), Some(position)) => block(input, after, bytes, position),
                _ => bad(line),
            }
        }
        _ => match refusal(line) {
            Some(answer) => Parsed::Over { consumed: after, answer },
            None => bad(line),
        },
    }
}
