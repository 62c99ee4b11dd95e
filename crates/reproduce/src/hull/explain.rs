//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "A pacer that has locked to its own interval",
        covers: |row| row.figure == "fig2b" && row.series == "DCTCP-PQ-Pacer" && row.x == "4",
        reach: (0.88, 0.96),
        text: "With four flows each sender keeps two packets in flight and the client's link is just \
               full: a fair share is 250 Mb/s on the wire. The pacer's rate follows what it measured in \
               the last T_r of 32 us, and three packets of 640 B in two such intervals are 240 Mb/s: a \
               fixed point just below the fair share. As long as no packet happens to be held at the \
               instant of a tick, the term beta x Q that would lift the rate is zero. In our run one of \
               the four pacers sits there (its flow gets 225 Mb/s of goodput, the others 237.5), so the \
               standing queue is 9.3 us instead of 10.1; in the study's run none does. Which it is \
               depends on the phase of the starts: with starts 100 us apart (`fig2b-phase`) the queue is \
               within 2 % of the published one.",
    },
    Explanation {
        title: "One run's arrivals",
        covers: |row| row.figure.starts_with("fig") && row.is_the_draw(),
        reach: (0.4, 2.5),
        text: "The study ran each point once, and so do we, with other random numbers. With 10 MB \
               transfers a run of 100 to 150 s has a few hundred of them, and a 99th percentile of 10 ms \
               means is decided by the one or two moments when most of them overlap. The column *seeds* \
               gives the smallest and largest value over nine seeds of the same experiment: the \
               published value lies inside. In Table II, with 1868 transfers to a point, \
               the 99th percentile of HULL's queue is within 3 %.",
    },
    Explanation {
        title: "One background for three figures",
        covers: |row| {
            matches!(row.figure.as_str(), "fig4" | "fig5" | "fig6")
                && row.seeds.zip(row.published).is_some_and(|((low, _), published)| published < low)
                && (row.metric.starts_with("queue_us") || row.metric.starts_with("bkg_fct"))
        },
        reach: (1.0, 2.5),
        text: "The study drew its background arrivals once, from the simulator's default seed, so Figs. 4, 5 \
               and 6 carry the same 10 MB transfers at the same (rescaled) times: what one draw does to one \
               of them it does to all. That draw overlaps less than ours: wherever these figures are off, \
               the published value lies below the smallest of our nine seeds (column *seeds*), \
               for the transfers themselves (Fig. 6, DCTCP-30K's 99th percentile at 200 Mb/s: 196 ms \
               published, 221 to 303 over our seeds) and for the queue that their overlaps make under HULL, which climbs by \
               two packets with every further sender at its minimum window. Table II, with several times \
               as many transfers, has the 99th percentile of the same queue within 3 % at every load.",
    },
];

/// What is off and not understood.
pub(super) const OPEN: &[Explanation] = &[];
