//! [`Direct`]: a service on the caller's thread, without a network: for tests, fuzzing, and measuring the cost of a
//! request.

use crate::look_ahead::ReadAhead;
use crate::{Ahead, Now, PartitionId, Service, Step};

/// A service and all its partitions.
pub struct Direct<S: Service> {
    service: S,
    partitions: Vec<S::Partition>,
}

/// The result of [`Direct::serve`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedInput {
    /// Bytes of input that are consumed; may exceed the input by the bytes that are still to be thrown away.
    pub consumed: usize,
    /// The connection is to be closed.
    pub close: bool,
}

impl<S: Service> Direct<S> {
    /// Creates a service with `partitions` empty partitions, 1 or more.
    pub fn new(service: S, partitions: u32) -> Direct<S> {
        let partitions = (0..partitions).map(|index| service.partition(PartitionId(index))).collect();
        Direct { service, partitions }
    }

    /// Returns the service that executes the requests.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Returns the partitions, in the order of their numbers.
    pub fn partitions(&mut self) -> &mut [S::Partition] {
        &mut self.partitions
    }

    /// Returns its service, and drops the partitions.
    pub fn into_service(self) -> S {
        self.service
    }

    /// Ends the service in order, as a runtime does at `now`.
    pub fn end(self, now: Now) {
        self.service.ended(self.partitions, now);
    }

    /// Does the idle work until none is left.
    pub fn housekeeping(&mut self, now: Now) {
        for partition in &mut self.partitions {
            while self.service.housekeeping(partition, now) {}
        }
    }

    /// Serves every whole request at the head of `input`, and appends the replies.
    pub fn serve(
        &mut self,
        session: &mut S::Session,
        now: Now,
        input: &[u8],
        reply: &mut Vec<u8>,
    ) -> ServedInput {
        let mut consumed = 0;
        let mut batch = ReadAhead::new();
        loop {
            if batch.is_full() {
                self.run(&mut batch, now, reply);
            }
            let rest = input.get(consumed..).unwrap_or_default();
            let replied = reply.len();
            let step = self.service.parse(session, now, rest, reply);
            if reply.len() > replied && !batch.is_empty() {
                // The earlier requests are answered first.
                let late = reply.split_off(replied);
                self.run(&mut batch, now, reply);
                reply.extend_from_slice(&late);
            }
            if let Step::Run { consumed: done, partition, request } = step {
                consumed += done;
                if S::LOOKS_AHEAD {
                    let place = self.service.place(&request);
                    self.service.look_ahead(&self.partitions[partition.0 as usize], place, Ahead::Index);
                    batch.push(partition.0, request);
                } else {
                    self.service.execute(&mut self.partitions[partition.0 as usize], &request, now, reply);
                }
                continue;
            }
            self.run(&mut batch, now, reply);
            match step {
                Step::Incomplete { .. } => return ServedInput { consumed, close: false },
                Step::Close => return ServedInput { consumed, close: true },
                Step::Done { consumed: done } => consumed += done,
                Step::Skip { bytes } => {
                    consumed += bytes;
                    if consumed > input.len() {
                        return ServedInput { consumed, close: false };
                    }
                }
                Step::Run { .. } => unreachable!("it is in the batch"),
                Step::Everywhere { consumed: done, request } => {
                    consumed += done;
                    let run = |partition| {
                        let mut part = Vec::new();
                        self.service.execute(partition, &request, now, &mut part);
                        part
                    };
                    let replies: Vec<Vec<u8>> = self.partitions.iter_mut().map(run).collect();
                    self.service.merge(session, &request, &replies, now, reply);
                }
            }
        }
    }

    /// Serves `input` as a connection does that gets at most `piece` bytes at a time (1 or more), up to its end or the
    /// service's closing. Returns the replies, and whether the service closed.
    pub fn serve_in_pieces(
        &mut self,
        session: &mut S::Session,
        now: Now,
        input: &[u8],
        piece: usize,
    ) -> (Vec<u8>, bool) {
        let (mut reply, mut start, mut end) = (Vec::new(), 0, 0);
        while end < input.len() {
            end = (end + piece).min(input.len());
            if start >= end {
                continue;
            }
            let served = self.serve(session, now, &input[start..end], &mut reply);
            start += served.consumed;
            if served.close {
                return (reply, true);
            }
        }
        (reply, false)
    }

    #[inline]
    fn run(&mut self, batch: &mut ReadAhead<S::Request<'_>>, now: Now, reply: &mut Vec<u8>) {
        let service = &self.service;
        batch.run(
            &mut self.partitions,
            |partitions, partition, request| {
                service.look_ahead(&partitions[partition as usize], service.place(request), Ahead::Data);
            },
            |partitions, partition, request| {
                service.execute(&mut partitions[partition as usize], request, now, reply);
            },
        );
    }
}
