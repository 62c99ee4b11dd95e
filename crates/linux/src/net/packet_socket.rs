//! Live packets of a network device: a socket of the family AF_PACKET, with the best timestamps that the device has.
//!
//! A packet has the timestamp of the NIC where that is switched on for received packets (`hwstamp_ctl -i DEV -r 1`;
//! this leaves the device as it is), else the kernel's. VLAN tags that the NIC has taken off are missing. On a loopback
//! device each packet leaves and arrives; only its arrival is returned.

use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, TimestampingFlag, recvmmsg, setsockopt, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// A socket that receives the packets that a device sends and receives.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    kind: DeviceKind,
    is_loopback: bool,
    buffers: Vec<[u8; SNAP]>,
    dropped: u64,
}

/// The outermost header of a device's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// Packets begin with an Ethernet header.
    Ethernet,
    /// Packets begin with an IP header, as on a TUN device.
    Ip,
}

/// A packet of a device.
#[derive(Clone, Copy, Debug)]
pub struct LivePacket<'a> {
    /// Nanoseconds since 1970, by the clock that took the timestamp.
    pub ns: u64,
    /// Whether the NIC took the timestamp.
    pub is_hardware_time: bool,
    /// The length of the packet in bytes.
    pub length: usize,
    /// Its first bytes, up to [`SNAP`].
    pub data: &'a [u8],
}

/// The reasons why a device's packets cannot be received.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum PacketSocketError {
    #[error("there is no network device `{name}`; allowed: {allowed}")]
    NoDevice { name: String, allowed: String },
    #[error(
        "device `{name}` has packets of kind {kind} (ARPHRD); allowed: Ethernet (1), loopback (772), IP (65534)"
    )]
    Kind { name: String, kind: u32 },
    #[error("receiving all packets of `{name}` needs root or the capability CAP_NET_RAW")]
    NotAllowed { name: String },
    #[error("cannot receive the packets of `{name}`")]
    Socket { name: String, source: io::Error },
}

impl PacketSocket {
    /// Opens a socket on the device `name` of this network namespace.
    ///
    /// # Errors
    /// If the device does not exist, its packets have another kind of header, or the system refuses.
    pub fn open(name: &str) -> Result<PacketSocket, PacketSocketError> {
        let number = |file: &str| {
            let text = fs::read_to_string(Path::new(DEVICES).join(name).join(file)).ok()?;
            text.trim().parse::<u32>().ok()
        };
        let is_name = !name.is_empty() && !name.contains('/') && name != "..";
        let about = is_name.then(|| number("ifindex").zip(number("type"))).flatten();
        let (index, kind) = about.ok_or_else(|| PacketSocketError::NoDevice {
            name: name.to_owned(),
            allowed: devices().join(", "),
        })?;
        let device_kind = match kind {
            ETHERNET | LOOPBACK => DeviceKind::Ethernet,
            NONE => DeviceKind::Ip,
            kind => return Err(PacketSocketError::Kind { name: name.to_owned(), kind }),
        };
        PacketSocket::on(name, index, device_kind, kind == LOOPBACK)
    }

    /// Opens a socket on the Ethernet device `name` of the network namespace that this thread is in, which may differ
    /// from the one that `/sys` shows.
    ///
    /// # Errors
    /// If the device does not exist, or the system refuses.
    pub fn open_ethernet(name: &str) -> Result<PacketSocket, PacketSocketError> {
        let failed = |source| PacketSocketError::Socket { name: name.to_owned(), source };
        let any = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(failed)?;
        let index = name_to_index(&any, name).map_err(|errno| failed(errno.into()))?;
        PacketSocket::on(name, index, DeviceKind::Ethernet, false)
    }

    fn on(
        name: &str,
        index: u32,
        kind: DeviceKind,
        is_loopback: bool,
    ) -> Result<PacketSocket, PacketSocketError> {
        let socket = bound(index).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => PacketSocketError::NotAllowed { name: name.to_owned() },
            _ => PacketSocketError::Socket { name: name.to_owned(), source },
        })?;
        Ok(PacketSocket { socket, kind, is_loopback, buffers: vec![[0; SNAP]; BATCH], dropped: 0 })
    }

    /// Returns the outermost header of the packets.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Returns how many packets the kernel has dropped so far, since this program did not receive them in time.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Hands packets to `each`, and returns their number. If none is there, it waits for a tenth of a second at most.
    ///
    /// # Errors
    /// If the device is gone, or the system refuses.
    pub fn receive(&mut self, mut each: impl FnMut(LivePacket<'_>)) -> io::Result<usize> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        // Anew each time, since the kernel writes the lengths of control messages into them.
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(
            BATCH,
            Some(nix::cmsg_space!(TimeSpec, [TimeSpec; 3], u32)),
        );
        // MSG_TRUNC returns the length of a packet that does not fit.
        let flags = MsgFlags::MSG_WAITFORONE | MsgFlags::MSG_TRUNC;
        let received = recvmmsg(self.socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None);
        let received = match received.map_err(io::Error::from) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        let mut count = 0;
        for message in received {
            let is_outgoing = message.address.is_some_and(|address| address.pkttype() == PACKET_OUTGOING);
            let (mut software, mut hardware) = (None, None);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(time) => software = Some(time),
                    ControlMessageOwned::ScmTimestampsns(times) => {
                        hardware = Some(times.hw_raw).filter(|time| time.num_nanoseconds() != 0);
                    }
                    ControlMessageOwned::RxqOvfl(dropped) => self.dropped = u64::from(dropped),
                    _ => {}
                }
            }
            if let Some(data) = message.iovs().next()
                && !(self.is_loopback && is_outgoing)
            {
                let time = hardware.or(software).map_or(0, |time| time.num_nanoseconds());
                let ns = u64::try_from(time).unwrap_or(0);
                each(LivePacket { ns, is_hardware_time: hardware.is_some(), length: message.bytes, data });
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Returns the names of the network devices.
fn devices() -> Vec<String> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Makes a socket that receives the packets of a device from now on.
fn bound(index: u32) -> io::Result<Socket> {
    // Without a protocol it receives nothing until it is bound.
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
    // A buffer beyond the system's limit needs a capability of its own, and a smaller one is enough for slow devices.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        socket.set_recv_buffer_size(BUFFER_BYTES)?;
    }
    socket.set_read_timeout(Some(WAIT))?;
    let flags =
        TimestampingFlag::SOF_TIMESTAMPING_RX_HARDWARE | TimestampingFlag::SOF_TIMESTAMPING_RAW_HARDWARE;
    setsockopt(&socket, sockopt::Timestamping, &flags)?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    socket.bind(&address(index))?;
    Ok(socket)
}

/// Returns the address of all packets of a device (packet(7)).
#[expect(unsafe_code, reason = "no safe crate of this workspace has this address")]
fn address(index: u32) -> SockAddr {
    let initialise = |storage: *mut socket2::SockAddrStorage, length: *mut libc::socklen_t| {
        // SAFETY: `try_init` passes zeroed storage that is large enough and aligned for every address, and the length
        // of which this writes no more than `sockaddr_ll` has. All-zero is a value of each field that is not set.
        unsafe {
            let link = storage.cast::<libc::sockaddr_ll>();
            (*link).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*link).sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            (*link).sll_ifindex = index as libc::c_int;
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
        Ok(())
    };
    // SAFETY: `initialise` makes an address of the family that it names, with that family's length.
    let made: io::Result<((), SockAddr)> = unsafe { SockAddr::try_init(initialise) };
    made.expect("the initialisation has no error").1
}

/// The most bytes of a packet that are received: the headers.
pub const SNAP: usize = 128;
/// The most packets that one call receives.
const BATCH: usize = 64;
/// Bytes that the kernel keeps until they are received.
const BUFFER_BYTES: usize = 64 << 20;
/// Time for which a call waits for a packet.
const WAIT: Duration = Duration::from_millis(100);
const DEVICES: &str = "/sys/class/net";
/// Kinds of devices (linux/if_arp.h).
const ETHERNET: u32 = 1;
const LOOPBACK: u32 = 772;
const NONE: u32 = 65_534;
/// A packet that this host sends (linux/if_packet.h).
const PACKET_OUTGOING: u8 = 4;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn packets_of_the_loopback_device_arrive_once_with_a_time() {
        let mut socket = match PacketSocket::open("lo") {
            Err(PacketSocketError::NotAllowed { .. }) => {
                plimsoll_testing::skipped!("receiving all packets needs CAP_NET_RAW");
                return;
            }
            opened => opened.expect("every system has a loopback device"),
        };
        assert_eq!(socket.kind(), DeviceKind::Ethernet);
        let to = UdpSocket::bind("127.77.7.7:0").expect("all of 127/8 is here");
        let from = UdpSocket::bind("127.77.7.8:0").expect("all of 127/8 is here");
        let address = to.local_addr().expect("it is bound");
        for bytes in 0..20 {
            from.send_to(&vec![7; 100 * bytes], address).expect("it is received");
        }
        let (mut lengths, mut last) = (Vec::new(), 0);
        while lengths.len() < 20 {
            let received = socket.receive(|packet| {
                // Others use the device as well: the destination in the IPv4 header is ours.
                if packet.data.get(30..34) == Some(&[127, 77, 7, 7]) {
                    assert!(packet.ns >= last && packet.data.len() == packet.length.min(SNAP));
                    last = packet.ns;
                    lengths.push(packet.length);
                }
            });
            received.expect("the device is there");
        }
        let expected: Vec<usize> = (0..20).map(|bytes| 14 + 20 + 8 + 100 * bytes).collect();
        assert_eq!(lengths, expected);
        assert!(last > 1_600_000_000_000_000_000, "{last}");
    }

    #[test]
    fn a_device_that_is_not_there_is_named_with_those_that_are() {
        for name in ["nowhere0", "", "..", "a/b"] {
            let error = PacketSocket::open(name).expect_err("there is none").to_string();
            assert!(error.starts_with(&format!("there is no network device `{name}`; allowed: ")), "{error}");
            assert!(error.contains("lo"), "{error}");
        }
    }
}
