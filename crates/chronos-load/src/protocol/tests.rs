//! Tests requests and replies as tables of bytes.

use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::keys::KeyText;
use crate::values::{ValueSizes, Values};

fn texts() -> Texts {
    Texts {
        keys: KeyText::numbered("k", 4, 100).unwrap(),
        values: Values::new(ValueSizes::Fixed(3), 1, true),
        vbuckets: 0,
    }
}

fn get(keys: &[u64]) -> Request {
    Request { kind: RequestKind::Get, keys: keys.into(), version: 0, tag: 0x0102 }
}

fn set(key: u64) -> Request {
    Request { kind: RequestKind::Set, keys: smallvec![key], version: 0, tag: 0x0102 }
}

#[track_caller]
fn encoded(protocol: Protocol, request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    protocol.encode(request, &texts(), &mut out);
    out
}

/// Checks all parts of a reply, and that it is incomplete at every shorter length.
#[track_caller]
fn parts(protocol: Protocol, request: &Request, reply: &[u8]) -> Result<Parts, String> {
    let texts = texts();
    let walk = |mut input: &[u8]| {
        let (mut values, mut passed) = (Vec::new(), 0);
        loop {
            match protocol.parse(request, passed, &texts, input) {
                Parsed::Incomplete => return Ok(None),
                Parsed::Bad(reason) => return Err(reason),
                Parsed::Value { consumed, position, value } => {
                    values.push((position, value.to_vec()));
                    passed = position + 1;
                    input = &input[consumed..];
                }
                Parsed::Over { consumed, answer } => {
                    return Ok(Some((values, answer, input.len() - consumed)));
                }
            }
        }
    };
    let Some((values, answer, left)) = walk(reply)? else { panic!("{} is incomplete", reply.escape_ascii()) };
    assert_eq!(left, 0, "bytes left over");
    for length in 0..reply.len() {
        assert_eq!(walk(&reply[..length]).unwrap(), None, "{length} bytes are taken for the whole reply");
    }
    Ok((values, answer))
}

/// The values by position, and the answer.
type Parts = (Vec<(usize, Vec<u8>)>, Answer);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn text_requests_are_what_the_protocol_says() {
    let mut value = Vec::new();
    texts().values.write(7, 0, &mut value);
    let set_text = |head: &[u8]| [head, &value, b"\r\n"].concat();
    for (protocol, request, bytes) in [
        (Protocol::Ascii, get(&[7]), b"get k007\r\n".to_vec()),
        (Protocol::Ascii, get(&[7, 8]), b"get k007 k008\r\n".to_vec()),
        (Protocol::Ascii, set(7), set_text(b"set k007 0 0 3\r\n")),
        (Protocol::Meta, get(&[7]), b"mg k007 v\r\n".to_vec()),
        (Protocol::Meta, get(&[7, 8]), b"mg k007 k q v\r\nmg k008 k q v\r\nmn\r\n".to_vec()),
        (Protocol::Meta, set(7), set_text(b"ms k007 3\r\n")),
        (Protocol::Search, get(&[7]), b"get k007\r\n".to_vec()),
    ] {
        assert_eq!(encoded(protocol, &request).escape_ascii().to_string(), bytes.escape_ascii().to_string());
    }
}

#[test]
fn binary_requests_are_what_the_protocol_says() {
    let get_one = hex("80 00 0004 00 00 0000 00000004 01020000 0000000000000000 6b303037");
    assert_eq!(encoded(Protocol::Binary, &get(&[7])), get_one);
    let two = hex("80 0d 0004 00 00 0000 00000004 01020000 0000000000000000 6b303037
         80 0d 0004 00 00 0000 00000004 01020001 0000000000000000 6b303038
         80 0a 0000 00 00 0000 00000000 01020002 0000000000000000");
    assert_eq!(encoded(Protocol::Binary, &get(&[7, 8])), two);
    let mut set_bytes =
        hex("80 01 0004 08 00 0000 0000000f 01020000 0000000000000000 0000000000000000 6b303037");
    texts().values.write(7, 0, &mut set_bytes);
    assert_eq!(encoded(Protocol::Binary, &set(7)), set_bytes);
}

#[test]
fn the_vbucket_of_a_key_is_below_their_number() {
    let texts = Texts { vbuckets: 16, ..texts() };
    let mut seen = [0; 16];
    for key in 0..100 {
        let mut out = Vec::new();
        Protocol::Binary.encode(&get(&[key]), &texts, &mut out);
        seen[usize::from(u16::from_be_bytes([out[6], out[7]]))] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn replies_are_read() {
    let done = |values: &[(usize, &str)]| {
        let values = values.iter().map(|(position, value)| (*position, value.as_bytes().to_vec())).collect();
        Ok((values, Answer::Done))
    };
    for (protocol, request, reply, expected) in [
        (Protocol::Ascii, get(&[7]), "VALUE k007 0 3\r\na\r\n\r\nEND\r\n", done(&[(0, "a\r\n")])),
        (Protocol::Ascii, get(&[7]), "END\r\n", done(&[])),
        (Protocol::Ascii, get(&[6, 7]), "VALUE k007 0 3\r\nabc\r\nEND\r\n", done(&[(1, "abc")])),
        (Protocol::Ascii, set(7), "STORED\r\n", done(&[])),
        (
            Protocol::Ascii,
            set(7),
            "SERVER_ERROR out of memory storing object\r\n",
            Ok((vec![], Answer::Refused("SERVER_ERROR out of memory storing object".into()))),
        ),
        (Protocol::Meta, get(&[7]), "VA 3\r\nabc\r\n", done(&[(0, "abc")])),
        (Protocol::Meta, get(&[7]), "EN\r\n", done(&[])),
        (
            Protocol::Meta,
            get(&[6, 7, 8]),
            "VA 1 kk006\r\na\r\nVA 2 kk008\r\nbc\r\nMN\r\n",
            done(&[(0, "a"), (2, "bc")]),
        ),
        (Protocol::Meta, set(7), "HD\r\n", done(&[])),
        (Protocol::Meta, set(7), "NS\r\n", Ok((vec![], Answer::Refused("NS".into())))),
    ] {
        assert_eq!(parts(protocol, &request, reply.as_bytes()), expected, "{protocol:?} {reply}");
    }
}

#[test]
fn binary_replies_are_read() {
    let value = hex("81 00 0000 04 00 0000 00000007 01020000 0000000000000001 00000000 616263");
    let done = |values: &[(usize, &[u8])]| {
        Ok((values.iter().map(|(position, value)| (*position, value.to_vec())).collect(), Answer::Done))
    };
    assert_eq!(parts(Protocol::Binary, &get(&[7]), &value), done(&[(0, b"abc")]));
    let miss = hex("81 00 0000 00 00 0001 00000009 01020000 0000000000000000 4e6f7420666f756e64");
    assert_eq!(parts(Protocol::Binary, &get(&[7]), &miss), done(&[]));
    let second = hex("81 0d 0004 04 00 0000 0000000b 01020001 0000000000000001 00000000 6b303037 616263
         81 0a 0000 00 00 0000 00000000 01020002 0000000000000000");
    assert_eq!(parts(Protocol::Binary, &get(&[6, 7]), &second), done(&[(1, b"abc")]));
    let full = hex("81 01 0000 00 00 0082 00000003 01020000 0000000000000000 6f6f6d");
    assert_eq!(
        parts(Protocol::Binary, &set(7), &full),
        Ok((vec![], Answer::Refused("status 0x82: oom".to_owned())))
    );
    let other = hex("81 01 0000 00 00 0000 00000000 01030000 0000000000000000");
    assert_eq!(
        parts(Protocol::Binary, &set(7), &other),
        Err("the reply is to request 259 of the connection, not to 258".to_owned())
    );
}

#[test]
fn what_is_no_reply_is_told() {
    for (protocol, request, reply) in [
        (Protocol::Ascii, get(&[7]), "STORED\r\n"),
        (Protocol::Ascii, set(7), "END\r\n"),
        (Protocol::Ascii, get(&[7]), "VALUE k008 0 3\r\nabc\r\nEND\r\n"),
        (Protocol::Ascii, get(&[7]), "VALUE k007 0 x\r\nabc\r\nEND\r\n"),
        (Protocol::Ascii, get(&[7]), "VALUE k007 0 3\r\nabcd\r\nEND\r\n"),
        (Protocol::Meta, get(&[7]), "HD\r\n"),
        (Protocol::Meta, get(&[6, 7]), "VA 3\r\nabc\r\nMN\r\n"),
    ] {
        let parsed = protocol.parse(&request, 0, &texts(), reply.as_bytes());
        assert!(matches!(parsed, Parsed::Bad(_)), "{protocol:?} {reply}: {parsed:?}");
    }
    assert!(matches!(Protocol::Ascii.parse(&get(&[7]), 0, &texts(), &[b'x'; 3000]), Parsed::Bad(_)));
}

#[test]
fn frames_are_written_and_read() {
    assert_eq!(DatagramFrame::of_request(0x0304), [3, 4, 0, 0, 0, 1, 0, 0]);
    let frame = DatagramFrame { request: 0x0304, sequence: 1, total: 2 };
    assert_eq!(DatagramFrame::split(&[3, 4, 0, 1, 0, 2, 0, 0, 9]), Some((frame, &[9][..])));
    assert_eq!(DatagramFrame::split(&[3, 4, 0, 2, 0, 2, 0, 0, 9]), None);
    assert_eq!(DatagramFrame::split(&[3, 4, 0]), None);
}

/// The replies that the property below damages.
const REPLIES: [&[u8]; 5] = [
    b"VALUE k007 0 3\r\nabc\r\nEND\r\n",
    b"VA 3 kk007\r\nabc\r\nMN\r\n",
    b"VA 9999999999\r\n",
    b"\x81\x00\x00\x00\x04\x00\x00\x00\xff\xff\xff\xff\x01\x02\x00\x00\0\0\0\0\0\0\0\0",
    b"\x81\x0d\x00\x04\x04\x00\x00\x00\x00\x00\x00\x0b\x01\x02\x00\x01\0\0\0\0\0\0\0\x01\0\0\0\0k007abc",
];

proptest! {
    /// Any input is a reply, a part of one, or is rejected.
    #[test]
    fn any_bytes_are_taken_or_refused(
        start in prop::sample::select(&REPLIES[..]),
        kept in 0..60_usize,
        more in prop::collection::vec(any::<u8>(), 0..60),
        flipped in prop::collection::vec((0..60_usize, any::<u8>()), 0..4),
    ) {
        let mut input = [&start[..kept.min(start.len())], &more].concat();
        for (at, mask) in flipped {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= mask;
            }
        }
        for protocol in [Protocol::Ascii, Protocol::Meta, Protocol::Binary] {
            for request in [get(&[7]), get(&[6, 7, 8]), set(7)] {
                for passed in 0..=request.keys.len() {
                    match protocol.parse(&request, passed, &texts(), &input) {
                        Parsed::Value { consumed, position, value } => {
                            prop_assert!(value.len() <= consumed && consumed <= input.len());
                            prop_assert!((passed..request.keys.len()).contains(&position));
                        }
                        Parsed::Over { consumed, .. } => prop_assert!(consumed <= input.len()),
                        Parsed::Incomplete | Parsed::Bad(_) => {}
                    }
                }
            }
        }
        let _ = DatagramFrame::split(&input);
    }
}
