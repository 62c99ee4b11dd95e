//! memcached's frame for datagrams: request id, sequence number, number of datagrams, and a reserved field, 16 bits
//! each. Services that speak memcached's protocol open and close it with [`unseal`] and [`seal`].
//!
//! A reply that does not fit is an error ([`TOO_LARGE`]), never a part of itself. A reply is cut into datagrams of at
//! most 1400 bytes. memcached 1.6 numbers every value of a multi-get anew; here the reply to a datagram is one
//! sequence, as its protocol document has it.

/// Bytes of the frame header.
pub const FRAME_BYTES: usize = 8;
/// Bytes of a datagram that we send, its frame header included.
pub const DATAGRAM_BYTES_MAX: usize = 1400;
/// Bytes of a reply in one datagram.
const PART_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - FRAME_BYTES;

/// The answer in place of a reply that is over the server's limit, or would need more datagrams than can be numbered.
pub const TOO_LARGE: &[u8] = b"SERVER_ERROR too large for UDP\r\n";

/// Returns the request id and the request; `None` for a datagram that is dropped: a fragment, a request in several
/// datagrams, or a reply. Two servers that answered replies could be set on each other by one forged datagram, and
/// would never end.
pub fn unseal(datagram: &[u8]) -> Option<(u64, &[u8])> {
    let (header, request) = datagram.split_first_chunk::<FRAME_BYTES>()?;
    if header[4..6] != [0, 1] || is_reply(*request.first()?) {
        return None;
    }
    Some((u64::from(u16::from_be_bytes([header[0], header[1]])), request))
}

/// Returns whether a message that begins with this byte is a reply: words of text and meta replies are in capitals
/// (`ERROR`, `VALUE`, `HD`) or numbers (of `incr`), and the words of commands are not; binary replies have a magic byte
/// of their own.
fn is_reply(first: u8) -> bool {
    first.is_ascii_uppercase() || first.is_ascii_digit() || first == BINARY_REPLY
}

/// The magic of replies in the binary protocol.
const BINARY_REPLY: u8 = 0x81;

/// Calls `send` as [`seal`] does, if all datagrams have at most `bytes_max` bytes together. Otherwise the reply is an
/// error in its protocol, or nothing where that is too long as well: so a forger of a source address cannot have the
/// server send more to that address than the forger sends.
pub fn seal_within(id: u64, bytes_max: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
    /// Status "value too large" of the binary protocol.
    const STATUS_TOO_LARGE: u8 = 3;
    let is_short =
        |reply: &[u8]| (reply.len() + FRAME_BYTES * reply.len().div_ceil(PART_BYTES_MAX)) as u64 <= bytes_max;
    let mut binary = [0; 24];
    let error = match reply.first_chunk::<24>() {
        Some(header) if header[0] == BINARY_REPLY => {
            // Magic and operation, the status, and the number by which the client knows its request.
            binary[..2].copy_from_slice(&header[..2]);
            binary[7] = STATUS_TOO_LARGE;
            binary[12..16].copy_from_slice(&header[12..16]);
            &binary[..]
        }
        _ => TOO_LARGE,
    };
    if let Some(reply) = [reply, error].into_iter().find(|reply| is_short(reply)) {
        seal(id, reply, send);
    }
}

/// Calls `send` with each datagram of `reply` to request `id`.
pub fn seal(id: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
    let mut datagram = [0; DATAGRAM_BYTES_MAX];
    let parts = reply.chunks(PART_BYTES_MAX);
    let Ok(count) = u16::try_from(parts.len()) else { return seal(id, TOO_LARGE, send) };
    for (sequence, part) in parts.enumerate() {
        for (place, number) in [id as u16, sequence as u16, count, 0].into_iter().enumerate() {
            datagram[2 * place..][..2].copy_from_slice(&number.to_be_bytes());
        }
        datagram[FRAME_BYTES..][..part.len()].copy_from_slice(part);
        send(&datagram[..FRAME_BYTES + part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_is_one_sequence() {
        let reply = vec![b'x'; 3000];
        let mut sent = Vec::new();
        seal(0x1234, &reply, &mut |datagram| sent.push(datagram.to_vec()));
        let headers: Vec<_> = sent.iter().map(|datagram| &datagram[..8]).collect();
        assert_eq!(
            headers,
            [[0x12, 0x34, 0, 0, 0, 3, 0, 0], [0x12, 0x34, 0, 1, 0, 3, 0, 0], [0x12, 0x34, 0, 2, 0, 3, 0, 0]]
        );
        assert_eq!(sent.iter().map(|datagram| datagram.len() - 8).collect::<Vec<_>>(), [1392, 1392, 216]);
    }

    #[test]
    fn a_reply_of_more_datagrams_than_have_numbers_is_an_error() {
        const MOST: usize = 65_535 * 1392;
        for (bytes, count) in [(MOST, 65_535), (MOST + 1, 1)] {
            let (mut sent, mut last) = (0_u32, Vec::new());
            seal(1, &vec![b'x'; bytes], &mut |datagram| {
                assert_eq!(
                    datagram[2..6],
                    [&(sent as u16).to_be_bytes()[..], &(count as u16).to_be_bytes()].concat()
                );
                sent += 1;
                last = datagram.to_vec();
            });
            assert_eq!(sent, count);
            assert_eq!(&last[8..] == TOO_LARGE, count == 1);
        }
    }

    #[test]
    fn a_reply_above_its_limit_is_an_error_or_nothing() {
        let sent = |bytes_max: u64, reply: &[u8]| {
            let mut sent = Vec::new();
            seal_within(7, bytes_max, reply, &mut |datagram| sent.push(datagram[8..].to_vec()));
            sent
        };
        let two = [b'x'; 1393];
        assert_eq!(sent(1393 + 16, &two), [&two[..1392], b"x"]);
        assert_eq!(sent(1393 + 15, &two), [TOO_LARGE]);
        assert!(sent(TOO_LARGE.len() as u64 + 7, &two).is_empty());
        let binary = b"\x81\0\0\0\x04\0\0\0\0\0\0\x09\x01\x02\x03\x04\0\0\0\0\0\0\0\x05\0\0\0\0value";
        let error = b"\x81\0\0\0\0\0\0\x03\0\0\0\0\x01\x02\x03\x04\0\0\0\0\0\0\0\0";
        assert_eq!((sent(41, binary), sent(40, binary)), (vec![binary.to_vec()], vec![error.to_vec()]));
        assert!(sent(31, binary).is_empty());
    }

    #[test]
    fn replies_are_dropped_whatever_the_protocol() {
        let replies = [
            "ERROR\r\n",
            "CLIENT_ERROR bad data chunk\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
            "VALUE a 0 1\r\nx\r\nEND\r\n",
            "END\r\n",
            "STORED\r\n",
            "NOT_FOUND\r\n",
            "OK\r\n",
            "VERSION 1.6.18\r\n",
            "STAT pid 1\r\n",
            "17\r\n",
            "HD\r\n",
            "VA 1\r\nx\r\n",
            "EN\r\n",
            "MN\r\n",
            "\u{81}",
        ];
        for reply in replies {
            let bytes: Vec<u8> = reply.chars().map(|c| c as u8).collect();
            seal(7, &bytes, &mut |datagram| assert_eq!(unseal(datagram), None, "{reply:?}"));
        }
        for request in [&b"get a\r\n"[..], b"mg a v\r\n", b"version\r\n", b"\x80\x0a\0\0", b"nonsense\r\n"] {
            seal(7, request, &mut |datagram| assert_eq!(unseal(datagram), Some((7, request))));
        }
        seal(7, TOO_LARGE, &mut |datagram| assert_eq!(unseal(datagram), None));
    }

    #[test]
    fn fragments_are_dropped() {
        assert_eq!(unseal(b"\x12\x34\0\0\0\x01\0\0version\r\n"), Some((0x1234, &b"version\r\n"[..])));
        for datagram in
            [&b""[..], b"\x12\x34\0\0\0\x01\0", b"\x12\x34\0\0\0\x01\0\0", b"\x12\x34\0\0\0\x02\0\0get a\r\n"]
        {
            assert_eq!(unseal(datagram), None);
        }
    }
}
