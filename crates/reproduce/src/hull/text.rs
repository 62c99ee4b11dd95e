//! The words of the page.

pub(super) const HEAD: &str = "
# HULL, reproduced\n
HULL gives up a little bandwidth to keep switch queues empty: phantom queues that mark before a real
queue forms, DCTCP that reacts in proportion, and host pacing that takes the bursts out. A semester
project evaluated it in ns-2; here is every experiment of that evaluation, run again.\n\n";

pub(super) const READING: &str = "\n*Source* sets what the study's ns-2 scripts set, experiment by experiment, and is
held to the published values: means within a factor of 1.35 and 99th percentiles within 1.5 in Table II and
Figs. 4 to 6, 5 % and 15 % for the static flows. *Standard* is the same experiment by the RFCs and the paper,
without a tolerance. *Original* is the HULL paper's own testbed where the study repeats one of its
experiments. Queueing delays are means over intervals (1 ms static, 10 ms elsewhere), as the study's scripts
took them. Every parameter is in `scenarios/hull`; no constant is tuned to a row.\n
Two things had to be found out before the numbers came out:\n
* **Every message begins with a window of two segments.** The scripts turn slow-start restart off, yet in the
  study's raw results each write brings the window back to two, while ssthresh stays. A lone 10 MB transfer on
  a warm connection takes 83.42 to 83.44 ms, of which the line rate needs 83.40. In Fig. 4 without background
  the scripts' random numbers give every arrival and service time again, and what is left of a response time
  is its path. The servers have their 3500 B requests one after another every 13.44 us, as ten connections
  share the client's NIC that send two segments each and then the rest; the 2800 B response takes 61.52 us,
  two segments and then one, where three in a row take 41.28. That needs no idle time: the same holds 75 us
  after the response before, and a response 40 us after another, with a segment still unacknowledged, takes
  57.2 us where a window that had grown would give 45.3. So with TCP a query crosses the client's queue three
  times: once with an ACK that the end of the request waits for, and twice with the response. When the window
  fell back only after an idle RTO, TCP's fastest response in Fig. 4 came a third too early (0.87 and 1.26 ms
  against 1.20 and 1.94 at 200 and 400 Mb/s). When it never did, Table II's DCTCP queue overflowed (mean 35 us
  instead of 13).
* **Ties must be fair.** Packets that are clocked by one bottleneck arrive on one time lattice, so two of
  them often arrive in the same picosecond. Served in port order, two DCTCP flows settle at 4 : 1 and with
  drop-tail the lowest port locks the others out. Plimsoll resolves each tie by a permutation that changes
  with the instant (`crates/fabric/src/engine/queue.rs`); DCTCP-30K's static queue then comes out within 2 %.\n
The small requests' tail in Table II is the sender's own NIC, not the switch: a server that sends a 10 MB file
has the whole window in its NIC queue, nothing marks there, and a small response waits behind it. That is why
DCTCP's 99th percentile (about 0.85 ms) is several times its queue at the switch (0.24 ms), and why HULL, whose
window is two or three packets, takes it away.\n";

pub(super) const DIFFERENCE: &str = "\n## What the standard base teaches\n
* **DCTCP that marks every packet above K** instead of every second one cuts in time: Table II's 99th
  percentile of the queue is a fifth lower at 40 and 60 % load, at the same completion times.
* **HULL's floor is one packet, not two.** The study's ns-2 opens the window on every ECE ACK but the first of a
  run, so a sender that is always marked keeps two packets in flight; by RFC 3168 no ECE ACK opens it, and one
  remains. Eight static flows then queue for 8 us instead of 51, and Table II's 99th percentile of the queue is
  three to six times lower, for transfers that take at most 7 % longer on average.
* **The paper's pacer** stands in front of the NIC queue and lets other flows pass; the study's stands behind it
  and blocks them. Small requests gain from that as well: their 99th percentile is a third to a half lower.
* **SACK** repairs in a round trip what the study's Reno repaired by a timeout, so drop-tail TCP hardly stalls:
  1 % more goodput from four flows on, and a queue that is 5 to 15 % longer for it.\n";

pub(super) const ORDERINGS: &str = "\n## Pairs in the other order\n
Where the measured intervals are apart and the order is not the published one. In Fig. 2b at two flows the
phase of the starts decides who is locked out (`fig2b-phase`, with starts 50 us apart, has the published
order); elsewhere the published values are close and each was run once.\n\n";
