//! A service whose replies name the partition that answered, requests for it in every protocol of memcached, and
//! policies that move partitions.

use std::net::UdpSocket;

use plimsoll_chronos::{KeyHash, Now, PartitionId, Service, SessionTransport, Step};
use plimsoll_mechanisms::partition_balancer::Balance;

/// Answers each request, ASCII or binary, with the number of the partition that ran it, and its count of requests.
pub struct Keys {
    pub hash: KeyHash,
    pub partitions: u32,
    pub by_vbucket: bool,
}

/// A partition's number and the requests that it has run.
pub struct Counted {
    id: u32,
    count: u32,
}

impl Keys {
    /// Returns the partition of a request.
    pub fn partition_of(&self, input: &[u8]) -> u32 {
        let key = if input[0] == 0x80 {
            let length = usize::from(u16::from_be_bytes([input[2], input[3]]));
            &input[24 + usize::from(input[4])..][..length]
        } else {
            let start = input.iter().position(|&byte| byte == b' ').unwrap() + 1;
            let length = input[start..].iter().position(|&byte| byte <= b' ').unwrap();
            &input[start..start + length]
        };
        if self.by_vbucket && input[0] == 0x80 {
            u32::from(u16::from_be_bytes([input[6], input[7]])) % self.partitions
        } else {
            KeyHash::partition(self.hash.hash(key), self.partitions).0
        }
    }
}

impl Service for Keys {
    type Partition = Counted;
    type Session = ();
    type Request<'a> = u32;

    fn partition(&self, PartitionId(id): PartitionId) -> Counted {
        Counted { id, count: 0 }
    }

    fn open(&self, _transport: SessionTransport) {}

    fn parse(&self, _: &mut (), _: Now, input: &[u8], _: &mut Vec<u8>) -> Step<u32> {
        if input.is_empty() {
            return Step::Incomplete { total: 1 };
        }
        let partition = self.partition_of(input);
        Step::Run { consumed: input.len(), partition: PartitionId(partition), request: partition }
    }

    fn execute(&self, partition: &mut Counted, request: &u32, _: Now, reply: &mut Vec<u8>) {
        assert_eq!(partition.id, *request, "the state is the partition's");
        partition.count += 1;
        reply.extend_from_slice(&partition.id.to_le_bytes());
        reply.extend_from_slice(&partition.count.to_le_bytes());
    }

    fn encode(&self, request: &u32, message: &mut Vec<u8>) {
        message.extend_from_slice(&request.to_le_bytes());
    }

    fn decode(&self, message: &[u8]) -> u32 {
        u32::from_le_bytes(message.try_into().unwrap())
    }

    fn merge(&self, _: &mut (), _: &u32, _: &[Vec<u8>], _: Now, _: &mut Vec<u8>) {}

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        Some((0, datagram.get(8..)?))
    }

    fn seal(&self, _envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        send(reply);
    }
}

/// Turns every owner to the next thread, once or each time.
pub struct Turn {
    pub once: bool,
    has_turned: bool,
}

impl Turn {
    pub fn new(once: bool) -> Turn {
        Turn { once, has_turned: false }
    }
}

impl Balance for Turn {
    fn balance(&mut self, _load: &[u64], _requests: u64, threads: u32, owner: &mut [u32]) {
        if !(std::mem::replace(&mut self.has_turned, true) && self.once) {
            owner.iter_mut().for_each(|owner| *owner = (*owner + 1) % threads);
        }
    }
}

/// The frame header of a request in one datagram.
pub const FRAME_HEADER: [u8; 8] = [0, 1, 0, 0, 0, 1, 0, 0];

/// Asks, and returns the partition that answered and its count.
pub fn ask(socket: &UdpSocket, request: &[u8]) -> (u32, u32) {
    socket.send(&[&FRAME_HEADER[..], request].concat()).unwrap();
    let mut reply = [0; 64];
    assert_eq!(socket.recv(&mut reply).unwrap(), 8);
    let number = |at: usize| u32::from_le_bytes(*reply[at..].first_chunk().unwrap());
    (number(0), number(4))
}

/// Returns a binary request with `extras` bytes of extras.
pub fn binary(key: &[u8], extras: u8, vbucket: u16) -> Vec<u8> {
    let mut request = vec![0; 24];
    request[0] = 0x80;
    request[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    request[4] = extras;
    request[6..8].copy_from_slice(&vbucket.to_be_bytes());
    [request, vec![7; usize::from(extras)], key.to_vec()].concat()
}

/// Requests with keys of every length, in every protocol.
pub fn requests() -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    for length in 1..=250_usize {
        let key: Vec<u8> = (0..length).map(|index| b'!' + ((index * 31 + length) % 90) as u8).collect();
        for (before, after) in [("get ", "\r\n"), ("mg ", " v t\r\n"), ("replace ", " 0 0 1\r\nx\r\n")] {
            requests.push([before.as_bytes(), &key, after.as_bytes()].concat());
        }
        requests.push(binary(&key, [0, 8, 20][length % 3], length as u16));
    }
    requests
}
