//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "Two packets beyond the choice of priorities",
        covers: |row| row.figure == "fig3a" && row.series == "+iperf,QJump",
        reach: (0.65, 0.8),
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
        reach: (0.75, 1.45),
        text: "Bulk flows fill whatever buffer the switch gives a port, and a ping waits for all of it; see the figure \
               *buffer*. At 1.5 MB a port Fig. 3a's ping takes 1048 us in the median and 1201 us at the 99th \
               percentile, where 1047 and 1246 us were measured; Table 1's shared queue wants more than 2 MB. The \
               two experiments used different ports of a switch that shares one memory among them.",
    },
];

/// What is off and not settled by a run.
pub(super) const OPEN: &[Explanation] = &[];
