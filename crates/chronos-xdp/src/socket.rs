//! Opening AF_XDP sockets: memory for frames, four rings, and a device's queue to be bound to.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::pool::{FRAME_BYTES, FramePool, Shape};
use super::queue::{Rings, XdpQueue};
use super::ring::{Consuming, MappedMemory, Producing};

/// The time for which a queue that belongs to another socket is tried again. The io_uring of a killed server outlives
/// it, and so do its sockets.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
/// Time between two tries.
const IN_USE_PAUSE: Duration = Duration::from_millis(10);
/// XDP_MAX_TX_SKB_BUDGET (Linux 6.17): the number of frames that one call sends.
const SENDS_A_CALL: libc::c_int = 9;

/// Opens the first socket of a queue, with the frames of all that will share it; no device has it yet.
pub(crate) fn open(mtu: usize, shape: Shape) -> Result<XdpQueue, String> {
    let failed = |what: &'static str| move |error: io::Error| explain(what, &error, shape);
    let socket = new_socket().map_err(failed("an AF_XDP socket"))?;
    let memory = MappedMemory::anonymous(shape.memory_bytes()).map_err(failed("memory for frames"))?;
    // SAFETY: all-zero is a valid value of these numbers.
    #[expect(unsafe_code, reason = "a structure of the kernel's, of which not every field is set")]
    let mut frames: libc::xdp_umem_reg = unsafe { mem::zeroed() };
    frames.addr = memory.start().addr().get() as u64;
    frames.len = memory.bytes() as u64;
    frames.chunk_size = FRAME_BYTES as u32;
    set(&socket, libc::XDP_UMEM_REG, &frames).map_err(failed("registering frames"))?;
    let (fill, completion) = (shape.fill_entries(), shape.completion_entries());
    for (option, size) in [(libc::XDP_UMEM_FILL_RING, fill), (libc::XDP_UMEM_COMPLETION_RING, completion)] {
        set(&socket, option, &size).map_err(failed("a ring"))?;
    }
    let rings = || -> io::Result<(Producing<u64>, Consuming<u64>)> {
        let at: libc::xdp_mmap_offsets = get(&socket, libc::XDP_MMAP_OFFSETS)?;
        let offset = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
        let fill = Producing::new(map::<u64>(&socket, &at.fr, fill, offset)?, &at.fr, fill)?;
        let offset = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        let mapping = map::<u64>(&socket, &at.cr, completion, offset)?;
        Ok((fill, Consuming::new(mapping, &at.cr, completion)?))
    };
    let (fill, completion) = rings().map_err(failed("mapping a ring"))?;
    let pool = Arc::new(FramePool::new(memory, shape, fill, completion));
    with_rings(socket, 0, &pool, mtu)
}

/// Opens a further socket of the queue that has this pool, `number` among the sockets that share it.
pub(crate) fn open_sharing(mtu: usize, pool: &Arc<FramePool>, number: u32) -> Result<XdpQueue, String> {
    let socket = new_socket().map_err(|error| explain("an AF_XDP socket", &error, pool.shape))?;
    with_rings(socket, number, pool, mtu)
}

fn new_socket() -> io::Result<OwnedFd> {
    Ok(Socket::new(Domain::from(libc::AF_XDP), Type::RAW.cloexec(), None)?.into())
}

/// Gives the socket its rings to receive and to send.
fn with_rings(socket: OwnedFd, number: u32, pool: &Arc<FramePool>, mtu: usize) -> Result<XdpQueue, String> {
    let shape = pool.shape;
    let failed = |what: &'static str| move |error: io::Error| explain(what, &error, shape);
    for (option, size) in [(libc::XDP_RX_RING, shape.receive), (libc::XDP_TX_RING, shape.send)] {
        set(&socket, option, &size).map_err(failed("a ring"))?;
    }
    let rings = || -> io::Result<Rings> {
        let at: libc::xdp_mmap_offsets = get(&socket, libc::XDP_MMAP_OFFSETS)?;
        let receive = map::<libc::xdp_desc>(&socket, &at.rx, shape.receive, libc::XDP_PGOFF_RX_RING)?;
        let send = map::<libc::xdp_desc>(&socket, &at.tx, shape.send, libc::XDP_PGOFF_TX_RING)?;
        Ok(Rings {
            receive: Consuming::new(receive, &at.rx, shape.receive)?,
            send: Producing::new(send, &at.tx, shape.send)?,
        })
    };
    let rings = rings().map_err(failed("mapping a ring"))?;
    // Both only save calls and drops: without them, a call sends 32 frames, and fewer may be in flight.
    let _ = set(&socket, SENDS_A_CALL, &shape.send);
    let bytes = (shape.send as usize * FRAME_BYTES) as libc::c_int;
    let _ = set_at(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes);
    Ok(XdpQueue::new(socket, number, pool, rings, mtu))
}

/// Maps a ring of `size` entries of type `T`.
fn map<T>(
    socket: &OwnedFd,
    at: &libc::xdp_ring_offset,
    size: u32,
    offset: libc::off_t,
) -> io::Result<MappedMemory> {
    MappedMemory::of(socket.as_fd(), at.desc as usize + size as usize * size_of::<T>(), offset)
}

/// The way in which a socket is bound to a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BindMode<'a> {
    /// As the queue's first. The device reads and writes frames itself if it can, unless they must be copied.
    First { must_copy: bool },
    /// With the frames, the rings and the mode of this socket, which the queue has already.
    Sharing(BorrowedFd<'a>),
}

/// Gives the socket a queue of a device. Returns whether the device reads and writes frames itself.
#[expect(unsafe_code, reason = "no safe crate of this workspace has this address")]
pub(crate) fn bind(
    queue: &mut XdpQueue,
    ifindex: u32,
    number: u32,
    mode: BindMode<'_>,
) -> Result<bool, String> {
    let (flags, first) = match mode {
        BindMode::First { must_copy: true } => (libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY, 0),
        BindMode::First { must_copy: false } => (libc::XDP_USE_NEED_WAKEUP, 0),
        BindMode::Sharing(first) => (libc::XDP_SHARED_UMEM, first.as_raw_fd() as u32),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: number,
        sxdp_shared_umem_fd: first,
    };
    let shape = queue.pool().shape;
    let failed = |error: io::Error| explain(&format!("binding to queue {number}"), &error, shape);
    let begin = Instant::now();
    loop {
        // SAFETY: the call reads the given number of bytes at the pointer, which lives until it returns.
        let answer = unsafe {
            let length = size_of_val(&address) as libc::socklen_t;
            libc::bind(queue.socket().as_raw_fd(), (&raw const address).cast(), length)
        };
        if answer == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || begin.elapsed() >= IN_USE_PATIENCE {
            return Err(failed(error));
        }
        std::thread::sleep(IN_USE_PAUSE);
    }
    let options: libc::xdp_options = get(queue.socket(), libc::XDP_OPTIONS).map_err(failed)?;
    let is_zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
    queue.set_zero_copy(is_zero_copy);
    Ok(is_zero_copy)
}

/// Returns the number of frames that the kernel had for a socket without room in its rings.
pub(crate) fn overruns(socket: impl AsFd) -> io::Result<u64> {
    let statistics: libc::xdp_statistics = get(socket, libc::XDP_STATISTICS)?;
    Ok(statistics.rx_dropped + statistics.rx_ring_full)
}

fn set<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_XDP, option, value)
}

#[expect(unsafe_code, reason = "no safe crate of this workspace sets these options")]
fn set_at<T: Copy>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the call reads the given number of bytes at the pointer, which lives until it returns. Memory that a
    // value points to (frames) is kept by the socket's owner for as long as the socket.
    let answer = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns an option that the kernel writes as numbers.
#[expect(unsafe_code, reason = "no safe crate of this workspace gets these options")]
fn get<T: Copy + PlainData>(socket: impl AsFd, option: libc::c_int) -> io::Result<T> {
    // SAFETY: all-zero is a value of every type of numbers.
    let mut value: T = unsafe { mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the call writes at most the given number of bytes at the pointer, and any bits there are a value.
    let answer = unsafe {
        let (socket, value) = (socket.as_fd().as_raw_fd(), (&raw mut value).cast());
        libc::getsockopt(socket, libc::SOL_XDP, option, value, &raw mut length)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // Before Linux 5.9 some answers are shorter.
    let is_whole = length as usize == size_of::<T>();
    if is_whole { Ok(value) } else { Err(io::Error::other("the kernel is older than Linux 5.9")) }
}

/// A structure of numbers: all bits are a value.
trait PlainData {}
impl PlainData for libc::xdp_mmap_offsets {}
impl PlainData for libc::xdp_options {}
impl PlainData for libc::xdp_statistics {}

/// Returns advice about an error.
fn explain(what: &str, error: &io::Error, shape: Shape) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => " (CAP_NET_RAW is needed)".to_owned(),
        Some(libc::EAFNOSUPPORT) => " (the kernel has no AF_XDP)".to_owned(),
        Some(libc::ENOBUFS | libc::ENOMEM) => format!(
            " (each queue keeps {} KiB in memory: raise RLIMIT_MEMLOCK, `ulimit -l`, or give CAP_IPC_LOCK)",
            shape.memory_bytes() / 1024
        ),
        Some(libc::EBUSY) => " (another AF_XDP socket has that queue)".to_owned(),
        _ => String::new(),
    };
    format!("{what}: {error}{hint}")
}
