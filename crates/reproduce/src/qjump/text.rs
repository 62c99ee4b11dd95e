//! The words of the page.

pub(super) const HEAD: &str = "
# QJump, reproduced\n
QJump gives each priority a share of a network epoch: what is sent within its share meets a queue of known
length, and what wants more bandwidth takes a lower priority. Here are the figures of its testbed of twelve hosts
(Table 1 and Figs. 1, 3, 5 to 7 and 10), Fig. 9, which compares it with TCP, DCTCP and pFabric in a simulated fabric
of 144 hosts, Fig. 11, which checks the bound, and what its backup slides ask.\n\n";

pub(super) const READING: &str = "\n## What a simulator can say of a testbed\n
* **Hosts are not simulated.** Published times hold kernels, interrupts and schedulers; here a host is a delay, a
  service time and queues. One number is taken from a measurement for all of them: the idle ping of Table 1, 85 us,
  is the delay of four host links. Two applications take their time alone: memcached's requests 3.5 us each (128 in
  flight at a median of 443 us) and a barrier's computing 120 us (a median of 366 us). Fig. 3a's path takes its idle
  1.6 us. So rows *alone* and *idle* say nothing, and what counts is how others differ from them.
* **Held to a tolerance** is what the network makes: the ping across one switch, which was measured on the wires
  (a factor of 1.35), the ping through the shared queue (1.35), an application with QJump beside itself alone (1.2),
  and commits with QJump beside those without bursts (1.06). Elsewhere the order is what counts.
* **Not published, and assumed:** the links between the switches (one of 10 Gb/s each), who stood where, the
  buffer of a port (2 MB; see *buffer*), the NIC's queue (128 KB), how hard Hadoop pushed (a shuffle of 10 MB in the
  mean among eight hosts, 100 ms apart, without end), and the bursts of Fig. 6 (25 ms from two hosts, 25 ms apart).
* **Hadoop's runtime** is one over the data shuffled in two seconds: computing and disks, most of the real job, are
  not in it. What the network does to it is larger here than published.
* **PTP's offset** is that of one exchange between perfect clocks: half of what one way waited more than the
  other. ptpd steers a real clock by many of them, and its own noise is in the published ideal.
* **The standard base** is of Fig. 9 only: the testbed's transport and switches are by the book already.\n
## How to read Figs. 9 and 11\n
*Source* sets what the ns-2 scripts of Fig. 9 set and is held to values read off the figure: pFabric's and
QJump's small flows within a factor of 1.10 in the mean and 1.15 in the 99th percentile, DCTCP's within 1.20, large
flows of all within 1.10; TCP's small flows have no tolerance, but an order and a growth with load. *Standard* is the transport of the RFCs over ECMP,
pFabric as its paper has it, and QJump with strict priorities and its kernel module's limiter. Every parameter is
in `scenarios/qjump`; no constant is tuned to a row.\n
* **Numbers of flows.** The study ran 100 000 flows a point. Flows of 10 MB and more last long and build up over
  time, so that a run of 3000 flows underestimates high loads, of TCP most of all; and its flows are the first of the
  study's generators, which meet most, so that it overestimates low ones. The column *flows* says
  what each row is of; only rows of 100 000 flows are held to a tolerance. The standard base is of 3000 flows,
  data mining of 5000 or 500.
* **What load means.** The scripts start flows at the rate load x 10 Gb/s over 1138 packets of 1500 B. So
  their load counts headers, and 1138 packets stand for a mean that is really 1141.
* **Completion** is when the sender knows that the last byte has arrived, over the same on idle links:
  1.2 (n - 1) + 13.264 us for n packets in a rack, 14.680 between racks.
* **Small flows** are those of at most 100 kB. The figure's caption says so, while the plotting scripts cut at
  10 000 B (`small_10kB`); the table *Which flows the published curve is of* has the mean factor between each
  class and the published curve. The class is counted by packets of 1500 B: at most 66 of them, or 6. Large
  flows have more than 6666.
* **Which flows.** Every pair of hosts draws its gaps and sizes from generators of its own, seeded 17 i + 1244 j and
  33 i + 4369 j. ns-2's generator is linear in its seed, so neighbouring hosts start flows of about one size to
  the same host shortly after each other, and large flows meet at their destination 1.8 times as often as by
  chance. Source has these very flows, recomputed (`crates/reproduce/src/ns2.rs`). It matters: with independent arrivals
  flows above 10 MB took a quarter less than published in all four schemes (at 0.5: TCP 3.68, DCTCP 3.04, pFabric 3.15,
  QJump 3.01 times idle; published 4.93, 4.13, 4.05, 4.24), and with the study's own they take what is published.
  Small flows do not notice. Whoever takes Fig. 9 for Poisson arrivals reads its large flows too high.
* **Connections.** Each pair of hosts has eight warm connections under TCP and DCTCP and ten under QJump, more than it has
  flows at once; under pFabric it has one, and a flow that finds it busy opens another, whose handshake is
  part of its completion time (`transport.pool`). That is the tail: with a warm connection for every flow the
  99th percentile of pFabric's small flows is 1.27 at a load of 0.5 and 1.31 at 0.6, with the pool 1.46 and
  1.56, where 1.45 and 1.56 were published. Fig. 9 holds the price of a connection against pFabric alone.
* **QJump in Fig. 9** is in effect eight priorities by the size of a flow over a TCP that repairs losses by
  timeout: a bucket is as large as the largest flow of its level, so the limiter bites only on what is sent
  again.\n
In Fig. 11 sixty hosts offer packets of 256 B at the rate of their links, and QJump's limiter decides when they leave.
*bucket* is the kernel module: f packets at once in an epoch, and what is left of a share that is no whole number of
packets is lost. *even* has the same rate, one packet in an f-th of the epoch. *even-framed* is *even* with the
24 B that Ethernet adds to each packet on the wire (preamble, frame check, gap) and that the limiter does not count.
A factor below 1 is one packet in a longer epoch. The path takes all of the 12 us that the bound allows for it, so
that the bound is tight: the study's own path took less, and its mean of 4.3 us and 99th percentile of 5.7 to
6.5 us for f below 1 compare with ours only in how little is added to an idle path.\n";

pub(super) const CLOSING: &str = "\n## What the testbed teaches\n
* **Where the latency is.** A ping that shares hosts with bulk flows takes at most some 100 us more; one that shares
  a queue in the switch takes all of its buffer. Priorities take it out of the queue but for what is on the wire.
* **QJump leaves applications as they are alone.** Requests, barriers and clocks beside Hadoop have the
  distributions of an idle network, at every percentile. Alone among the schemes it needs no reaction of the job
  that interferes.
* **Who shares a link decides** (see *assumed*): with 40 Gb/s between the switches, the job never fills a link of the
  others, and TCP alone leaves them as they are. Where the server stands on one of the job's hosts, they suffer more.
* **ECN and DCTCP are next, and their thresholds decide.** A clock sees the queue that they keep. WRED's setting
  trades it for the job: at 5 segments the clock is best and the job has lost a third of its rate; at 40, the
  published best, the job has all of it. Which is *best* depends on what a lost third is worth: the smallest product
  of the three ratios is at 5 segments here. With 1280 segments and more, WRED begins where the buffer ends, and is plain
  TCP again. One row stands out, the job at 1280: a wave waits for its last transfer, and one whose SYN was lost waits
  for seconds; without handshakes, and with a first timeout of 200 ms, the job has 13.5 Gb/s there.
* **802.3x moves the queue to where it cannot be seen.** It loses nothing, and whoever shares a paused link waits
  with it. What a link may hold before it is paused decides how long: with 128 KB the clock is off by 127 us (RMS),
  less than with TCP alone; with 1 MB (see *assumed*) it is the worst of all schemes, as published. Hosts that
  pause the switch, which here none does, add to it.
* **TCP's own losses make the tail of memcached's requests**: timeouts of 200 ms, of a few requests in a hundred
  thousand; the study had one in 6000.
* **Two-phase commit** with QJump does not notice bursts. Without, it loses what the bursts take of the time, half
  of it, and no more: packets of 56 B still find room in a buffer that is too full for 1500 B. The published
  rates fall further beyond a load of 1, as they do where commits are lost and wait 200 ms; which bursts those were
  is open. Broadcast gains nothing when idle, for no time in a host is charged for sending seven packets.
* **memcached needs a rate for its level that carries it**: 2.4 Gb/s of answers, and whole answers within an epoch.
  From 3.75 Gb/s on it is as fast as without a limit; the study saw its best at about 5 Gb/s. Just below, the median is
  shorter and the tail longer: requests wait in the limiter in place of the server.
* **Bursts that fit the buffer need no QJump**, which takes twice as long, for its guarantee is for half of the link.
  Beyond the buffer TCP's tail is a timeout (10 ms here), and QJump's is twice the burst's own time.\n
## What the standard base teaches\n
* **The limiter of the kernel module is not what Fig. 9 simulated.** With Eq. 2's epoch, 2.08 ms for 144 hosts and
  9 kB, and one limiter per host and level, level 7 may send one flow of 8760 B in an epoch. A second one waits for
  the next epoch, about a hundred times its own 20 us: QJump's small flows are then slower at every load than
  DCTCP's. In the scripts each connection had a bucket of its own, as large as its flow.
* **pFabric loses nothing** by random spraying and the rules of its paper: every number is within a few percent of
  the scripts' variant.
* **TCP and DCTCP queue in the sender's NIC**, which is deep and does not mark here; a small flow waits behind the
  windows of the large ones of its host. In the scripts the NIC had the switch's queue, its limit and its
  threshold. TCP's 99th percentile, 200 to 300 times the idle time of some 20 us, is also about what its smallest
  timeout of 5 ms costs.\n
## Where the guarantee ends\n
* **f = 1 is exact.** Sixty packets at the same instant are the worst case, and the last of them takes the bound to
  the picosecond; at no factor up to 1 does any packet take longer.
* **A bucket of two or more breaks the bound before the link is full.** Hosts are not synchronised, so whole
  buckets meet. Up to the load that fills the link, few packets do.
* **The link is full where n f packets take an epoch**: f = (2 n P / R + eps) / (n P / R) = 2.98 with the 256 B that
  the limiter counts, and 2.72 with the 24 B more that each takes on the wire. The study saw the guarantee
  break at 2.7. Framing also lifts the worst case at f = 1 above the bound, which counts P without it:
  P should be what the wire carries.\n";

pub(super) const ORDERINGS: &str = "\n## Pairs in the other order\n
Where the measured intervals are apart and the order is not the published one. In rows of few flows the loads
that the study had are not reached. In Fig. 7, ptpd's noise covers the queues that ECN and DCTCP keep, a job that does
nothing but shuffle gains from every scheme that spares it timeouts, and memcached's published ratios below 1
are noise of its ideal.\n\n";
