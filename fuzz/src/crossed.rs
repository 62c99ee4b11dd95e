//! [`Crossed`]: a service whose requests all come from another thread.

use plimsoll_chronos::{Now, PartitionId, ServedInput, Service, Step};

/// A service and its partitions. Each request is encoded and decoded, as on its way to another thread.
pub struct Crossed<S: Service> {
    service: S,
    partitions: Vec<S::Partition>,
}

impl<S: Service> Crossed<S> {
    /// Creates `partitions` empty partitions.
    pub fn new(service: S, partitions: u32) -> Crossed<S> {
        let partitions = (0..partitions).map(|index| service.partition(PartitionId(index))).collect();
        Crossed { service, partitions }
    }

    /// Returns the service that executes the requests.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Returns the service, and drops its partitions.
    pub fn into_service(self) -> S {
        self.service
    }

    /// Does the idle work until none is left.
    pub fn housekeeping(&mut self, now: Now) {
        for partition in &mut self.partitions {
            while self.service.housekeeping(partition, now) {}
        }
    }

    /// Serves every whole request at the head of `input`, as [`plimsoll_chronos::Direct::serve`] does; also returns the
    /// bytes from the head of the rest that it needs to continue.
    pub fn serve(
        &mut self,
        session: &mut S::Session,
        now: Now,
        input: &[u8],
        reply: &mut Vec<u8>,
    ) -> (ServedInput, usize) {
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            // Its result costs nothing but time.
            self.service.glance(rest);
            let done = match self.service.parse(session, now, rest, reply) {
                Step::Incomplete { total } => {
                    assert!(total > rest.len(), "{total} bytes are wanted where {} are there", rest.len());
                    return (ServedInput { consumed, close: false }, total);
                }
                Step::Close => return (ServedInput { consumed, close: true }, 0),
                Step::Skip { bytes } => {
                    consumed += bytes;
                    if consumed > input.len() {
                        return (ServedInput { consumed, close: false }, 0);
                    }
                    continue;
                }
                Step::Done { consumed } => consumed,
                Step::Run { consumed, partition, request } => {
                    self.run(partition.0 as usize, &request, now, reply);
                    consumed
                }
                Step::Everywhere { consumed, request } => {
                    let mut replies = vec![Vec::new(); self.partitions.len()];
                    for (partition, part) in replies.iter_mut().enumerate() {
                        self.run(partition, &request, now, part);
                    }
                    self.service.merge(session, &request, &replies, now, reply);
                    consumed
                }
            };
            assert!(done <= rest.len(), "{done} bytes are done with where {} are there", rest.len());
            consumed += done;
        }
    }

    fn run(&mut self, partition: usize, request: &S::Request<'_>, now: Now, reply: &mut Vec<u8>) {
        let mut message = Vec::new();
        self.service.encode(request, &mut message);
        let request = self.service.decode(&message);
        let partition = &mut self.partitions[partition];
        self.service.execute(partition, &request, now, reply);
    }
}
