//! The flags of meta commands.

use super::{BAD_FORMAT, check_base64};
use crate::clock::Clock;
use crate::request::{Bits, RequestHead};
use crate::text::words::{self, Tokens};

/// The results of reading flags that have no field in a [`Head`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetaFlags {
    /// The number of flags that the command has.
    pub count: usize,
    /// True unless there is an opaque token longer than memcached accepts.
    pub opaque_fits: bool,
    /// The letter of M, or the error in the flags.
    pub mode: Result<Option<u8>, &'static str>,
}

/// The most bytes of an opaque token, its letter included.
const OPAQUE_BYTES_MAX: usize = 32;
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

impl MetaFlags {
    /// Reads `tokens` into `head`, once for all purposes: the caller chooses the error to report.
    pub fn read(head: &mut RequestHead, clock: Clock, key: &[u8], tokens: &[u8]) -> MetaFlags {
        let mut seen = 0_u128;
        let mut mode = None;
        // memcached reads on after an error, and reports the last one that has a text of its own; a duplicate or
        // unknown flag ends it.
        let (mut error, mut ended) = (None, false);
        let mut flags = MetaFlags { count: 0, opaque_fits: true, mode: Ok(None) };
        for token in Tokens(tokens) {
            let letter = token[0];
            flags.count += 1;
            flags.opaque_fits &= letter != b'O' || token.len() <= OPAQUE_BYTES_MAX;
            if ended {
                continue;
            }
            let bit = if letter < 127 { 1_u128 << letter } else { 0 };
            // A byte that is not an ASCII letter is reported like a duplicate.
            if bit == 0 || seen & bit != 0 {
                (error, ended) = (Some("CLIENT_ERROR duplicate flag"), true);
                continue;
            }
            seen |= bit;
            if let Some(bits) = alone(letter) {
                head.bits |= bits;
                continue;
            }
            if let Err(text) = one(head, clock, key, token, &mut mode) {
                error = error.filter(|_| text == BAD_FORMAT).or(Some(text));
                ended = letter != b'b' && text == UNKNOWN;
            }
        }
        flags.mode = error.map_or(Ok(mode), Err);
        flags
    }
}

const UNKNOWN: &str = "CLIENT_ERROR invalid flag";

/// Returns the bits of a flag without a value; some of these flags take effect only when the answer is made.
#[inline]
const fn alone(letter: u8) -> Option<u32> {
    match letter {
        b'v' => Some(Bits::VALUE),
        b'u' => Some(Bits::NO_UPDATE),
        b'q' => Some(Bits::QUIET),
        b'I' => Some(Bits::STALE),
        b'l' | b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'h' => Some(0),
        _ => None,
    }
}

/// Returns the bits of flags of one letter each, none twice and none with a value, and whether any of them takes effect
/// in the answer. None if there are others. Faster than [`MetaFlags::read`], for the gets that are frequent.
#[inline]
pub fn plain(tokens: &[u8]) -> Option<(u32, bool)> {
    let (mut bits, mut seen, mut is_answered) = (0, 0_u32, false);
    for token in tokens.chunks(2) {
        let &[b' ', letter @ b'a'..=b'z'] = token else { return None };
        let bit = 1 << (letter - b'a');
        let found = alone(letter).filter(|_| seen & bit == 0)?;
        seen |= bit;
        bits |= found;
        is_answered |= found == 0;
    }
    Some((bits, is_answered))
}

/// Reads a flag with a value.
fn one(
    head: &mut RequestHead,
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
        _ => return Err(UNKNOWN),
    }
    Ok(())
}
