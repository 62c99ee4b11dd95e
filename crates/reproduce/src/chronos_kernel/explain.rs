//! Why a claim is in the other order here: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        title: "Nothing waits for a lock on two processors",
        covers: |row| row.figure == "claims" && row.x.starts_with("fig5.3"),
        reach: (0.2, 0.7),
        text: "The index server of the dissertation held its lock for microseconds, with four threads that did nothing but \
               that over user-level networking. A get of 1 KB holds it for less than a microsecond of the several that the \
               kernel takes for the same request, so two threads hardly ever meet at it. Steering takes every second request \
               to the other thread through a ring, and where that thread sleeps, for a wake-up between processors \
               (*given*). The model is told the same, and has the locks no slower either. With more threads a global lock does become \
               the limit: see `cores` of the [simulated study](chronos.md).",
    },
    Explanation {
        title: "Both are behind the kernel's TCP",
        covers: |row| {
            row.figure == "claims" && ["fig6.4", "fig6.5"].iter().any(|figure| row.x.starts_with(figure))
        },
        reach: (0.02, 0.3),
        text: "Chronos's servers read the network card themselves; the kernel, which was most of memcached's time, was not \
               there. Here both servers are asked through the kernel's TCP, so what is left of the difference is how often \
               a server enters the kernel for a request (io_uring and batches against epoll), which shows in *cost_of_first*. \
               Where many requests wait, ours takes them at once and carries more; where they wait for the generator, which \
               pays the same kernel for the same requests, neither is ahead.",
    },
    Explanation {
        title: "What is asked for beyond the maximum waits for as long as a turn lasts",
        covers: |row| row.figure == "claims" && row.x.starts_with("fig6.3"),
        reach: (0.3, 30.0),
        text: "At 110 % of what memcached carries its queue grows by a tenth of what is asked for, for the 0.4 s of a turn, and \
               ours, which carries more, has none. The ratio is that of a queue to none: with a turn of another length it is another number, so \
               only the order says something.",
    },
    Explanation {
        title: "Hot keys on threads that share their processors",
        covers: |row| row.figure == "claims" && row.x.starts_with("fig6.7"),
        reach: (0.5, 1.5),
        text: "In the dissertation a million requests a second overload the thread that has the hot keys, while three others \
               idle. Here two threads share two processors with the generator: a thread with more to do gets more of a \
               processor from the scheduler, whoever owns the keys, and the other thread's idle time is the generator's. \
               There is little for a balancer to win, and every move costs what waits for it. Epochs of 10 us hold less \
               than one request at these rates, so a balancer waits until it has enough of them to judge by (32) whatever its epoch is.",
    },
    Explanation {
        title: "A neighbour takes the processor, not the network",
        covers: |row| row.figure == "claims" && row.x.starts_with("neighbour"),
        reach: (0.2, 5.0),
        text: "The dissertation's background job shared the host's kernel with memcached, and Chronos passed that kernel by, \
               on cores of its own. Here the job and its streams are on the server's one processor, and both servers need the \
               kernel on it: the scheduler lets them wait for a time slice of the job's, whatever they are. What is measured \
               is the scheduler.",
    },
    Explanation {
        title: "Switches that wait are wake-ups and the kernel's TCP",
        covers: |row| row.figure == "claims" && row.x.starts_with("table6.1"),
        reach: (0.1, 0.7),
        text: "With one packet-in under way the controller sleeps before each, and is woken by the kernel for it: that time \
               is the same for every program, and the few microseconds of the controllers' own are lost in it. Table 6.1 \
               gained by a thread that looks at the card instead of sleeping, which is `--poll spin`, and by leaving out \
               the kernel's TCP, which cannot be had here ([more](../chronos/openflow.md)).",
    },
];
