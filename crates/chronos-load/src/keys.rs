//! Draws the keys of requests, and writes them as text.

use std::str::FromStr;

use plimsoll_units::{Span, Time};
use rand::Rng;
use rand_distr::{Distribution, Zipf};

use crate::arrivals::parse_share;
use crate::draws::{below, mix64};

/// The distribution of requests over keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Popularity {
    /// All keys are equally likely.
    Uniform,
    /// The key of rank k is requested in proportion to k^-s.
    Zipf(f64),
    /// A few keys, which change over time, get most of the requests.
    Hot(Hot),
}

/// A few keys that get most of the requests (Chronos: three keys with 99 %, dissertation, section 6.2.4). They are
/// drawn anew at the start of each epoch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hot {
    /// The number of hot keys, at least 1.
    pub keys: u64,
    /// Their share of the requests, 0 to 1.
    pub share: f64,
    /// The time for which they stay hot; none for the whole run.
    pub epoch: Option<Span>,
}

/// The reason why a text is not a [`Popularity`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0}; write uniform, zipf:S such as zipf:0.99, or hot:KEYS,SHARE,EPOCH such as hot:3,99%,100us or hot:3,99%,static"
)]
pub struct BadPopularity(String);

impl FromStr for Popularity {
    type Err = BadPopularity;

    fn from_str(text: &str) -> Result<Popularity, BadPopularity> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Popularity::Uniform),
            Some(("zipf", exponent)) => match exponent.parse::<f64>() {
                Ok(s) if (0.0..=20.0).contains(&s) => Ok(Popularity::Zipf(s)),
                _ => Err(BadPopularity(format!("the exponent `{exponent}` is not from 0 to 20"))),
            },
            Some(("hot", rest)) => Hot::parse(rest).map(Popularity::Hot).map_err(BadPopularity),
            _ => Err(BadPopularity(format!("`{text}` is not a distribution of requests over keys"))),
        }
    }
}

impl Hot {
    fn parse(text: &str) -> Result<Hot, String> {
        let [keys, share, epoch] = *text.split(',').map(str::trim).collect::<Vec<_>>() else {
            return Err(format!("`{text}` is not three values"));
        };
        let number = keys.parse().ok().filter(|&keys| keys > 0);
        let keys = number.ok_or_else(|| format!("`{keys}` is not a number of keys from 1"))?;
        let epoch = match epoch {
            "static" => None,
            _ => Some(epoch.parse::<Span>().map_err(|error| error.to_string())?),
        };
        if epoch.is_some_and(Span::is_zero) {
            return Err("the epoch must be longer than 0".to_owned());
        }
        Ok(Hot { keys, share: parse_share(share)?, epoch })
    }

    /// Returns the hot key of number `index` at `at`.
    fn key(&self, index: u64, seed: u64, keys: u64, at: Time) -> u64 {
        let epoch = self.epoch.map_or(0, |epoch| at.as_ps() / epoch.as_ps());
        below(mix64(mix64(seed ^ HOT) ^ mix64(epoch ^ (index << 48))), keys)
    }
}

/// Draws keys from 0 to `keys` - 1.
#[derive(Clone, Debug)]
pub struct KeyChoice {
    popularity: Popularity,
    keys: u64,
    seed: u64,
    zipf: Option<Zipf<f64>>,
}

impl KeyChoice {
    /// Creates a choice among `keys` keys, at least 1.
    pub fn new(popularity: Popularity, keys: u64, seed: u64) -> KeyChoice {
        let zipf = match popularity {
            Popularity::Zipf(s) => {
                Some(Zipf::new(keys as f64, s).expect("the exponent was checked to be from 0"))
            }
            Popularity::Uniform | Popularity::Hot(_) => None,
        };
        KeyChoice { popularity, keys, seed, zipf }
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Draws the key of a request that is due at `at`.
    pub fn draw(&self, rng: &mut impl Rng, at: Time) -> u64 {
        match (self.popularity, &self.zipf) {
            (_, Some(zipf)) => (zipf.sample(rng) as u64).clamp(1, self.keys) - 1,
            (Popularity::Hot(hot), None) if unit(rng.next_u64()) < hot.share => {
                hot.key(below(rng.next_u64(), hot.keys), self.seed, self.keys, at)
            }
            _ => below(rng.next_u64(), self.keys),
        }
    }
}

/// Maps the 53 highest bits of `word` to a number from 0 up to, but not including, 1.
pub fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// The texts of all keys, by number.
#[derive(Clone, Debug)]
pub enum KeyText {
    /// A prefix, and the key's number in decimal, padded with zeros to one length.
    Numbered(Vec<u8>),
    /// The lines of a file, one a key.
    Listed(Vec<Box<[u8]>>),
}

impl KeyText {
    /// Creates keys of `bytes` bytes, 1 to 250, that begin with as much of `prefix` as fits.
    ///
    /// # Errors
    /// Returns an error if `bytes` are too few for `keys` different keys, or memcached rejects keys of this length.
    pub fn numbered(prefix: &str, bytes: usize, keys: u64) -> Result<KeyText, String> {
        let digits = keys.saturating_sub(1).max(1).ilog10() as usize + 1;
        if !(digits..=KEY_BYTES_MAX).contains(&bytes) {
            return Err(format!(
                "{keys} keys cannot be of {bytes} bytes: a key has {digits} digits, and at most {KEY_BYTES_MAX} bytes"
            ));
        }
        let mut template = prefix.as_bytes()[..prefix.len().min(bytes - digits)].to_vec();
        template.resize(bytes, b'0');
        Ok(KeyText::Numbered(template))
    }

    /// Appends the text of `key`.
    pub fn write(&self, key: u64, out: &mut Vec<u8>) {
        match self {
            KeyText::Numbered(template) => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(key).as_bytes();
                out.extend_from_slice(template);
                let end = out.len();
                out[end - digits.len()..].copy_from_slice(digits);
            }
            KeyText::Listed(texts) => out.extend_from_slice(&texts[key as usize]),
        }
    }

    /// Returns the length of `key` in bytes.
    pub fn len(&self, key: u64) -> usize {
        match self {
            KeyText::Numbered(template) => template.len(),
            KeyText::Listed(texts) => texts[key as usize].len(),
        }
    }

    /// Returns whether `text` is the text of `key`.
    pub fn is(&self, key: u64, text: &[u8]) -> bool {
        match self {
            KeyText::Numbered(template) => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(key).as_bytes();
                let start = template.len() - digits.len();
                text.len() == template.len() && text[..start] == template[..start] && text[start..] == *digits
            }
            KeyText::Listed(texts) => *texts[key as usize] == *text,
        }
    }
}

/// The longest key in bytes (memcached's KEY_MAX_LENGTH).
const KEY_BYTES_MAX: usize = 250;
const HOT: u64 = 0x686f_745f_6b65_7973;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::draws;

    fn counts(popularity: Popularity, keys: u64, at: Time) -> Vec<u32> {
        let choice = KeyChoice::new(popularity, keys, 9);
        let mut counts = vec![0; keys as usize];
        for number in 0..100_000 {
            counts[choice.draw(&mut draws(1, 0, number, 0), at) as usize] += 1;
        }
        counts
    }

    #[test]
    fn zipf_falls_by_rank() {
        let counts = counts(Popularity::Zipf(1.0), 1000, Time::ZERO);
        // Of 1000 keys by 1/k, the first gets 1/7.485 of all, the second half of that; standard deviations 108 and 79.
        assert!(counts[0].abs_diff(13_360) < 540, "{}", counts[0]);
        assert!(counts[1].abs_diff(6_680) < 400, "{}", counts[1]);
    }

    #[test]
    fn hot_keys_have_their_share_and_move() {
        let hot = |epoch| Popularity::Hot(Hot { keys: 3, share: 0.99, epoch });
        let hottest = |counts: &[u32]| {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            order.sort_by_key(|&key| std::cmp::Reverse(counts[key]));
            (order[..3].to_vec(), order[..3].iter().map(|&key| counts[key]).sum::<u32>())
        };
        let at = |us| Time::ZERO + Span::from_us(us);
        let (before, share) = hottest(&counts(hot(Some(Span::from_us(100))), 1000, at(99)));
        // Expected are 99 000, plus the cold requests' 3 in 1000; the standard deviation is 32.
        assert!(share.abs_diff(99_003) < 160, "{share}");
        let (after, _) = hottest(&counts(hot(Some(Span::from_us(100))), 1000, at(100)));
        let (still, _) = hottest(&counts(hot(Some(Span::from_us(100))), 1000, at(0)));
        assert_ne!(before, after);
        assert_eq!(before.iter().max(), still.iter().max());
        let (fixed, _) = hottest(&counts(hot(None), 1000, at(0)));
        let (later, _) = hottest(&counts(hot(None), 1000, at(1_000_000)));
        assert_eq!(fixed, later);
    }

    #[test]
    fn keys_are_written_and_known_again() {
        let text = KeyText::numbered("key:", 10, 1_000).unwrap();
        let mut out = b"get ".to_vec();
        text.write(42, &mut out);
        assert_eq!(out, b"get key:000042");
        assert!(text.is(42, b"key:000042"));
        assert!(!text.is(43, b"key:000042") && !text.is(42, b"key:00042") && !text.is(42, b"kee:000042"));
        let mut short = Vec::new();
        KeyText::numbered("key:", 3, 1_000).unwrap().write(7, &mut short);
        assert_eq!(short, b"007");
        assert!(KeyText::numbered("key:", 2, 1_000).unwrap_err().contains("3 digits"));
        assert!(KeyText::numbered("key:", 251, 1_000).unwrap_err().contains("at most 250"));
    }

    #[test]
    fn texts_are_read_or_refused_with_what_is_allowed() {
        let hot = Hot { keys: 3, share: 0.99, epoch: Some(Span::from_us(100)) };
        assert_eq!("hot:3,99%,100us".parse(), Ok(Popularity::Hot(hot)));
        assert_eq!("hot:3,99%,static".parse(), Ok(Popularity::Hot(Hot { epoch: None, ..hot })));
        assert_eq!("zipf:0.99".parse(), Ok(Popularity::Zipf(0.99)));
        for (text, part) in [
            ("zipf", "`zipf` is not a distribution"),
            ("zipf:-1", "the exponent `-1`"),
            ("hot:0,99%,static", "`0` is not a number of keys"),
            ("hot:3,99%,0us", "longer than 0"),
        ] {
            let error = text.parse::<Popularity>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("hot:3,99%,100us"), "{error}");
        }
    }
}
