//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "Threads at half their capacity do not queue",
        covers: |row| row.figure == "fig6.3" && row.series == "CH",
        reach: (0.2, 0.55),
        text: "Table 5.1 and 1 to 4 us of user-level networking sum to 10 us, which is the published mean at 200 000 \
               requests/s. Beyond, four threads that take 2 us for a request are busy for a quarter of the time at 500 000 \
               requests/s and for half at a million: with ten independent clients there is nothing to wait for, and \
               the model stays at 11 to 12 us where 25 and 50 were measured. Nothing that was assumed about the \
               server changes that (figure *assumed-ch*: epochs, partitions, prices, Poisson arrivals). Requests that \
               arrive together do: in bursts of 32 the mean is 19 us and the 99th percentile 39 us at 500 000 requests/s, \
               in bursts of 128 the mean is 58 us at a million. Clients that hand packets to their NIC in batches, or a \
               receive ring that is emptied in batches, would be enough. The dissertation says of neither; the simulated \
               half cannot tell them apart.",
    },
    Explanation {
        title: "The client's own kernel",
        covers: |row| row.figure == "fig4.2",
        reach: (0.65, 0.8),
        text: "The median of 100 us was seen by memslap, whose kernel adds to it (section 6.2: 50 to 70 us beside clients \
               with user-level networking); the server's own was 82 us. The model's latency ends at the client's NIC. The \
               99th percentile, 255 us, is the spread of the kernel's time that section 4.1 observed.",
    },
    Explanation {
        title: "A closed loop at its limit",
        covers: |row| row.figure == "fig5.2",
        reach: (0.15, 0.3),
        text: "Clients that keep to 90 000 requests/s together leave a server that can do 120 000 a queue of 3 us, \
               however many they are: the published growth with the number of clients is not there. 161 clients that do \
               not keep to a rate (*MC, unpaced*) see 161 / 120 000 s less their own 60 us: 1.3 ms, a 99th percentile of \
               1.5 ms, within Table 5.1's 1.2 to 2.5 ms. 2 ms is what as many see of a server that does 80 000. Clients in \
               step (*MC, in step*) see nearly as much, but then at 40 000 requests/s too, where it was not. So at \
               *70 % of its maximum* the server was at times full, be it because clients that fall behind catch up, or \
               because its maximum falls with the number of clients.",
    },
    Explanation {
        title: "At the maximum itself",
        covers: |row| row.figure == "claims" && row.x == "fig6.3 at 120",
        reach: (1.6, 2.4),
        text: "120 000 requests/s is the rate that the model's lock is set to serve at most, and a queue at its limit \
               grows for as long as the run. Its 99th percentile is just below a millisecond, which is the bound that \
               section 5.2 gives for the same rate (*sub millisecond tail latency*); section 6.2.3 says 500 us.",
    },
    Explanation {
        title: "What a receive ring holds",
        covers: |row| row.figure == "fig6.5" && row.series == "CH 1 ms",
        reach: (1.6, 2.0),
        text: "150 000 requests/s in the mean are 1.5 million in a burst. One thread serves 500 of the 1500 that come in 1 ms, \
               and the last of the others waits for 2 ms: 1.8 ms at the 99th percentile. With a ring of 512 descriptors \
               instead of 4096 (*CH 1 ms, ring of 512*), none waits longer than 1.03 ms, and 3 % are lost: the published \
               *up to 1 ms at over 150 000*.",
    },
    Explanation {
        title: "Sixteen switches do not wait for one thread",
        covers: |row| row.figure == "table6.1" && row.x == "16",
        reach: (2.5, 3.6),
        text: "Sixteen switches that wait for an answer each keep one thread busy: the mean is sixteen times what a request \
               takes of it, 16 x 2 us with user-level networking and 16 x 22 us without, if a request costs what it does \
               in memcached. 10 and 120 us were measured: at most 0.6 and 7.5 us a request. The controller does less than \
               memcached for a packet-in, and TCP reads and writes several of them with one system call; or the one \
               process that is all sixteen switches lets them wait for itself.",
    },
    Explanation {
        title: "Keys that change as fast as the balancer",
        covers: |row| row.figure == "claims" && row.metric == "p99_of_100_us",
        reach: (0.7, 1.0),
        text: "How long a client's epoch lasts is not published. Where three keys stay hot for 1 ms or less, a balancer \
               that looks each 100 us learns of them late, and what it then moves leaves its queue with the old owner: \
               the two meet at the partition's mutex, each time for a wake-up of 7 us. Its 99th percentile is then no \
               better than that of a mapping that stays, whose queue has no time to grow. See `fig6.7`, by how long keys \
               stay, and there the standard base, which has no mutex. From 2 ms on the published order is there.",
    },
];

/// What is off and not settled by a run.
pub(super) const OPEN: &[Explanation] = &[];
