//! Implements memcached's binary protocol (protocol-binary.txt). A get of many keys is one quiet `GetKQ` a key, to
//! which a miss gets no reply, with `Noop` after the last. The opaque field holds the request's tag and the key's
//! position.

use super::message::{Answer, Parsed, Request, RequestKind, Texts, bad, excerpt};
use crate::draws::{below, mix64};

pub fn encode(request: &Request, texts: &Texts, out: &mut Vec<u8>) {
    let opaque = |position: usize| (u32::from(request.tag) << 16) | position as u32;
    match (request.kind, &request.keys[..]) {
        (RequestKind::Get, [key]) => {
            header(GET, *key, 0, 0, opaque(0), texts, out);
            texts.keys.write(*key, out);
        }
        (RequestKind::Get, keys) => {
            for (position, &key) in keys.iter().enumerate() {
                header(GETKQ, key, 0, 0, opaque(position), texts, out);
                texts.keys.write(key, out);
            }
            let mut noop = [0; HEADER];
            (noop[0], noop[1]) = (REQUEST, NOOP);
            noop[12..16].copy_from_slice(&opaque(keys.len()).to_be_bytes());
            out.extend_from_slice(&noop);
        }
        (RequestKind::Set, keys) => {
            let size = texts.values.size(keys[0], request.version);
            header(SET, keys[0], SET_EXTRAS, size, opaque(0), texts, out);
            out.extend_from_slice(&[0; SET_EXTRAS]);
            texts.keys.write(keys[0], out);
            texts.values.write(keys[0], request.version, out);
        }
    }
}

fn header(opcode: u8, key: u64, extras: usize, value: usize, opaque: u32, texts: &Texts, out: &mut Vec<u8>) {
    let key_bytes = texts.keys.len(key);
    let mut header = [0; HEADER];
    (header[0], header[1], header[4]) = (REQUEST, opcode, extras as u8);
    header[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
    header[6..8].copy_from_slice(&vbucket(key, texts.vbuckets).to_be_bytes());
    header[8..12].copy_from_slice(&((extras + key_bytes + value) as u32).to_be_bytes());
    header[12..16].copy_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&header);
}

/// Returns the virtual bucket of `key`, below `vbuckets`.
fn vbucket(key: u64, vbuckets: u16) -> u16 {
    below(mix64(key), u64::from(vbuckets)) as u16
}

pub fn parse<'a>(request: &Request, passed: usize, texts: &Texts, input: &'a [u8]) -> Parsed<'a> {
    if passed == 1 && request.kind == RequestKind::Get && request.keys.len() == 1 {
        return Parsed::Over { consumed: 0, answer: Answer::Done };
    }
    let Some(header) = input.first_chunk::<HEADER>() else { return Parsed::Incomplete };
    let field = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let (opcode, key_bytes, extras, status) = (header[1], field(2), usize::from(header[4]), field(6));
    let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    let (tag, position) = (field(12), field(14));
    let expected: &[u8] = match (request.kind, request.keys.len()) {
        (RequestKind::Get, 1) => &[GET],
        (RequestKind::Get, _) => &[GETKQ, NOOP],
        (RequestKind::Set, _) => &[SET],
    };
    if header[0] != RESPONSE || !expected.contains(&opcode) || body < extras + key_bytes {
        return bad(header);
    }
    if tag != usize::from(request.tag) {
        return Parsed::Bad(format!(
            "the reply is to request {tag} of the connection, not to {}",
            request.tag
        ));
    }
    let consumed = HEADER + body;
    let Some(body) = input.get(HEADER..consumed) else { return Parsed::Incomplete };
    let value = &body[extras + key_bytes..];
    match status {
        _ if opcode == NOOP => Parsed::Over { consumed, answer: Answer::Done },
        OK if request.kind == RequestKind::Set => Parsed::Over { consumed, answer: Answer::Done },
        OK => {
            let key = &body[extras..extras + key_bytes];
            let known = (passed..request.keys.len()).contains(&position)
                && (opcode == GET || texts.keys.is(request.keys[position], key));
            if known { Parsed::Value { consumed, position, value } } else { bad(key) }
        }
        NOT_FOUND if opcode == GET => Parsed::Over { consumed, answer: Answer::Done },
        _ => {
            let answer = Answer::Refused(format!("status {status:#04x}: {}", excerpt(value)));
            if opcode == GETKQ { bad(value) } else { Parsed::Over { consumed, answer } }
        }
    }
}

const HEADER: usize = 24;
const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const NOOP: u8 = 0x0a;
const GETKQ: u8 = 0x0d;
/// The bytes of flags and expiry.
const SET_EXTRAS: usize = 8;
const OK: usize = 0;
const NOT_FOUND: usize = 1;
