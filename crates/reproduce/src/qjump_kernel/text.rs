//! The words of the page.

pub(super) const HEAD: &str = "
# QJump on this kernel\n
QJump's testbed of twelve hosts between network namespaces: this kernel's TCP and DCTCP, QJump's limiter as an eBPF
program at every host's device, and Plimsoll's own switches between them ([how](../emulate.md)). Beside it is the
published value and the same scenario in the simulator; the files are in `scenarios/qjump-kernel`. The simulator's study
of the whole paper is [another page](qjump.md).\n\n";

pub(super) const READING: &str = "\n## How it is scaled\n
* **Rates are a hundredth, times a hundred times as long, bytes as they are.** Links have 100 Mb/s instead of 10 Gb/s, a
  host link's delay is 2.1 ms instead of 21 us, an epoch 4.1 ms instead of 41 us, a request takes its server 1.4 ms
  instead of 14 us. So a queue of as many bytes takes a hundred times as long, and a published time is multiplied by 100
  (in *fig3a* by 100, 200 and 500, as its links have 100, 50 and 20 Mb/s). Ratios stay.
* **What this kernel takes does not scale**: TCP's smallest timeout of 200 ms, which is 2 ms in the study's time
  where the study had 200; and the 0.6 ms that two programs take to wake up for a ping, 6 us in the study's time.
* **Shorter than the study's**: a run of 12 s is 0.12 s of the study's. So that it has several waves, transfers of the shuffle
  are of 1 MB in the mean and its pause 1 s, both a tenth; and clocks are compared every 20 ms, which is no more than samples them.
* **Alone** is beside a shuffle that shares no link, so that programs have the same share of the processors in
  every scheme. The job's own ideal is the shuffle without the others.\n
## How to read it\n
*Kernel* is this machine, *simulated* the same scenario in the simulator, and the last column the one over the other.
Held to a tolerance is what the network makes, as in the simulator's study: the ping through a shared queue (a factor of
1.35), and what is with QJump beside itself alone (1.2). Fig. 7 is held to its order.\n
* **Fig. 3a** was measured one way on the wires. Here it is a round trip between programs, back through an idle port;
  *added_us_p50* subtracts the time alone.
* **PTP's offset** is that of one exchange between clocks that are the same clock, read by programs: half of what one
  way took more than the other. A free-running clock of the study was off by what its filter made of many of them.
* **memcached, PTP and the shuffle** are the traffic of those programs, by Plimsoll's own over this kernel's sockets, which
  the simulator has as well: what is compared is the network. Debian's memcached itself is in
  [Programs](../emulate.md#programs), with the same outcome.
* **Hadoop's runtime** is one over the data shuffled; computing and disks are not in it. ECN in Fig. 7 has the best of
  ten settings where all of them were run (*fig7-wred*), else 40 to 80 packets, the published best.
* **Beside bulk of its own host** (Table 1, *shared source* and *shared both*) a ping waits in the host, whatever the network
  does: a TAP device takes packets out of TCP's sight, so that its small queues (TSQ) do not hold it back, and up to a window of
  2 MB waits in the device's FIFO, ahead of priorities. A real NIC, as the simulated one, has few packets of each connection.
* **Fig. 6**: bursts of UDP and the pauses between them are of 2.5 s, a hundred times the study's pause; how long its bursts
  were is not published. What is lost is sent again after 200 ms, 2 ms in the study's time.
* **Not here**: Figs. 9 to 11, which are no testbed's or ask for a time that scales with nothing.
* A run for which the machine was too slow is repeated, and named *suspect* after three: those of Table 1 and Fig. 6 in which
  hardly anything queues, so that frames are late beside what they waited. No number that is held is of such a run, so Fig. 6's
  shares are not, as they are of the one without bursts; that one has 56.4 to 56.5 commits a second, and 56.9 to 57.0 simulated.\n";

pub(super) const CLOSING: &str = "\n## What the kernel shows\n
* **A ping beside bulk flows** takes 137 ms across a switch of 100 Mb/s, and 1.0 ms with QJump; alone it takes 0.9.
  Kernel and simulator have the same queue within 3 to 6 %, and differ by the 0.6 ms of the programs.
* **Barriers** with QJump are those of an idle network at every percentile held (1.00 to 1.01 of it), and beside TCP
  they take 1.2 to 1.8 times as long, as published.
* **ECN and DCTCP** keep memcached as it is alone, on the kernel as in the simulator (within 3 % up to the 95th percentile).
* **QJump** keeps memcached as it is alone, too: 1.00 to 1.01 of it up to the 95th percentile, and 1.07 at the 99th, whose
  interval reaches 1.85. 128 connections with a packet each share a level of 100 packets an epoch. What its limiter refuses TCP
  would send again after 200 ms; the programs at a host's connections pace them, and let them ask again after 8 ms
  ([how](../internals/bpf.md#tcp-at-a-level-with-a-limit)). Without that the 99th percentile was 4.6 times that of an idle network.
* **TCP on the kernel queues less beside memcached** than in the simulator (99th percentile 93 ms against 179), whose
  transfers have 384 timeouts in a run. Which of the kernel's means against losses spares it has not been looked into.
* **A clock's noise is its host's.** Alone its offset is some 0.3 ms (RMS), 0.03 in the simulator: the agent reads the
  clock when it gets the packet. Beside 0.3 ms, what TCP does to it (13 ms) is 40 times as much, beside 0.03 it is 900 times. With
  QJump a few exchanges of hundreds waited for a processor, and the RMS is theirs.\n";

pub(super) const ORDERINGS: &str = "\n## Pairs in the other order\n
Where the measured intervals are apart and the order of Fig. 7 is not the published one. 802.3x is better than TCP for the clock here, as
in the simulator's study with 128 KB a link; with 1 MB it was the worst there.
Values around 1 are noise of the published ideal, and a job that does nothing but shuffle is not Hadoop.\n\n";
