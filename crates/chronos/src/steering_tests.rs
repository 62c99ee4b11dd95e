//! [`PartitionSteering`] without real threads: every interleaving of turns that proptest generates.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::steering::{PartitionSteering, RequestPlacement};

const THREADS: u32 = 3;
const PARTITIONS: u32 = 2;

/// A partition: the requests that ran on it, as (thread, sequence), in order.
type Log = Vec<(u32, u32)>;

#[derive(Debug)]
enum Message {
    Request(Request),
    Reply(u32),
    Adopt(u32, Log),
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    origin: u32,
    partition: u32,
    sequence: u32,
    travelled: bool,
}

/// Threads, rings of unbounded length between them, and the published table.
struct World {
    threads: Vec<PartitionSteering<Log, Request>>,
    rings: Vec<Vec<VecDeque<Message>>>,
    table: Vec<u32>,
    generation: u64,
    /// Requests made, by thread and partition.
    made: Vec<Vec<u32>>,
    answered: u32,
}

impl World {
    fn new() -> World {
        let owners: Vec<u32> = (0..PARTITIONS).map(|partition| partition % THREADS).collect();
        World {
            threads: (0..THREADS).map(|me| PartitionSteering::new(me, &owners, |_| Log::new())).collect(),
            rings: (0..THREADS).map(|_| (0..THREADS).map(|_| VecDeque::new()).collect()).collect(),
            table: owners,
            generation: 0,
            made: vec![vec![0; PARTITIONS as usize]; THREADS as usize],
            answered: 0,
        }
    }

    fn refresh(&mut self, me: u32) {
        let steering = &mut self.threads[me as usize];
        if steering.generation() != self.generation {
            let rings = &mut self.rings[me as usize];
            steering.refresh(
                self.generation,
                |partition| self.table[partition as usize],
                |partition, log, to| {
                    rings[to as usize].push_back(Message::Adopt(partition, log));
                },
            );
        }
    }

    /// A request of one of the thread's connections.
    fn make(&mut self, me: u32, partition: u32) {
        let sequence = &mut self.made[me as usize][partition as usize];
        let request = Request { origin: me, partition, sequence: *sequence, travelled: false };
        *sequence += 1;
        if let Some(log) = self.threads[me as usize].own(partition) {
            log.push((me, request.sequence));
            self.answered += 1;
            return;
        }
        let place = self.threads[me as usize].place_own(partition, request);
        self.put(me, place);
    }

    fn put(&mut self, me: u32, placement: RequestPlacement<Request>) {
        match placement {
            RequestPlacement::Kept => {}
            RequestPlacement::Run(request) => self.run(me, request),
            RequestPlacement::Send(to, mut request) => {
                assert_ne!(to, me, "a thread sends itself nothing");
                request.travelled = true;
                self.rings[me as usize][to as usize].push_back(Message::Request(request));
            }
        }
    }

    fn run(&mut self, me: u32, request: Request) {
        let log = self.threads[me as usize].here(request.partition).unwrap();
        log.push((request.origin, request.sequence));
        if request.origin != me {
            self.rings[me as usize][request.origin as usize].push_back(Message::Reply(request.partition));
        } else {
            self.answered += 1;
            if request.travelled {
                self.replied(me, request.partition);
            }
        }
    }

    fn replied(&mut self, me: u32, partition: u32) {
        for request in self.threads[me as usize].on_reply(partition) {
            let place = self.threads[me as usize].place_own(partition, request);
            self.put(me, place);
        }
    }

    /// The thread takes up to `count` messages from another, then handles them.
    fn receive(&mut self, from: u32, me: u32, count: usize) {
        let ring = &mut self.rings[from as usize][me as usize];
        let count = count.min(ring.len());
        let messages: Vec<Message> = ring.drain(..count).collect();
        self.refresh(me);
        for message in messages {
            match message {
                Message::Request(request) => {
                    let partition = request.partition;
                    let place = self.threads[me as usize].place_foreign(partition, request);
                    self.put(me, place);
                }
                Message::Reply(partition) => {
                    self.answered += 1;
                    self.replied(me, partition);
                }
                Message::Adopt(partition, log) => {
                    for request in self.threads[me as usize].adopt(partition, log) {
                        self.run(me, request);
                    }
                }
            }
        }
    }

    /// New owners, if all have settled on the present ones.
    fn publish(&mut self, owners: [u32; PARTITIONS as usize]) {
        let generation = self.generation;
        if self.threads.iter().all(|thread| thread.generation() == generation && thread.is_settled()) {
            self.table = owners.to_vec();
            self.generation += 1;
        }
    }

    fn is_quiet(&self) -> bool {
        self.rings.iter().flatten().all(VecDeque::is_empty)
            && self.threads.iter().all(|thread| thread.generation() == self.generation)
    }

    fn finish(&mut self) {
        while !self.is_quiet() {
            for (from, me) in (0..THREADS).flat_map(|from| (0..THREADS).map(move |me| (from, me))) {
                self.receive(from, me, usize::MAX);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Make(u32, u32),
    Receive(u32, u32, usize),
    Publish([u32; PARTITIONS as usize]),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..THREADS, 0..PARTITIONS).prop_map(|(me, partition)| Act::Make(me, partition)),
        6 => (0..THREADS, 0..THREADS, 0_usize..3).prop_map(|(from, me, count)| Act::Receive(from, me, count)),
        2 => [0..THREADS, 0..THREADS].prop_map(Act::Publish),
    ];
    prop::collection::vec(act, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_request_runs_once_and_in_order(acts in acts()) {
        let mut world = World::new();
        for act in acts {
            match act {
                Act::Make(me, partition) => world.make(me, partition),
                Act::Receive(from, me, count) => world.receive(from, me, count),
                Act::Publish(owners) => world.publish(owners),
            }
        }
        world.finish();
        let made: u32 = world.made.iter().flatten().sum();
        prop_assert_eq!(world.answered, made, "each is answered");
        for partition in 0..PARTITIONS {
            let owner = world.table[partition as usize];
            prop_assert!(world.threads.iter().all(PartitionSteering::is_settled));
            let log = world.threads[owner as usize].here(partition).unwrap().clone();
            for thread in 0..THREADS {
                let ran: Vec<u32> = log.iter().filter(|run| run.0 == thread).map(|run| run.1).collect();
                let all: Vec<u32> = (0..world.made[thread as usize][partition as usize]).collect();
                prop_assert_eq!(ran, all, "partition {}, thread {}", partition, thread);
            }
        }
    }
}

/// The test above can fail: without waiting until all threads have settled, a request overtakes another.
#[test]
fn moving_back_too_early_reorders() {
    let mut world = World::new();
    // Thread 1 has a request under way to thread 0, which hands over to 2 and forwards it.
    world.make(1, 0);
    world.publish([2, 1]);
    world.refresh(0);
    world.receive(1, 0, 1);
    world.receive(0, 2, 1);
    // 2 hands back before it sees the request; 0 has the partition again, and 1's next request comes straight to it.
    world.table = vec![0, 1];
    world.generation += 1;
    world.refresh(2);
    world.make(1, 0);
    world.receive(2, 0, 1);
    world.receive(1, 0, 1);
    world.finish();
    let log: Vec<u32> = world.threads[0].here(0).unwrap().iter().map(|run| run.1).collect();
    assert_eq!(log, [1, 0], "this is what settling is for");
}
