//! [`NetworkDevice`]: the kernel's data of a network device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::ifaddrs::getifaddrs;
use socket2::{Domain, Socket, Type};

/// A network device as it was when the server started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NetworkDevice {
    pub(crate) index: u32,
    /// Its Ethernet address.
    pub(crate) hardware: [u8; 6],
    pub(crate) addresses: Vec<IpAddr>,
    /// The longest packet in bytes.
    pub(crate) mtu: usize,
    /// The number of queues that receive.
    pub(crate) receive_queues: u32,
    /// The number of queues that send.
    pub(crate) send_queues: u32,
}

/// The hardware type of Ethernet, `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;
/// The command `ETHTOOL_GCHANNELS`, which reads the numbers of queues.
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`: the largest and the present numbers of queues that receive, send, do neither, and do
/// both.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

impl NetworkDevice {
    /// Looks the device up by its name.
    pub(crate) fn find(name: &str) -> Result<NetworkDevice, String> {
        // Any socket serves for the request.
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(|error| error.to_string())?;
        let index = rustix::net::netdevice::name_to_index(&socket, name)
            .map_err(|_| "there is no such device".to_owned())?;
        let entries = getifaddrs().map_err(|errno| format!("its addresses: {errno}"))?;
        let (mut hardware, mut addresses) = (None, Vec::new());
        for address in entries.filter(|entry| entry.interface_name == name).filter_map(|entry| entry.address)
        {
            if let Some(link) = address.as_link_addr() {
                hardware = link.addr().filter(|_| link.hatype() == ETHERNET);
            } else if let Some(address) = address.as_sockaddr_in() {
                addresses.push(IpAddr::V4(address.ip()));
            } else if let Some(address) = address.as_sockaddr_in6() {
                addresses.push(IpAddr::V6(address.ip()));
            }
        }
        let hardware = hardware.ok_or("it is not an Ethernet device")?;
        let mtu = mtu(&socket, name).map_err(|error| format!("its MTU: {error}"))?;
        let Channels { receive, send, combined, .. } =
            channels(&socket, name).map_err(|error| format!("its queues: {error}"))?;
        Ok(NetworkDevice {
            index,
            hardware,
            addresses,
            mtu,
            receive_queues: receive + combined,
            send_queues: send + combined,
        })
    }

    /// Returns the addresses of the device among `places`. An unspecified address means all of its addresses: 0.0.0.0
    /// all of IPv4, and ::, as for a socket, all of IPv6 and IPv4.
    pub(crate) fn places(&self, places: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut found = Vec::new();
        for place in places {
            let is_meant = |address: &&IpAddr| match place.ip() {
                IpAddr::V4(wanted) if wanted.is_unspecified() => address.is_ipv4(),
                IpAddr::V6(wanted) if wanted.is_unspecified() => true,
                wanted => **address == wanted,
            };
            let meant = self.addresses.iter().filter(is_meant);
            found.extend(meant.map(|address| SocketAddr::new(*address, place.port())));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[expect(unsafe_code, reason = "no safe crate of this workspace asks for this")]
fn mtu(socket: &Socket, name: &str) -> io::Result<usize> {
    let mut request = request(name);
    // SAFETY: the call reads and writes one `ifreq`, which lives until it returns.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written this field of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(io::Error::other)
}

/// Returns the number of queues; one of both kinds, if the driver does not report it.
#[expect(unsafe_code, reason = "no safe crate of this workspace asks for this")]
fn channels(socket: &Socket, name: &str) -> io::Result<Channels> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: the call reads one `ifreq`, and writes a `struct ethtool_channels` where that points to; both live until
    // it returns.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if answer == 0 {
        return Ok(channels);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
        return Ok(Channels { combined: 1, ..Channels::default() });
    }
    Err(error)
}

/// Creates a request about the device of this name, which the kernel knows.
#[expect(unsafe_code, reason = "a structure of the kernel's, of which not every field is set")]
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero is an `ifreq`: an empty name, and a union of numbers and null pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let length = request.ifr_name.len() - 1;
    for (place, &byte) in request.ifr_name[..length].iter_mut().zip(name.as_bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(addresses: &[&str]) -> NetworkDevice {
        NetworkDevice {
            index: 1,
            hardware: [2; 6],
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            mtu: 1500,
            receive_queues: 1,
            send_queues: 1,
        }
    }

    #[test]
    fn an_unspecified_address_is_all_that_the_device_has() {
        let device = interface(&["192.0.2.1", "192.0.2.2", "2001:db8::1", "fe80::1"]);
        for (places, expected) in [
            (&["0.0.0.0:7"][..], &["192.0.2.1:7", "192.0.2.2:7"][..]),
            (&["[::]:7"], &["192.0.2.1:7", "192.0.2.2:7", "[2001:db8::1]:7", "[fe80::1]:7"]),
            (&["192.0.2.2:7", "127.0.0.1:7"], &["192.0.2.2:7"]),
            (&["192.0.2.2:7", "0.0.0.0:7", "192.0.2.2:8"], &["192.0.2.1:7", "192.0.2.2:7", "192.0.2.2:8"]),
            (&["198.51.100.1:7"], &[]),
        ] {
            let read = |texts: &[&str]| -> Vec<SocketAddr> {
                texts.iter().map(|text| text.parse().unwrap()).collect()
            };
            assert_eq!(device.places(&read(places)), read(expected), "{places:?}");
        }
    }

    #[test]
    fn what_is_no_ethernet_device_is_refused() {
        assert_eq!(NetworkDevice::find("nothing-has-this").unwrap_err(), "there is no such device");
        assert_eq!(NetworkDevice::find("lo").unwrap_err(), "it is not an Ethernet device");
    }
}
