//! The kinds of workload, one file each, and the registry that lists them.

pub mod all_to_all;
pub mod barrier;
pub mod closed_loop;
pub mod collective;
pub mod commit;
pub mod fan_out;
pub mod file_service;
pub mod flow_list;
pub mod flows;
pub mod hstride;
pub mod incast;
pub mod job;
pub mod packets;
pub mod pages;
pub mod permutation;
pub mod ping;
pub mod pstride;
pub mod ptp;
pub mod request_list;
pub mod rpc;
pub mod shuffle;
pub mod storage;
pub mod stride;
pub mod training;
pub mod transfer;

crate::registry::workloads! {
    Flows "flows" (flow) in flows;
    Rpc "rpc" in rpc;
    Transfer "transfer" in transfer;
    FanOut "fan-out" in fan_out;
    AllToAll "all-to-all" (flow) in all_to_all;
    Permutation "permutation" (flow) in permutation;
    Incast "incast" (flow) in incast;
    FlowList "flow-list" (flow) in flow_list;
    RequestList "request-list" in request_list;
    Packets "packets" (flow) in packets;
    Ping "ping" in ping;
    ClosedLoop "closed-loop" in closed_loop;
    Shuffle "shuffle" in shuffle;
    Barrier "barrier" in barrier;
    Commit "commit" in commit;
    Pages "pages" in pages;
    Ptp "ptp" in ptp;
    Stride "stride" (flow) in stride;
    Pstride "pstride" (flow) in pstride;
    Hstride "hstride" (flow) in hstride;
    FileService "file-service" in file_service;
    Collective "collective" in collective;
    Job "job" in job;
    Training "training" in training;
    Storage "storage" in storage;
}
