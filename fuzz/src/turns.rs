//! Turns: the encoding of several senders and of time in a fuzzer's bytes.
//!
//! ```text
//! bytes of sender 0 │ 1e fa │ head │ bytes │ 1e fa │ head │ bytes ...
//! ```
//!
//! A mark that bytes seldom have, not a length, so that inserted or removed bytes leave the turns behind them alone.

/// The mark between two turns.
pub const MARK: [u8; 2] = [0x1e, 0xfa];

/// The number of senders that a head can name.
pub const SENDERS: usize = 4;

/// A piece of the input that one sender sends at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn<'a> {
    /// Bits 0 and 1 of the head choose the sender; the others are for the target.
    pub head: u8,
    /// The bytes that the sender sends.
    pub bytes: &'a [u8],
}

impl Turn<'_> {
    /// Returns the number of the sender, below [`SENDERS`].
    pub fn sender(&self) -> usize {
        usize::from(self.head) % SENDERS
    }

    /// Returns whether `bit` of the head is set.
    pub fn has(&self, bit: u32) -> bool {
        self.head >> bit & 1 == 1
    }
}

/// Returns the turns of `input`. The first has no head, and is from sender 0.
pub fn turns(input: &[u8]) -> impl Iterator<Item = Turn<'_>> {
    let mut rest = Some(input);
    let mut is_first = true;
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = bytes.windows(MARK.len()).position(|window| window == MARK);
        rest = end.map(|end| &bytes[end + MARK.len()..]);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        if std::mem::take(&mut is_first) {
            return Some(Turn { head: 0, bytes });
        }
        let (&head, bytes) = bytes.split_first().unwrap_or((&0, &[]));
        Some(Turn { head, bytes })
    })
}

/// Returns `input` after `fit` has changed the bytes of each turn.
pub fn fitted(input: &[u8], mut fit: impl FnMut(&mut [u8])) -> Vec<u8> {
    let mut fitted = Vec::with_capacity(input.len());
    for (index, turn) in turns(input).enumerate() {
        if index > 0 {
            fitted.extend(MARK);
            fitted.push(turn.head);
        }
        let start = fitted.len();
        fitted.extend(turn.bytes);
        fit(&mut fitted[start..]);
    }
    fitted
}
