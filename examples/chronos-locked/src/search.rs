//! The index's queries as shared reads.

use plimsoll_chronos::Now;
use plimsoll_chronos_search::{Partition, Request, SearchService};

use crate::SharedRead;

impl SharedRead for SearchService {
    type Reads = ();

    fn reads(&self, _partition: &Partition) {}

    fn read(
        &self,
        partition: &Partition,
        _reads: &(),
        request: &Request<'_>,
        _now: Now,
        reply: &mut Vec<u8>,
    ) -> bool {
        self.look(partition, request, reply)
    }
}
