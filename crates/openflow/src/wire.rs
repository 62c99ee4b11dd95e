//! The common parts of OpenFlow messages: versions, the header, the numbers of messages and errors.
//!
//! ```text
//! version (1) | type (1) | length (2), header included | transaction id (4) | body
//! ```
//!
//! Sources: OpenFlow Switch Specification 1.0.0, section 5, and 1.3.5, section 7 (Open Networking Foundation).

/// The size of the header in bytes.
pub const HEADER_BYTES: usize = 8;

/// Bytes of the offending message that an error repeats.
pub const ERROR_DATA_BYTES: usize = 64;

/// A version of the protocol that this controller speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0, wire version 1.
    V10 = 1,
    /// OpenFlow 1.3, wire version 4.
    V13 = 4,
}

impl Version {
    /// Returns the version with this number on the wire.
    pub fn from_wire(number: u8) -> Option<Version> {
        match number {
            1 => Some(Version::V10),
            4 => Some(Version::V13),
            _ => None,
        }
    }
}

/// The versions that may be agreed upon; at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions(u32);

impl Versions {
    /// OpenFlow 1.0 and 1.3.
    pub const ALL: Versions = Versions(1 << Version::V10 as u32 | 1 << Version::V13 as u32);

    /// Returns a set of one version only.
    pub const fn only(version: Version) -> Versions {
        Versions(1 << version as u32)
    }

    /// Returns the set as a hello's version bitmap: bit n means wire version n.
    pub fn bitmap(self) -> u32 {
        self.0
    }

    /// Returns the highest version of the set.
    pub fn highest(self) -> Version {
        if self.contains(Version::V13) { Version::V13 } else { Version::V10 }
    }

    /// Returns the version agreed upon with a peer whose hello has this version in its header and, maybe, this bitmap:
    /// the highest of both bitmaps, or the lower of both versions if the peer sent none (1.3.5, section 6.3.1).
    pub fn agree(self, peer_version: u8, peer_bitmap: Option<u32>) -> Option<Version> {
        let version = match peer_bitmap.map(|bitmap| bitmap & self.0) {
            Some(0) => return None,
            Some(common) => common.ilog2() as u8,
            None => peer_version.min(self.highest() as u8),
        };
        Version::from_wire(version).filter(|&version| self.contains(version))
    }

    fn contains(self, version: Version) -> bool {
        self.0 & 1 << version as u32 != 0
    }
}

/// The header of every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Wire version; 1 for OpenFlow 1.0, 4 for 1.3.
    pub version: u8,
    /// The type of the message, one of [`kind`]'s.
    pub kind: u8,
    /// Bytes, header included; less than [`HEADER_BYTES`] only if the peer is broken.
    pub length: u16,
    /// The number of the transaction, chosen for a request and repeated in its reply.
    pub transaction: u32,
}

impl Header {
    /// Returns the header at the head of `bytes`; None if there are too few.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        Some(Header {
            version: *bytes.first()?,
            kind: *bytes.get(1)?,
            length: u16_at(bytes, 2)?,
            transaction: u32_at(bytes, 4)?,
        })
    }
}

/// Message types. Up to 14 they are the same in 1.0 and 1.3.
pub mod kind {
    /// Both sides send it first, to agree on a version.
    pub const HELLO: u8 = 0;
    /// Either side reports an error.
    pub const ERROR: u8 = 1;
    /// Either side sends it; it is answered with the same body.
    pub const ECHO_REQUEST: u8 = 2;
    /// Either side answers an ECHO_REQUEST.
    pub const ECHO_REPLY: u8 = 3;
    /// Either side sends an extension, VENDOR in 1.0.
    pub const EXPERIMENTER: u8 = 4;
    /// The controller asks for the switch's features.
    pub const FEATURES_REQUEST: u8 = 5;
    /// The switch answers with its features.
    pub const FEATURES_REPLY: u8 = 6;
    /// The switch answers with its configuration.
    pub const GET_CONFIG_REPLY: u8 = 8;
    /// The controller sets the switch's configuration.
    pub const SET_CONFIG: u8 = 9;
    /// The switch hands over a packet.
    pub const PACKET_IN: u8 = 10;
    /// The switch reports that an entry was removed.
    pub const FLOW_REMOVED: u8 = 11;
    /// The switch reports that a port has changed.
    pub const PORT_STATUS: u8 = 12;
    /// The controller sends a packet out.
    pub const PACKET_OUT: u8 = 13;
    /// The controller changes the flow table.
    pub const FLOW_MOD: u8 = 14;

    use super::Version;

    /// Returns the number of BARRIER_REQUEST, which the controller sends.
    pub const fn barrier_request(version: Version) -> u8 {
        match version {
            Version::V10 => 18,
            Version::V13 => 20,
        }
    }

    /// Returns the number of BARRIER_REPLY, which the switch sends.
    pub const fn barrier_reply(version: Version) -> u8 {
        barrier_request(version) + 1
    }

    /// Returns the number of STATS_REPLY in 1.0, MULTIPART_REPLY in 1.3, which the switch sends.
    pub const fn statistics_reply(version: Version) -> u8 {
        match version {
            Version::V10 => 17,
            Version::V13 => 19,
        }
    }
}

/// An error's type and code (1.0.0, section 5.4.4; 1.3.5, section 7.5.4); these are the same in both versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode {
    /// The error's type, one of OFPET_...
    pub class: u16,
    /// The code within the class.
    pub code: u16,
}

impl ErrorCode {
    /// OFPHFC_INCOMPATIBLE: no common version.
    pub const INCOMPATIBLE: ErrorCode = ErrorCode { class: 0, code: 0 };
    /// OFPBRC_BAD_VERSION: not the version that was agreed upon.
    pub const BAD_VERSION: ErrorCode = ErrorCode { class: 1, code: 0 };
    /// OFPBRC_BAD_TYPE: not a message for a controller.
    pub const BAD_TYPE: ErrorCode = ErrorCode { class: 1, code: 1 };
    /// OFPBRC_BAD_EXPERIMENTER, in 1.0 OFPBRC_BAD_VENDOR: an extension that is not known.
    pub const BAD_EXPERIMENTER: ErrorCode = ErrorCode { class: 1, code: 3 };
    /// OFPBRC_BAD_LEN: too short, too long, or lengths within it do not fit.
    pub const BAD_LENGTH: ErrorCode = ErrorCode { class: 1, code: 6 };
}

/// Returns the big-endian number at `offset`; None past the end.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Returns the big-endian number at `offset`; None past the end.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Returns the big-endian number at `offset`; None past the end.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_agree_as_the_specification_says() {
        let (v10, v13) = (Some(Version::V10), Some(Version::V13));
        let cases: &[(Versions, u8, Option<u32>, Option<Version>)] = &[
            (Versions::ALL, 1, None, v10),
            (Versions::ALL, 4, None, v13),
            // 1.4 and 1.5 without a bitmap: the lower of both versions.
            (Versions::ALL, 5, None, v13),
            (Versions::ALL, 6, Some(0b0101_0010), v13),
            (Versions::ALL, 6, Some(0b0010_0010), v10),
            (Versions::ALL, 6, Some(0b0110_0000), None),
            (Versions::ALL, 2, None, None),
            (Versions::ALL, 3, None, None),
            (Versions::ALL, 0, None, None),
            (Versions::only(Version::V13), 1, None, None),
            (Versions::only(Version::V10), 4, Some(0b1_0010), v10),
            (Versions::only(Version::V10), 4, None, v10),
            (Versions::only(Version::V10), 4, Some(0b1_0000), None),
        ];
        for &(ours, version, bitmap, agreed) in cases {
            assert_eq!(ours.agree(version, bitmap), agreed, "{ours:?} with {version} {bitmap:?}");
        }
    }
}
