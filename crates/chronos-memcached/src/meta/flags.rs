//! The flags of meta commands.

use super::{BAD_FORMAT, check_base64};
use crate::clock::Clock;
use crate::request::{Bits, Head};
use crate::text::words::{self, Words};

/// What flags say that has no place in a [`Head`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags {
    /// The letter of M.
    pub mode: Option<u8>,
}

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

impl Flags {
    /// Reads `tokens` into `head`, or says what is wrong with them.
    pub fn read(head: &mut Head, clock: Clock, key: &[u8], tokens: &[u8]) -> Result<Flags, &'static str> {
        let mut seen = [false; 127];
        let mut mode = None;
        // memcached reads on after an error, and tells the last one; a duplicate or unknown flag ends it.
        let mut error = None;
        for token in Words(tokens) {
            let letter = token[0];
            match seen.get_mut(usize::from(letter)) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err("CLIENT_ERROR duplicate flag"),
            }
            if let Err(text) = one(head, clock, key, token, &mut mode) {
                error = Some(text);
                if letter != b'b' && text == UNKNOWN {
                    return Err(text);
                }
            }
        }
        error.map_or(Ok(Flags { mode }), Err)
    }
}

const UNKNOWN: &str = "CLIENT_ERROR invalid flag";

fn one(
    head: &mut Head,
    clock: Clock,
    key: &[u8],
    token: &[u8],
    mode: &mut Option<u8>,
) -> Result<(), &'static str> {
    let rest = &token[1..];
    let second = || words::signed_32(rest).map(|given| clock.expiry(given)).ok_or(BAD_TOKEN);
    match token[0] {
        b'b' => {
            head.bits |= Bits::KEY_BINARY;
            check_base64(key).ok_or("CLIENT_ERROR error decoding key")?;
        }
        b'N' => {
            head.bits |= Bits::VIVIFY;
            head.vivify_expiry = second()?;
        }
        b'T' => {
            head.bits |= Bits::EXPIRY;
            head.expiry = second()?;
        }
        b'R' => {
            head.bits |= Bits::RECACHE;
            head.recache = second()?;
        }
        b'v' => head.bits |= Bits::VALUE,
        b'u' => head.bits |= Bits::NO_UPDATE,
        b'q' => head.bits |= Bits::QUIET,
        b'I' => head.bits |= Bits::STALE,
        b'F' => head.client_flags = words::unsigned_32(rest).ok_or(BAD_FORMAT)?,
        b'C' => {
            head.bits |= Bits::CAS;
            head.cas = words::unsigned_64(rest).ok_or(BAD_TOKEN)?;
        }
        b'M' => match rest {
            [letter] => *mode = Some(*letter),
            _ => return Err("CLIENT_ERROR incorrect length for M token"),
        },
        b'J' => {
            head.initial = words::unsigned_64(rest).ok_or("CLIENT_ERROR invalid numeric initial value")?
        }
        b'D' => head.delta = words::unsigned_64(rest).ok_or("CLIENT_ERROR invalid numeric delta value")?,
        b'l' | b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'h' => {}
        _ => return Err(UNKNOWN),
    }
    Ok(())
}
