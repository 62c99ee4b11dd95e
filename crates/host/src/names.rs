//! Types of names from outside that become arguments and paths; they hold only valid names.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a valid name; the message states the allowed form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not a valid {what}: expected {allowed}")]
pub struct InvalidName {
    text: String,
    what: &'static str,
    allowed: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $allowed:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<$name, InvalidName> {
                let valid: fn(&str) -> bool = $valid;
                let invalid = || InvalidName { text: text.to_owned(), what: $what, allowed: $allowed };
                valid(text).then(|| $name(text.to_owned())).ok_or_else(invalid)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<$name, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a policy, as in `plimsoll host rollback NAME`.
    PolicyName, "policy name", "1 to 40 lower-case letters, digits, `-` and `_`, a letter first",
    |text| (1..=40).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
);

name!(
    /// The name of a network device.
    DeviceName, "network device name", "1 to 15 letters, digits, `.`, `-`, `_` and `@`, a letter or digit first",
    |text| (1..=15).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@".contains(c))
);

name!(
    /// The name of a systemd unit of a kind that has a cgroup.
    UnitName, "systemd unit with a cgroup", "a name that ends with .service, .slice or .scope",
    |text| text.len() <= 255
        && [".service", ".slice", ".scope"].iter().any(|kind| text.ends_with(kind) && text.len() > kind.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ":_.\\@-".contains(c))
);

name!(
    /// The path of a cgroup, from the root of the hierarchy.
    CgroupPath, "cgroup path", "a path such as `/latency/memcached`, without `.`, `..` and empty parts",
    |text| text.len() <= 512
        && text.strip_prefix('/').is_some_and(|parts| parts.split('/').all(is_part))
);

name!(
    /// The address of a network card, of one station.
    MacAddress, "address of a network card",
    "six pairs of hexadecimal digits such as `52:54:00:12:34:56`, no group address",
    |text| bits_of(text).is_some_and(|bits| bits != 0 && bits >> 40 & 1 == 0)
);

impl MacAddress {
    /// Returns the address as a number, with its first byte in bits 40 to 47.
    pub fn bits(&self) -> u64 {
        bits_of(&self.0).expect("the text was checked when it was read")
    }
}

fn bits_of(text: &str) -> Option<u64> {
    let byte = |pair: &str| {
        let digits = pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit());
        u64::from_str_radix(pair, 16).ok().filter(|_| digits)
    };
    let bytes: Vec<u64> = text.split(':').map(byte).collect::<Option<_>>()?;
    (bytes.len() == 6).then(|| bytes.iter().fold(0, |bits, byte| bits << 8 | byte))
}

/// Returns the known name that `word` probably means.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(likeness, _)| *likeness > LIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}

/// The Jaro-Winkler similarity from which a name is suggested.
const LIKE: f64 = 0.75;

fn is_part(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= 255
        && !part.starts_with('.')
        && part.chars().all(|c| !c.is_control() && !c.is_whitespace())
}

impl CgroupPath {
    /// Returns the cgroup's folder, where the hierarchy is mounted at `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        root.join(self.0.trim_start_matches('/'))
    }
}

/// A network: an address and its prefix length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Returns whether the network is an IPv6 network.
    pub fn is_ipv6(self) -> bool {
        self.address.is_ipv6()
    }

    /// Returns the network's first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Returns whether `word` denotes this network in the output of `ip route`.
    pub(crate) fn is_written(self, word: &str) -> bool {
        match word.parse::<IpAddr>() {
            Ok(address) => address == self.address && self.bits == if address.is_ipv4() { 32 } else { 128 },
            Err(_) if word == "default" => self.bits == 0,
            Err(_) => word.parse() == Ok(self),
        }
    }

    fn is_network(self) -> bool {
        match self.address {
            IpAddr::V4(v4) => self.bits <= 32 && v4.to_bits().checked_shl(self.bits.into()).unwrap_or(0) == 0,
            IpAddr::V6(v6) => {
                self.bits <= 128 && v6.to_bits().checked_shl(self.bits.into()).unwrap_or(0) == 0
            }
        }
    }
}

impl FromStr for Prefix {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Prefix, InvalidName> {
        let parsed = text.split_once('/').and_then(|(address, bits)| {
            let prefix = Prefix { address: address.parse().ok()?, bits: bits.parse().ok()? };
            prefix.is_network().then_some(prefix)
        });
        parsed.ok_or_else(|| InvalidName {
            text: text.to_owned(),
            what: "network",
            allowed: "an address and its length such as `10.0.0.0/8`, with no bits beyond the length",
        })
    }
}

impl TryFrom<String> for Prefix {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Prefix, InvalidName> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
