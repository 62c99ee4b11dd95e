//! The fields of an Ethernet frame that a learning switch reads.

/// The addresses and the VLAN of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// The destination address.
    pub destination: [u8; 6],
    /// The MAC address of the sender.
    pub source: [u8; 6],
    /// The 802.1Q tag's VLAN, 0 to 4095 (0: a tag of priority only); None without a tag.
    pub vlan: Option<u16>,
}

impl Ethernet {
    /// Reads the header of `frame`; None if it is too short.
    pub fn read(frame: &[u8]) -> Option<Ethernet> {
        const TAG_802_1Q: [u8; 2] = [0x81, 0x00];
        let destination = *frame.first_chunk()?;
        let source = *frame.get(6..)?.first_chunk()?;
        let ethertype: [u8; 2] = *frame.get(12..)?.first_chunk()?;
        let vlan = if ethertype == TAG_802_1Q {
            Some(u16::from_be_bytes(*frame.get(14..)?.first_chunk()?) & 0x0fff)
        } else {
            None
        };
        Some(Ethernet { destination, source, vlan })
    }

    /// Reports whether the destination is a group: broadcast or multicast.
    pub fn to_group(&self) -> bool {
        self.destination[0] & 1 != 0
    }

    /// Reports whether the destination is the bridge itself (01-80-C2-00-00-00 to -0F: spanning tree, LLDP), so that
    /// the frame is never forwarded (802.1Q, 8.6.3).
    pub fn to_bridge(&self) -> bool {
        self.destination[..5] == [0x01, 0x80, 0xc2, 0x00, 0x00] && self.destination[5] < 0x10
    }

    /// Reports whether the source cannot be a station: a group's address, or zero.
    pub fn from_nobody(&self) -> bool {
        self.source[0] & 1 != 0 || self.source == [0; 6]
    }
}
