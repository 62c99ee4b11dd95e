//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[];

/// What is off and not settled by a run.
pub(super) const OPEN: &[Explanation] = &[Explanation {
    title: "pFabric's tail, and handshakes inside it",
    covers: |row| {
        let is_pfabric = row.figure == "fig9" && row.series == "pFabric" && row.metric == "small_p99";
        is_pfabric && row.ratio.is_some_and(|ratio| ratio < 1.0) || row.figure == "claims"
    },
    text: "The scripts keep one warm connection for each pair of hosts under pFabric (eight under TCP and \
           DCTCP, ten under QJump). A flow that starts while another of its pair is under way gets a new \
           connection, and its handshake is part of its completion time: about a round trip more, which \
           makes a flow of some 20 us half as slow again. At a load of 0.5 a pair starts 2.6 flows a second; if \
           one lasts 4 ms in the mean, one flow in a hundred meets another of its pair, which is where the \
           99th percentile is taken. Below that load such flows are too rare to show there, above it \
           they are all of the tail. Here every flow has a warm connection. Whether this is the whole difference \
           is to be settled by a run that keeps such pools.",
}];
