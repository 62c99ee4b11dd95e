//! The numbers of flows: which are connections, subflows of MPTCP and datagrams.

/// The flow number of the first subflow: above the numbers of connections, and below the numbers of datagrams.
pub(super) const FIRST_SUBFLOW: u32 = 1 << 30;

/// Returns the flow number of a workload's datagrams, counted down from the largest.
pub(super) fn of_datagrams(workload: u16) -> u32 {
    u32::MAX - u32::from(workload)
}

/// Returns the workload whose datagrams have the number `flow`; `None` for the number of a connection or subflow.
#[inline]
pub(crate) fn datagram_workload(flow: u32) -> Option<u16> {
    (flow > u32::MAX - u32::from(u16::MAX)).then(|| (u32::MAX - flow) as u16)
}
