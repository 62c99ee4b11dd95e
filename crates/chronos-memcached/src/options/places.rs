//! The places at which the server listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use plimsoll_chronos::{Listen, Tls};
use plimsoll_chronos_xdp::XdpDevice;
use plimsoll_process::note;

use super::Options;
use super::extended::Extended;

impl Options {
    /// Addresses or the UNIX socket to listen on.
    pub(super) fn places(&self, extended: &Extended) -> Result<Vec<Listen>> {
        if self.udp_port < 1 && !extended.devices.is_empty() {
            bail!("-o chronos_xdp needs the UDP port that it is for: -U <num>, 1 to 65535");
        }
        if self.enable_ssl && self.tcp_port() == 0 && self.unix_socket.is_none() {
            bail!("-Z needs a TCP port: -p 0 has none");
        }
        let tls = self.tls(extended)?;
        if let Some(path) = &self.unix_socket {
            if tls.is_some() {
                note!("-Z has no effect with -s: a UNIX socket is served in the clear");
            }
            if !extended.devices.is_empty() {
                bail!("-s and -o chronos_xdp: a UNIX socket has no network device");
            }
            return Ok(vec![Listen::Unix { path: path.clone(), mode: self.unix_mask }]);
        }
        let mut places = Vec::new();
        let any = [everywhere().to_string()];
        let given: &[String] = if self.listen.is_empty() { &any } else { &self.listen };
        // -1 is the kernel's 0.
        let port = |given: i32| u16::try_from(given).unwrap_or(0);
        for text in given {
            let plain = text.strip_prefix("notls:");
            let text = plain.unwrap_or(text);
            if plain.is_some() && tls.is_none() {
                bail!("-l notls:{text}: notls: is for addresses of a server with -Z");
            }
            if self.tcp_port() != 0 {
                places.extend(addresses(text, port(self.tcp_port()))?.into_iter().map(
                    |address| match &tls {
                        Some(tls) if plain.is_none() => Listen::Tls { address, tls: tls.clone() },
                        _ => Listen::Tcp(address),
                    },
                ));
            }
            if self.udp_port != 0 {
                places.extend(addresses(text, port(self.udp_port))?.into_iter().map(Listen::Udp));
            }
        }
        if places.is_empty() {
            // memcached also starts in this case.
            note!("-p 0 without -U: there is nothing to listen on, so no client can connect");
        }
        // The kernel's sockets stay, for other devices, and for fragments.
        let udp = |place: &Listen| if let Listen::Udp(address) = place { Some(*address) } else { None };
        let udp: Vec<SocketAddr> = places.iter().filter_map(udp).collect();
        let device =
            |name: &String| Listen::Device { device: Arc::new(XdpDevice::new(name)), places: udp.clone() };
        places.extend(extended.devices.iter().map(device));
        Ok(places)
    }

    fn tls(&self, extended: &Extended) -> Result<Option<Tls>> {
        if !self.enable_ssl {
            return Ok(None);
        }
        Ok(Some(extended.tls_files()?.read().context("-Z")?))
    }
}

/// All addresses: over IPv6, which takes IPv4 too, if there is IPv6.
fn everywhere() -> IpAddr {
    if UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// Returns the addresses that `text` means, at `port` unless it has one of its own.
fn addresses(text: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) => {
            (host, digits.parse().with_context(|| format!("-l {text}: {digits} is no port"))?)
        }
        None => (text, port),
    };
    let found = (host, port).to_socket_addrs().with_context(|| format!("-l {text}: cannot find {host}"))?;
    Ok(found.collect())
}
