//! The content of values: bytes that are a function of key and version, so that every value read can be checked.
//!
//! A value begins with its key's number and its version, 8 bytes each, little-endian; the rest is a part of one table
//! of noise, at an offset that depends on both. Its length, too, is a function of both. A value below 16 bytes has no
//! space for its version: it is noise that depends on the key alone, of any length that values may have.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;

use crate::draws::{draws, mix64};
use crate::keys::unit;

/// The distribution of value lengths, in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueSizes {
    /// All values have this length.
    Fixed(u32),
    /// Lengths are uniform from the first to the second, both included.
    Uniform(u32, u32),
    /// Lengths are exponential with this mean, truncated at 1 MB less 4 KB.
    Exponential(u32),
    /// Lengths are generalized Pareto with scale 214.476 and shape 0.348468 from 1 byte, truncated likewise: the values
    /// of Facebook's ETC pool (Atikoglu et al., SIGMETRICS 2012, section 5).
    Etc,
}

/// The reason why a text is not a [`ValueSizes`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a distribution of value sizes; write BYTES, uniform:LEAST,MOST, exponential:MEAN, or etc (sizes \
     from 1 to 1073741824)"
)]
pub struct BadSizes(String);

impl FromStr for ValueSizes {
    type Err = BadSizes;

    fn from_str(text: &str) -> Result<ValueSizes, BadSizes> {
        let bad = || BadSizes(text.to_owned());
        let size =
            |text: &str| text.trim().parse().ok().filter(|size| (1..=1 << 30).contains(size)).ok_or_else(bad);
        match text.split_once(':') {
            None if text == "etc" => Ok(ValueSizes::Etc),
            None => Ok(ValueSizes::Fixed(size(text)?)),
            Some(("exponential", mean)) => Ok(ValueSizes::Exponential(size(mean)?)),
            Some(("uniform", range)) => {
                let (least, most) = range.split_once(',').ok_or_else(bad)?;
                let (least, most) = (size(least)?, size(most)?);
                if least <= most { Ok(ValueSizes::Uniform(least, most)) } else { Err(bad()) }
            }
            Some(_) => Err(bad()),
        }
    }
}

impl ValueSizes {
    /// Returns the shortest and the longest length of a value.
    pub fn range(self) -> (u32, u32) {
        match self {
            ValueSizes::Fixed(size) => (size, size),
            ValueSizes::Uniform(least, most) => (least, most),
            ValueSizes::Exponential(_) | ValueSizes::Etc => (1, CUT),
        }
    }

    /// Returns the length for 64 uniform bits.
    fn of(self, word: u64) -> usize {
        let size = match self {
            ValueSizes::Fixed(size) => size,
            ValueSizes::Uniform(least, most) => least + (unit(word) * f64::from(most - least + 1)) as u32,
            ValueSizes::Exponential(mean) => {
                (-(1.0 - unit(word)).ln() * f64::from(mean)).clamp(1.0, f64::from(CUT)) as u32
            }
            ValueSizes::Etc => {
                let tail = (1.0 - unit(word)).powf(-ETC_SHAPE) - 1.0;
                (1.0 + ETC_SCALE * tail / ETC_SHAPE).clamp(1.0, f64::from(CUT)) as u32
            }
        };
        size as usize
    }
}

/// The reason why a value cannot be the one stored under its key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// The value belongs to another key.
    #[error("it is the value of key number {0}")]
    OtherKey(u64),
    /// The value has a version that was never written.
    #[error("its version {0:#x} was never written")]
    NeverWritten(u64),
    /// The length differs from that of its key and version.
    #[error("it has {got} bytes, expected {expected} for its version {version:#x}")]
    Length {
        /// The length that was read.
        got: usize,
        /// The length that was expected.
        expected: usize,
        /// The version that the value contains.
        version: u64,
    },
    /// A byte has a wrong content.
    #[error("byte {at} is {got:#04x}, expected {expected:#04x} for its version {version:#x}")]
    Byte {
        /// The offset of the byte, counted from 0.
        at: usize,
        /// The byte that was read.
        got: u8,
        /// The byte that was expected.
        expected: u8,
        /// The version that the value contains.
        version: u64,
    },
}

/// Writes and checks values.
#[derive(Debug)]
pub struct Values {
    sizes: ValueSizes,
    noise: Vec<u8>,
    /// The number of versions that each client has written; none where others write too.
    written: Option<Vec<AtomicU64>>,
}

impl Values {
    /// Creates values of `sizes`, written by `clients` clients, and by no other program if `alone`.
    pub fn new(sizes: ValueSizes, clients: u32, alone: bool) -> Values {
        let mut noise = vec![0; 2 * NOISE];
        draws(NOISE_SEED, 0, 0, 0).fill_bytes(&mut noise[..NOISE]);
        noise.copy_within(..NOISE, NOISE);
        let written = alone.then(|| (0..clients).map(|_| AtomicU64::new(0)).collect());
        Values { sizes, noise, written }
    }

    /// Returns a version that neither client `client` (counted from 0) nor any other has written yet.
    pub fn next_version(&self, client: u32, number: u64) -> u64 {
        if let Some(written) = &self.written {
            // A phase may repeat the numbers of an earlier one.
            written[client as usize].fetch_max(number + 1, Ordering::Release);
        }
        (u64::from(client) + 1) << CLIENT_SHIFT | number
    }

    /// Returns the length of the value of `key` in `version`.
    pub fn size(&self, key: u64, version: u64) -> usize {
        self.sizes.of(mix64(mix64(key) ^ version))
    }

    /// Appends the value of `key` in `version`.
    pub fn write(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        let size = self.size(key, version);
        if size >= HEAD {
            out.extend_from_slice(&key.to_le_bytes());
            out.extend_from_slice(&version.to_le_bytes());
        }
        for stretch in self.body(key, version, size) {
            out.extend_from_slice(stretch);
        }
    }

    /// Checks that a client has stored `value` under `key`.
    ///
    /// # Errors
    /// Returns the difference from the value of the version that it contains.
    pub fn check(&self, key: u64, value: &[u8]) -> Result<(), Wrong> {
        let Some((head, body)) = value.split_first_chunk::<HEAD>() else {
            return self.check_short(key, value);
        };
        let ([found_key, version], _) = head.as_chunks::<8>() else {
            return Ok(());
        };
        let (found_key, version) = (u64::from_le_bytes(*found_key), u64::from_le_bytes(*version));
        if found_key != key {
            return Err(Wrong::OtherKey(found_key));
        }
        let expected = self.size(key, version);
        if value.len() != expected {
            return Err(Wrong::Length { got: value.len(), expected, version });
        }
        self.compare(key, version, body, HEAD)?;
        if self.was_written(version) { Ok(()) } else { Err(Wrong::NeverWritten(version)) }
    }

    fn was_written(&self, version: u64) -> bool {
        let Some(written) = &self.written else { return true };
        let (client, number) = (version >> CLIENT_SHIFT, version & ((1 << CLIENT_SHIFT) - 1));
        match client.checked_sub(1) {
            None => number == 0,
            Some(client) => {
                written.get(client as usize).is_some_and(|next| number < next.load(Ordering::Acquire))
            }
        }
    }

    /// Checks a value without a version: it must have a length that some version has.
    fn check_short(&self, key: u64, value: &[u8]) -> Result<(), Wrong> {
        let expected = self.size(key, FIRST_VERSION);
        let (least, most) = self.sizes.range();
        if !(least as usize..=most as usize).contains(&value.len()) {
            return Err(Wrong::Length { got: value.len(), expected, version: FIRST_VERSION });
        }
        self.compare(key, FIRST_VERSION, value, 0)
    }

    /// Compares the bytes after the head, or all of a value without one; they start at byte `start` of the value.
    fn compare(&self, key: u64, version: u64, body: &[u8], start: usize) -> Result<(), Wrong> {
        let mut at = start;
        let mut rest = body;
        for stretch in self.body(key, version, start + body.len()) {
            let (got, after) = rest.split_at(stretch.len());
            if got != stretch {
                let index = got.iter().zip(stretch).position(|(got, expected)| got != expected).unwrap_or(0);
                let (got, expected) = (got[index], stretch[index]);
                return Err(Wrong::Byte { at: at + index, got, expected, version });
            }
            at += stretch.len();
            rest = after;
        }
        Ok(())
    }

    /// Returns the bytes after the head, in parts of the noise.
    fn body(&self, key: u64, version: u64, size: usize) -> impl Iterator<Item = &[u8]> {
        let (found_by, mut left) = if size < HEAD { (0, size) } else { (version, size - HEAD) };
        let start = mix64(key.wrapping_mul(3) ^ mix64(found_by)) as usize % NOISE;
        std::iter::from_fn(move || {
            let stretch = left.min(NOISE);
            left -= stretch;
            (stretch > 0).then(|| &self.noise[start..start + stretch])
        })
    }
}

/// The version that the load phase stores.
pub const FIRST_VERSION: u64 = 0;
/// The bytes of key and version.
const HEAD: usize = 16;
/// The bytes of noise: twice this stays in the first-level cache, so that checking is cheap.
const NOISE: usize = 8 * 1024;
/// The seed of the noise, the same for every run, so that one run can read the values of another.
const NOISE_SEED: u64 = 0x0063_6872_6f6e_6f73;
/// The bits of a version's count, above which the client's number begins, counted from 1.
const CLIENT_SHIFT: u32 = 44;
/// The longest value that memcached stores by default, less its header and a key.
const CUT: u32 = (1 << 20) - 4096;
const ETC_SCALE: f64 = 214.476;
const ETC_SHAPE: f64 = 0.348_468;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(values: &Values, key: u64, version: u64) -> Vec<u8> {
        let mut out = Vec::new();
        values.write(key, version, &mut out);
        out
    }

    #[test]
    fn every_kind_of_wrong_value_is_told() {
        let values = Values::new(ValueSizes::Fixed(1024), 2, true);
        let version = values.next_version(1, 0);
        assert_eq!(values.check(7, &value(&values, 7, version)), Ok(()));
        assert_eq!(values.check(7, &value(&values, 7, FIRST_VERSION)), Ok(()));
        assert_eq!(values.check(7, &value(&values, 8, version)), Err(Wrong::OtherKey(8)));
        let future = version + 1;
        assert_eq!(values.check(7, &value(&values, 7, future)), Err(Wrong::NeverWritten(future)));
        assert_eq!(
            values.check(7, &value(&values, 7, version)[..1000]),
            Err(Wrong::Length { got: 1000, expected: 1024, version })
        );
        let mut changed = value(&values, 7, version);
        let expected = changed[900];
        changed[900] ^= 1;
        assert_eq!(
            values.check(7, &changed),
            Err(Wrong::Byte { at: 900, got: expected ^ 1, expected, version })
        );
    }

    #[test]
    fn versions_of_others_are_right_where_others_write() {
        let (ours, theirs) =
            (Values::new(ValueSizes::Fixed(64), 1, false), Values::new(ValueSizes::Fixed(64), 9, true));
        assert_eq!(ours.check(1, &value(&theirs, 1, theirs.next_version(8, 5))), Ok(()));
    }

    #[test]
    fn values_of_all_lengths_are_right() {
        for size in [1, 2, 15, 16, 17, 8192, 8208, 8209, 50_000] {
            let values = Values::new(ValueSizes::Fixed(size), 1, true);
            let mut stored = value(&values, 3, FIRST_VERSION);
            assert_eq!(stored.len(), size as usize);
            assert_eq!(values.check(3, &stored), Ok(()));
            stored[size as usize - 1] ^= 0x80;
            assert!(values.check(3, &stored).is_err(), "{size}");
        }
    }

    #[test]
    fn a_short_value_may_be_of_any_version() {
        let values = Values::new(ValueSizes::Uniform(3, 40), 1, true);
        for version in (0..50).map(|number| values.next_version(0, number)) {
            assert_eq!(values.check(3, &value(&values, 3, version)), Ok(()));
        }
        let found = values.check(3, &[0; 2]);
        assert!(matches!(found, Err(Wrong::Length { got: 2, .. })), "{found:?}");
        assert!(values.check(3, &[0; 5]).is_err());
    }

    #[test]
    fn sizes_have_their_means() {
        let mean = |sizes: ValueSizes| (0..100_000).map(|n| sizes.of(mix64(n)) as f64).sum::<f64>() / 1e5;
        assert!((mean(ValueSizes::Uniform(100, 300)) - 200.0).abs() < 2.0);
        assert!((mean(ValueSizes::Exponential(1000)) - 1000.0).abs() < 20.0);
        // The mean is scale / (1 - shape), plus the 1 byte at which it starts.
        assert!((mean(ValueSizes::Etc) - 330.0).abs() < 15.0, "{}", mean(ValueSizes::Etc));
    }

    #[test]
    fn texts_are_read_or_refused_with_what_is_allowed() {
        assert_eq!("1024".parse(), Ok(ValueSizes::Fixed(1024)));
        assert_eq!("uniform:10,20".parse(), Ok(ValueSizes::Uniform(10, 20)));
        for text in ["0", "uniform:20,10", "exponential:", "pareto"] {
            let error = text.parse::<ValueSizes>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("exponential:MEAN"), "{error}");
        }
    }
}
