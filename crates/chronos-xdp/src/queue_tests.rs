//! A queue beside a device that the test plays, by the other side of the same rings.

use std::os::unix::net::UnixDatagram;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::super::pool::{RECEIVE_FRAMES, SEND_FRAMES, Shape};
use super::super::ring::MappedMemory;
use super::*;

/// Where a ring's parts are in its memory.
const AT: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };
const RING_BYTES: usize = 192 + RECEIVE_FRAMES as usize * size_of::<libc::xdp_desc>();

/// The device's side of sending.
struct Device {
    send: Consuming<libc::xdp_desc>,
    completion: Producing<u64>,
    pool: Arc<FramePool>,
}

/// A ring's memory, twice: for the queue and for the device.
fn ring() -> [MappedMemory; 2] {
    let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, RING_BYTES as u64).unwrap();
    [(); 2].map(|()| MappedMemory::of(file.as_fd(), RING_BYTES, 0).unwrap())
}

/// The sender of a device that reads frames itself, and that device.
fn queue() -> (QueueSender, Device) {
    let shape = Shape::of(1);
    let memory = MappedMemory::anonymous(shape.memory_bytes()).unwrap();
    let [[fill, _], [receive, _], [send, send_far], [completion, completion_far]] = [(); 4].map(|()| ring());
    let fill = Producing::new(fill, &AT, RECEIVE_FRAMES).unwrap();
    let completion = Consuming::new(completion, &AT, SEND_FRAMES).unwrap();
    let pool = Arc::new(FramePool::new(memory, shape, fill, completion));
    let rings = Rings {
        receive: Consuming::new(receive, &AT, RECEIVE_FRAMES).unwrap(),
        send: Producing::new(send, &AT, SEND_FRAMES).unwrap(),
    };
    let device = Device {
        send: Consuming::new(send_far, &AT, SEND_FRAMES).unwrap(),
        completion: Producing::new(completion_far, &AT, SEND_FRAMES).unwrap(),
        pool: pool.clone(),
    };
    // The rings ask for no call, so this socket is never called.
    let socket = UnixDatagram::unbound().unwrap();
    let mut queue = XdpQueue::new(socket.into(), 0, &pool, rings, 1500);
    queue.set_zero_copy(true);
    (queue.sender, device)
}

impl Device {
    /// Sends up to `most` frames, and returns the first two bytes of their datagrams.
    fn send(&mut self, most: usize) -> Vec<u16> {
        let mut sent = Vec::new();
        while sent.len() < most
            && let Some(frame) = self.send.take()
        {
            sent.push(self.number(frame.addr as usize));
            assert!(self.completion.put(frame.addr));
        }
        self.send.release();
        self.completion.publish();
        sent
    }

    #[expect(unsafe_code, reason = "memory that both sides share")]
    fn number(&self, frame: usize) -> u16 {
        /// Bytes of the headers of Ethernet, IPv4 and UDP.
        const HEADER_BYTES: usize = 42;
        // SAFETY: the queue has handed the frame over, which is within the mapping.
        u16::from_le_bytes(unsafe { self.pool.memory.start().add(frame + HEADER_BYTES).cast().read() })
    }
}

/// The return address of a request.
fn route() -> ReturnAddress {
    let mut request = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
    // IPv4 with its checksum, and UDP without one.
    request.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0xf6, 0xcc, 192, 0, 2, 2, 192, 0, 2, 1]);
    request.extend([0x10, 0x92, 0x2b, 0xcb, 0, 8, 0, 0]);
    frame::parse(&request).unwrap().0.encode()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_finds_no_frame_waits_its_turn() {
    let (mut queue, mut device) = queue();
    let route = route();
    for number in 0..3000_u16 {
        queue.push(&route, &number.to_le_bytes());
    }
    let mut bytes = queue.send(SECOND).bytes;
    assert_eq!(bytes, 2 * u64::from(SEND_FRAMES), "the rest has no frame");
    let mut sent = Vec::new();
    for turn in 2.. {
        assert_eq!(queue.is_stuck(), sent.len() + (SEND_FRAMES as usize) < 3000);
        let now = device.send(700);
        if now.is_empty() {
            break;
        }
        sent.extend(now);
        let more = queue.send(turn * SECOND);
        assert_eq!(more.dropped, 0);
        bytes += more.bytes;
    }
    assert_eq!(sent, (0..3000).collect::<Vec<u16>>());
    assert_eq!(bytes, 6000);
    assert!(queue.is_sent());
}

#[test]
fn a_device_that_sends_nothing_is_not_waited_for_without_end() {
    let (mut queue, mut device) = queue();
    let route = route();
    let push = |queue: &mut QueueSender, count: u16| {
        (0..count).for_each(|number| queue.push(&route, &number.to_le_bytes()))
    };
    push(&mut queue, SEND_FRAMES as u16 + 5);
    assert_eq!(queue.send(10 * SECOND).dropped, 0);
    assert_eq!(queue.send(11 * SECOND).dropped, 0);
    assert!(queue.is_stuck() && !queue.is_sent());
    assert_eq!(queue.send(12 * SECOND).dropped, 5);
    assert!(!queue.is_stuck(), "a thread that waits for it would turn without end");
    push(&mut queue, 7);
    assert_eq!(queue.send(20 * SECOND).dropped, 7, "nor does what comes later wait, until it sends again");
    assert_eq!(device.send(usize::MAX).len(), SEND_FRAMES as usize);
    push(&mut queue, 9);
    assert_eq!(queue.send(23 * SECOND), Sent { bytes: 18, dropped: 0 });
    assert_eq!(device.send(usize::MAX), (0..9).collect::<Vec<u16>>());
    assert!(queue.is_sent());
}

#[test]
fn what_waits_is_bounded() {
    let (mut queue, _device) = queue();
    let route = route();
    let datagrams = (2 * Backlog::<ReplyRoute>::BYTES_MAX / 1400) as u64;
    (0..datagrams).for_each(|_| queue.push(&route, &[7; 1400]));
    let sent = queue.send(SECOND);
    let waiting = datagrams - sent.dropped - u64::from(SEND_FRAMES);
    assert_eq!(waiting, (Backlog::<ReplyRoute>::BYTES_MAX / 1400) as u64);
}
