//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "Two packets beyond the choice of priorities",
        covers: |row| row.figure == "fig3a" && row.series == "+iperf,QJump",
        text: "With strict priorities a ping waits for the one packet that is on the wire: up to 1.2 us, all lengths \
               alike, so that the 99th percentile is 1.6 + 1.2 us. The published times are those of twice as \
               much: 1.1, 1.8 and 2.3 us above the idle path at the percentiles 50, 90 and 99. The series \
               *+iperf,QJump,3KB* sends bulk data in pieces of 3 KB, which is what a switch does that has taken \
               two packets beyond its choice when the ping arrives; it gives 2.8, 3.8 and 4.0 us where 2.7, 3.4 and \
               3.9 us were measured.",
    },
    Explanation {
        title: "The buffer is not published",
        covers: |row| row.figure == "fig3a" && row.series == "+iperf" || row.figure == "table1",
        text: "Bulk flows fill whatever buffer the switch gives a port, and a ping waits for all of it; see the figure \
               *buffer*. At 1.5 MB a port Fig. 3a's ping takes 1048 us in the median and 1201 us at the 99th \
               percentile, where 1047 and 1246 us were measured; Table 1's shared queue wants more than 2 MB. The \
               two experiments used different ports of a switch that shares one memory among them.",
    },
];

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
