//! Sockets: the listening ones, and the options that each connection gets.

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::{SocketFlags, accept_with, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::device::{DatagramDevice, DatagramDispatch, DeviceInfo, DeviceQueue, Dispatcher, OpenDevice};
use crate::{Config, Limits, Listen, SessionTransport, StartError, Tls};

/// The shortest pause in accepting after the kernel could not accept; a sleeping thread resumes within a second.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The time for which a place that is in use is tried again. The io_uring of a killed server outlives it: the kernel
/// cancels the ring's operations in its own time, and the sockets listen until then.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
/// Time between two tries.
const IN_USE_PAUSE: Duration = Duration::from_millis(10);

/// The sockets and device queues of a server.
#[derive(Default)]
pub(crate) struct Sockets {
    /// TCP and UNIX sockets; the first thread accepts for all.
    pub(crate) listeners: Vec<ServerSocket>,
    /// UDP sockets, by thread.
    pub(crate) udp: Vec<Vec<OwnedFd>>,
    /// Queues of devices, by thread.
    pub(crate) queues: Vec<Vec<DeviceQueue>>,
    /// Descriptions of the devices with those queues.
    pub(crate) devices: Vec<DeviceInfo>,
    /// The handles of devices that dispatch datagrams.
    pub(crate) dispatchers: Vec<Arc<dyn Dispatcher>>,
    /// Guards of those devices, each of which ends the use of its device when it is dropped.
    pub(crate) guards: Vec<Box<dyn Any + Send + Sync>>,
    /// The places that are served, in the order of [`crate::Config::listen`].
    pub(crate) bound: Vec<Listen>,
}

/// A socket that connections come from.
pub(crate) struct ServerSocket {
    pub(crate) socket: OwnedFd,
    pub(crate) transport: SessionTransport,
    pub(crate) tls: Option<Tls>,
    /// The path of a UNIX socket, which is removed at the end.
    path: Option<PathBuf>,
}

impl Drop for ServerSocket {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The file may be gone, or belong to another server by now.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Sockets {
    /// Opens the sockets that the configuration names; `owners` has the first owner of each partition.
    pub(crate) fn open(config: &Config, owners: &[u32]) -> Result<Sockets, StartError> {
        let dispatch = config.datagram_steering.map(|steering| DatagramDispatch {
            steering,
            threads: config.threads,
            owners,
        });
        let mut sockets = Sockets {
            udp: (0..config.threads).map(|_| Vec::new()).collect(),
            queues: (0..config.threads).map(|_| Vec::new()).collect(),
            ..Sockets::default()
        };
        for place in &config.listen {
            let bound = sockets
                .add_patiently(place, config)
                .map_err(|source| StartError::Listen { place: place.to_string(), source })?;
            sockets.bound.push(bound);
        }
        // Last, since this changes the device.
        for (place, bound) in config.listen.iter().zip(0..) {
            if let Listen::Device { device, places } = place {
                sockets.bound[bound] = sockets.add_device(device, places, dispatch.as_ref())?;
            }
        }
        Ok(sockets)
    }

    /// Takes datagrams from a device, and deals its queues to the threads.
    fn add_device(
        &mut self,
        device: &Arc<dyn DatagramDevice>,
        places: &[SocketAddr],
        dispatch: Option<&DatagramDispatch<'_>>,
    ) -> Result<Listen, StartError> {
        let failed = |reason| StartError::Device { interface: device.name().to_owned(), reason };
        let OpenDevice { info, queues, dispatcher, guard } = device.open(places, dispatch).map_err(failed)?;
        let threads = self.queues.len();
        for (number, queue) in queues.into_iter().enumerate() {
            self.queues[number % threads].push(queue);
        }
        let bound = Listen::Device { device: device.clone(), places: info.places.clone() };
        self.devices.push(info);
        self.dispatchers.extend(dispatcher);
        self.guards.push(guard);
        Ok(bound)
    }

    fn add_patiently(&mut self, place: &Listen, config: &Config) -> io::Result<Listen> {
        let begin = Instant::now();
        loop {
            match self.add(place, config) {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse && begin.elapsed() < IN_USE_PATIENCE =>
                {
                    std::thread::sleep(IN_USE_PAUSE);
                }
                result => return result,
            }
        }
    }

    fn add_tcp(&mut self, address: SocketAddr, tls: Option<Tls>, config: &Config) -> io::Result<SocketAddr> {
        let socket = new_socket(address, Type::STREAM, config.ipv6_only)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(i32::from(config.limits.backlog))?;
        let bound = local_address(&socket)?;
        self.listeners.push(ServerSocket {
            socket: socket.into(),
            transport: SessionTransport::Tcp,
            tls,
            path: None,
        });
        Ok(bound)
    }

    fn add(&mut self, place: &Listen, config: &Config) -> io::Result<Listen> {
        match place {
            Listen::Tcp(address) => Ok(Listen::Tcp(self.add_tcp(*address, None, config)?)),
            Listen::Tls { address, tls } => {
                let address = self.add_tcp(*address, Some(tls.clone()), config)?;
                Ok(Listen::Tls { address, tls: tls.clone() })
            }
            Listen::Unix { path, mode } => {
                let listener = listen_at_path(path, *mode, &config.limits)?;
                self.listeners.push(listener);
                Ok(place.clone())
            }
            // Later, when all sockets are open.
            Listen::Device { .. } => Ok(place.clone()),
            Listen::Udp(address) => {
                let mut address = *address;
                let mut opened = Vec::new();
                for _ in &self.udp {
                    let socket = new_socket(address, Type::DGRAM, config.ipv6_only)?;
                    socket.set_reuse_port(true)?;
                    socket.bind(&SockAddr::from(address))?;
                    // The first takes a free port; the others take the same.
                    address = local_address(&socket)?;
                    opened.push(socket.into());
                }
                for (sockets, socket) in self.udp.iter_mut().zip(opened) {
                    sockets.push(socket);
                }
                Ok(Listen::Udp(address))
            }
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listen::Tcp(address) => write!(f, "TCP {address}"),
            Listen::Tls { address, .. } => write!(f, "TLS {address}"),
            Listen::Udp(address) => write!(f, "UDP {address}"),
            Listen::Device { device, places } => {
                write!(f, "device {}, UDP", device.name())?;
                places.iter().try_for_each(|place| write!(f, " {place}"))
            }
            Listen::Unix { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

fn new_socket(address: SocketAddr, kind: Type, ipv6_only: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind.nonblocking().cloexec(), None)?;
    if address.is_ipv6() {
        socket.set_only_v6(ipv6_only)?;
    }
    Ok(socket)
}

fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?;
    address.as_socket().ok_or_else(|| io::Error::other("the kernel gave it no address"))
}

fn listen_at_path(path: &Path, mode: u32, limits: &Limits) -> io::Result<ServerSocket> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let listener = ServerSocket {
        socket: socket.into(),
        transport: SessionTransport::Unix,
        tls: None,
        // The process may change its working directory before it ends.
        path: Some(std::path::absolute(path)?),
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    rustix::net::listen(&listener.socket, i32::from(limits.backlog))?;
    Ok(listener)
}

/// Returns the next connection that waits, if any.
pub(crate) fn accept(listener: &ServerSocket) -> rustix::io::Result<Option<OwnedFd>> {
    match accept_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(socket) => {
            if listener.transport == SessionTransport::Tcp {
                set_up(socket.as_fd());
            }
            Ok(Some(socket))
        }
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the options of every TCP connection.
pub(crate) fn set_up(socket: impl AsFd) {
    // Only for latency and for dead peers; a connection without them serves as well.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    let _ = sockopt::set_socket_keepalive(&socket, true);
}
