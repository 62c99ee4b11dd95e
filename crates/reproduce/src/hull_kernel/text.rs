//! The words of the page.

pub(super) const HEAD: &str = "
# HULL on this kernel\n
A student project (Stanford CS244, 2012) put HULL's phantom queue into Linux's RED and measured it in Mininet: 3 to 10
hosts on one switch of 50 Mb/s, all but one of which send to it for as long as the test lasts. Here the same is
measured between network namespaces, with this kernel's TCP and DCTCP around Plimsoll's own switch
([how](../emulate.md)), and simulated beside it from the same file, `scenarios/hull-kernel/star.toml`. Their project
left the pacer out and guessed what it would do; here it is an arm of its own.\n\n";

pub(super) const READING: &str = "\n*Kernel* is this machine, *simulated* the same scenario in the simulator, and the last column
the one over the other. The project published no tables, so its words are what the kernel's numbers are held to (*What
the students say in words*).\n
* **Rates are as in the project**: 50 Mb/s, which any machine keeps; nothing is scaled. HULL's constants are scaled to it: times of
  the pacer by 20, as the line is 20 times as slow as HULL's 1 Gb/s, and the phantom queue's threshold from one segment
  of 950 B (1 KB) to two frames of 1514 B, since one frame alone is over 1 KB. The project does not give its threshold.
* **The delay is ours**: 10 ms there and back. The project had none, and without one the smallest window decides
  (see *near*): Linux sends two segments a round trip however many are marked.
* **TCP** is CUBIC, the default of Linux then and now. K of DCTCP is 30 KB, the switch's buffer 200 packets.
* *throughput* is what the link to the receiver carried, headers included, after 1.5 s. *latency* is the round trip of a concurrent
  ping (64 B, 50 a second) from a sender to the receiver, by a program at each end. *sender_interface* is the wait at a
  sender's own interface to the switch. The project names `latency on the sender-to-switch interfaces` without saying
  how; what waits there is tens of microseconds in every arm, so what it plots must be the round trip seen from there.
* The project's two graphs are [all-latency.png](hull-kernel/all-latency.png) and
  [all-throughput.png](hull-kernel/all-throughput.png) (`--png`; here as SVG).
* A run for which the machine was too slow is repeated, and named *suspect* after three.\n";

pub(super) const CLOSING: &str = "\n## What the kernel does that the simulator does not\n
* **A ping takes 0.6 to 1 ms longer**, in every arm: two programs have to be woken up.
* **Arrivals are not on a lattice.** In the simulator packets that one bottleneck has spaced keep their places; programs
  and timers of a real host move them about. The kernel's queue before a phantom queue is a quarter to a third longer
  for it. Where the smallest window decides (*near*) it is a quarter *shorter* from six hosts on: packets and
  acknowledgements that wait at the hosts do not wait at the switch. At three hosts it is longer, 0.4 ms against 0.02,
  and the line carries 95 %: a sender that is not marked for once opens its window, and cuts it later; which
  packets of the kernel's are spared has not been looked into.
* **RFC 3168's cut is spread over a round trip** (proportional rate reduction), where the simulator falls silent until half the window
  is acknowledged. Packets sent meanwhile are marked and cut again: TCP with ECN and a phantom queue carries 5 % less
  on the kernel. DCTCP's cuts are small, and it does not show.
* **The window grows by all that is acknowledged**, delayed or not: `transport.growth = \"acked\"`. With RFC 5681's
  growth the simulator marks and drops half as often as the kernel.\n
## The guess about pacing\n
`Good pacing, as described in the original paper, would probably reduce the occupancy even further.` On the kernel it
does with two and three senders, by an eighth; with more it adds some percent, and in the simulator it adds a third.
Nothing here makes bursts that a pacer could take apart: acknowledgements through one bottleneck have spaced the
packets already, and what a pacer holds back loses its place between the others'. In the simulator this can be shown:
a pacer that associates no flow (`association_probability = 0`) changes no byte, at six hosts it makes 192 us of mean queue 251
(20 s, seed 1), and finer tokens (16 us) leave 245. HULL's own pacer is for hosts with segmentation offload at 10 Gb/s, where
64 KB leave back to back.\n";
