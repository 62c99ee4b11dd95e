//! The words of the page.

pub(super) const HEAD: &str = "
# DeTail on this kernel\n
DeTail's authors ran it on 16 servers, with switches in Click. Here 16 network namespaces take the servers' role, with this
kernel's TCP, around Plimsoll's own fat-tree ([how](../emulate.md)): links push back, switches send every packet where
least waits, and TCP takes reordering for no loss. The same file, `scenarios/detail-kernel/pages.toml`, is simulated beside
it. The [simulated study](detail.md) has the talk's network of 128 servers.\n\n";

pub(super) const READING: &str = "\n*Kernel* is this machine, *simulated* the same scenario in the simulator, and the last \
column the one over the other. The talk has no numbers of the Click experiment, so the kernel is held to what it says of page creation
(*What the talk says*): *over 50 %* off the tail for every retrieval size, push-back alone *worse than the baseline*,
*91 %* off on a degraded link, for which 80 % counts.\n
* **Rates are scaled to the machine**: links of 50 Mb/s, a twentieth of the talk's 1 Gb/s, which two cores keep for 16 hosts.
  Times are 20 times as long: 200 us from host to switch (10 us), a smallest timeout of 200 ms for the baseline (10 ms) and 1 s
  where links push back (50 ms). Bytes are as they are: buffers of 128 KB, a pause from 16 KB on, marks from 64 KB on.
  A time here, divided by 20, is one at 1 Gb/s.
* **The network** is a fat-tree of 16 hosts, k = 4, not oversubscribed: four ways between pods, two within. Eight hosts make
  pages of ten serial retrievals from the others, of five sizes at once, at 0.3 of their links; all start 1 MB
  transfers to all, at 0.1. The talk leaves these loads open; they are those of the simulated study.
* **Push-back is a hold**: a host whose link is paused is not read, and its packets wait in its own device. Where
  pauses are by priority, it is held once all of its priorities are paused.
* **TCP** is Linux's Reno without selective acknowledgements: NewReno, as in the talk. With them this kernel (6.17 and later) finds
  losses by time (RACK), which no setting turns off; without them it counts duplicate acknowledgements, three
  (`tcp_reordering`), or more than any window has where reordering is tolerated. Then only timeouts repair.
  `without-tolerance` is DeTail with three.
* **99th percentiles**, where the talk has the 99.9th: an arm has some 2300 pages, 450 of a size. What 450 pages say
  of their 99th percentile rests on the four or five slowest of them; the 99.9th of all sizes together is printed, and rests on two.
* A run for which the machine was too slow is repeated, and named *suspect* after three.\n";

pub(super) const CLOSING: &str = "
## What this kernel's TCP makes of it\n
On quiet processors the kernel and the simulator tell the same story: of all pages the baseline's 99th percentile is a
little over half a second, DeTail's less than a fifth of a second, and push-back alone is worse than no push-back. What differs is
reordering: `balancing` alone, where packets are also lost, costs the kernel less than the model.\n
A hurried scheduler spoils it. In the same runs with the command's scheduling group before all others no run was late by its
own clock, but connections waited for timeouts of a second, and DeTail's tail was three times as long: presumably the
kernel's own threads, which carry packets into namespaces, came too late. Leave priorities as they are.\n";
