//! Why a row is outside what is asked of it: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "A slow link that carries all retrievals",
        covers: |row| row.figure == "claims" && row.x == "degraded at 0.1",
        reach: (0.75, 0.95),
        text: "Retrievals go before transfers on the slow link, too. At 0.1 it carries all of them, and what the \
               baseline's tail has on top is some timeouts: there is less to take off than in the talk's network, \
               whose racks are oversubscribed four to one. Simulated, the baseline's 99th percentile of the \
               largest pages is 0.79 s at 0.1 and 0.98 s at 0.2; at 0.3, where retrievals alone exceed 5 Mb/s, \
               it is 19 s. The study of 128 servers, oversubscribed as in the talk, has 96 % of the 99.9th at 0.1.",
    },
    Explanation {
        title: "Push-back spreads where there are four cores",
        covers: |row| row.figure == "claims" && row.x == "degraded at 0.3",
        reach: (0.65, 0.9),
        text: "At 0.3 more retrievals are sent over the slow link than it carries. They wait in the core, which \
               pauses the links into it, and what goes to other pods over those links waits with them: with a pause \
               from 4 KB on instead of 16 KB, which spreads sooner, simulated pages of the smallest retrievals take 9.8 s \
               at the 99th percentile instead of 0.46 s. A quarter of what goes between pods passes that \
               core here; a larger tree has more ways around a slow link: the study of \
               128 servers has 98 %.",
    },
];
