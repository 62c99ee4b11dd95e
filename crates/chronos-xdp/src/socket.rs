//! Opening AF_XDP sockets: memory for frames, four rings, and a device's queue to be bound to.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::queue::{FRAME_BYTES, FRAMES, Queue, RECEIVE_FRAMES, Rings, SEND_FRAMES};
use super::ring::{Consuming, Mapping, Producing};

/// Bytes of a queue's frames, which the kernel keeps in memory (RLIMIT_MEMLOCK).
pub(crate) const MEMORY_BYTES: usize = FRAMES as usize * FRAME_BYTES;

/// How long a queue that another socket has is tried again. A server that was killed has gone before its io_uring has,
/// and its sockets with that.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
/// Time between two tries.
const IN_USE_PAUSE: Duration = Duration::from_millis(10);
/// XDP_MAX_TX_SKB_BUDGET (Linux 6.17): frames that are sent by one call.
const SENDS_A_CALL: libc::c_int = 9;

/// A socket with its frames and rings, which no device knows yet.
pub(crate) fn open(mtu: usize) -> Result<Queue, String> {
    let failed = |what: &'static str| move |error: io::Error| explain(what, &error);
    let socket: OwnedFd = Socket::new(Domain::from(libc::AF_XDP), Type::RAW.cloexec(), None)
        .map_err(failed("an AF_XDP socket"))?
        .into();
    let memory = Arc::new(Mapping::anonymous(MEMORY_BYTES).map_err(failed("memory for frames"))?);
    // SAFETY: all-zero is a value of these numbers.
    #[expect(unsafe_code, reason = "a structure of the kernel's, of which not every field is set")]
    let mut frames: libc::xdp_umem_reg = unsafe { mem::zeroed() };
    frames.addr = memory.start().addr().get() as u64;
    frames.len = MEMORY_BYTES as u64;
    frames.chunk_size = FRAME_BYTES as u32;
    set(&socket, libc::XDP_UMEM_REG, &frames).map_err(failed("registering frames"))?;
    for (option, size) in [
        (libc::XDP_UMEM_FILL_RING, RECEIVE_FRAMES),
        (libc::XDP_RX_RING, RECEIVE_FRAMES),
        (libc::XDP_TX_RING, SEND_FRAMES),
        (libc::XDP_UMEM_COMPLETION_RING, SEND_FRAMES),
    ] {
        set(&socket, option, &size).map_err(failed("a ring"))?;
    }
    let rings = rings(&socket).map_err(failed("mapping a ring"))?;
    // Both only save calls and drops: without, a call sends 32 frames, and fewer may be on their way.
    let _ = set(&socket, SENDS_A_CALL, &SEND_FRAMES);
    let bytes = (SEND_FRAMES as usize * FRAME_BYTES) as libc::c_int;
    let _ = set_at(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes);
    Ok(Queue::new(socket, &memory, rings, mtu))
}

/// Gives it a queue of a device; without `must_copy` the device reads and writes frames itself if it can. True if it
/// does.
#[expect(unsafe_code, reason = "no safe crate of this workspace has this address")]
pub(crate) fn bind(queue: &mut Queue, ifindex: u32, number: u32, must_copy: bool) -> Result<bool, String> {
    let copy = if must_copy { libc::XDP_COPY } else { 0 };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP | copy,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: number,
        sxdp_shared_umem_fd: 0,
    };
    let failed = |error: io::Error| explain(&format!("binding to queue {number}"), &error);
    let begin = Instant::now();
    loop {
        // SAFETY: the call reads as many bytes as it is told at the pointer, which lives until it returns.
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

/// Frames that the kernel had for a socket, and no room in its rings.
pub(crate) fn overruns(socket: impl AsFd) -> io::Result<u64> {
    let statistics: libc::xdp_statistics = get(socket, libc::XDP_STATISTICS)?;
    Ok(statistics.rx_dropped + statistics.rx_ring_full)
}

fn rings(socket: &OwnedFd) -> io::Result<Rings> {
    let at: libc::xdp_mmap_offsets = get(socket, libc::XDP_MMAP_OFFSETS)?;
    let map = |at: &libc::xdp_ring_offset, entry_bytes: usize, size: u32, offset: libc::off_t| {
        Mapping::of(socket.as_fd(), at.desc as usize + size as usize * entry_bytes, offset)
    };
    let (frame, entry) = (size_of::<u64>(), size_of::<libc::xdp_desc>());
    let fill = map(&at.fr, frame, RECEIVE_FRAMES, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?;
    let receive = map(&at.rx, entry, RECEIVE_FRAMES, libc::XDP_PGOFF_RX_RING)?;
    let send = map(&at.tx, entry, SEND_FRAMES, libc::XDP_PGOFF_TX_RING)?;
    let completion = map(&at.cr, frame, SEND_FRAMES, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?;
    Ok(Rings {
        fill: Producing::new(fill, &at.fr, RECEIVE_FRAMES)?,
        receive: Consuming::new(receive, &at.rx, RECEIVE_FRAMES)?,
        send: Producing::new(send, &at.tx, SEND_FRAMES)?,
        completion: Consuming::new(completion, &at.cr, SEND_FRAMES)?,
    })
}

fn set<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_XDP, option, value)
}

#[expect(unsafe_code, reason = "no safe crate of this workspace sets these options")]
fn set_at<T: Copy>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the call reads as many bytes as it is told at the pointer, which lives until it returns. What a value
    // points to (frames) the socket's owner keeps for as long as the socket.
    let answer = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An option that the kernel writes as numbers.
#[expect(unsafe_code, reason = "no safe crate of this workspace gets these options")]
fn get<T: Copy + Numbers>(socket: impl AsFd, option: libc::c_int) -> io::Result<T> {
    // SAFETY: all-zero is a value of every type of numbers.
    let mut value: T = unsafe { mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the call writes no more bytes than it is told at the pointer, and any bits there are a value.
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
trait Numbers {}
impl Numbers for libc::xdp_mmap_offsets {}
impl Numbers for libc::xdp_options {}
impl Numbers for libc::xdp_statistics {}

/// What to do about an error.
fn explain(what: &str, error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => " (CAP_NET_RAW is needed)".to_owned(),
        Some(libc::EAFNOSUPPORT) => " (the kernel has no AF_XDP)".to_owned(),
        Some(libc::ENOBUFS | libc::ENOMEM) => format!(
            " (each queue keeps {} KiB in memory: raise RLIMIT_MEMLOCK, `ulimit -l`, or give CAP_IPC_LOCK)",
            MEMORY_BYTES / 1024
        ),
        Some(libc::EBUSY) => " (another AF_XDP socket has that queue)".to_owned(),
        _ => String::new(),
    };
    format!("{what}: {error}{hint}")
}
