//! memcached's shared gets: `SharedRead::read` answers as `Service::execute` does, or leaves everything to it.

use std::time::Duration;

use plimsoll_chronos::{Now, PartitionId, Service, SessionTransport, Step};
use plimsoll_chronos_locked::SharedRead;
use plimsoll_chronos_memcached::{Memcached, MemcachedSettings, Partition};

const NOW: Now = Now { since_start: Duration::from_secs(5), unix_seconds: 1_800_000_000 };

struct Server {
    service: Memcached,
    partition: Partition,
    reads: <Memcached as SharedRead>::Reads,
}

impl Server {
    fn new() -> Server {
        let service = Memcached::new(MemcachedSettings { partitions: 1, ..MemcachedSettings::default() })
            .expect("good settings");
        let partition = service.partition(PartitionId(0));
        let reads = service.reads(&partition);
        Server { service, partition, reads }
    }

    /// Parses `input`, and hands each request and its time to `run`.
    fn each(
        &mut self,
        input: &[u8],
        seconds: u64,
        run: impl Fn(&mut Server, &[u8], Now) -> Vec<u8>,
    ) -> Vec<u8> {
        let now = Now { since_start: NOW.since_start + Duration::from_secs(seconds), ..NOW };
        let (mut session, mut rest, mut reply) =
            (self.service.open(SessionTransport::Tcp), input, Vec::new());
        while !rest.is_empty() {
            let step = self.service.parse(&mut session, now, rest, &mut reply);
            let Step::Run { consumed, request, .. } = step else { panic!("no request of one key") };
            let mut message = Vec::new();
            self.service.encode(&request, &mut message);
            rest = &rest[consumed..];
            reply.extend(run(self, &message, now));
        }
        reply
    }

    fn execute(&mut self, input: &[u8], seconds: u64) -> Vec<u8> {
        self.each(input, seconds, |server, message, now| {
            let (mut reply, request) = (Vec::new(), server.service.decode(message));
            server.service.execute(&mut server.partition, &request, now, &mut reply);
            reply
        })
    }

    /// The answer, if a read of it was enough. (A request is never answered with nothing here.)
    fn read(&mut self, input: &[u8], seconds: u64) -> Option<Vec<u8>> {
        let reply = self.each(input, seconds, |server, message, now| {
            let (mut reply, request) = (Vec::new(), server.service.decode(message));
            let is_done = server.service.read(&server.partition, &server.reads, &request, now, &mut reply);
            assert_eq!(is_done, !reply.is_empty(), "an answer, or none and no trace of one");
            reply
        });
        (!reply.is_empty()).then_some(reply)
    }
}

fn binary_get(key: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 0x0c, 0, key.len() as u8, 0, 0, 0, 0, 0, 0, 0, key.len() as u8];
    packet.resize(24, 7);
    packet[16..24].fill(0);
    packet.extend_from_slice(key);
    packet
}

#[test]
fn a_fetch_that_changes_nothing_is_read() {
    let mut server = Server::new();
    assert_eq!(server.execute(b"set a 5 0 1\r\nx\r\n", 0), b"STORED\r\n");
    let gets = [&b"get a\r\n"[..], b"gets a\r\n", &binary_get(b"a")];
    // The first two fetches make it active.
    for _ in 0..2 {
        assert!(gets.iter().all(|get| server.read(get, 0).is_none()));
        server.execute(gets[0], 0);
    }
    for get in gets {
        let expected = server.execute(get, 0);
        assert_eq!(server.read(get, 0), Some(expected));
    }
    for miss in [&b"get b\r\n"[..], &binary_get(b"b")] {
        let expected = server.execute(miss, 0);
        assert_eq!(server.read(miss, 0), Some(expected));
    }
}

#[test]
fn what_may_change_something_is_left_to_execute() {
    let mut server = Server::new();
    server.execute(b"set a 5 100 1\r\nx\r\nget a\r\nget a\r\n", 0);
    assert!(server.read(b"get a\r\n", 0).is_some());
    for request in [
        &b"gat 0 a\r\n"[..],
        b"touch a 0\r\n",
        b"mg a v\r\n",
        b"delete a\r\n",
        b"incr a 1\r\n",
        b"set a 0 0 1\r\ny\r\n",
    ] {
        assert_eq!(server.read(request, 0), None, "{}", request.escape_ascii());
    }
    // An expired item is removed by the fetch that finds it.
    assert_eq!(server.read(b"get a\r\n", 101), None);
    assert_eq!(server.execute(b"get a\r\n", 101), b"END\r\n");
    assert_eq!(server.read(b"get a\r\n", 101), Some(b"END\r\n".to_vec()));
}

#[test]
fn with_statistics_of_prefixes_nothing_is_read() {
    let mut server = Server::new();
    assert!(server.read(b"get p:a\r\n", 0).is_some());
    server.service.shared().detail.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(server.read(b"get p:a\r\n", 0), None);
}

#[test]
fn what_is_read_counts_as_what_is_executed() {
    let [read, executed] = [true, false].map(|is_shared| {
        let mut server = Server::new();
        server.execute(b"set a 5 0 1\r\nx\r\nget a\r\nget a\r\n", 0);
        for get in [&b"get a\r\n"[..], b"get b\r\n", &binary_get(b"a")] {
            if is_shared {
                assert!(server.read(get, 0).is_some());
            } else {
                server.execute(get, 0);
            }
        }
        let Server { service, partition, reads } = &mut server;
        let mut session = service.open(SessionTransport::Tcp);
        let Step::Everywhere { request, .. } =
            service.parse(&mut session, NOW, b"stats\r\n", &mut Vec::new())
        else {
            panic!("statistics are of all partitions")
        };
        service.settle(partition, reads, &request);
        let (counters, class) = (&partition.counters, partition.store.counts());
        (counters.get_commands, counters.get_misses, class.get_hits)
    });
    assert_eq!(executed, (5, 1, 4));
    assert_eq!(read, executed);
}
