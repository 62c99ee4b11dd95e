//! The words of the page.

pub(super) const HEAD: &str = "
# Chronos on this machine\n
Here memcached and chronos-memcached, ovs-testcontroller and chronos-openflow are the servers themselves, under this project's
load generator ([chronos-load](../chronos/load.md)), and beside them stands the model of a server that
[Chronos, simulated](chronos.md) is made with, told nothing of this machine but what the figure *given* says. The points are those of
chapters 4 to 6 of Kapoor's dissertation as far as two processors and a loopback carry them.\n\n";

pub(super) const READING: &str = "\n## How it is measured\n
* **In turn.** The servers of a point run at once, and all but the one whose turn it is sleep. A round gives each a turn of 0.4 s
  (1.2 s with bursts, 1 s at controllers, which are started afresh) after 0.1 s that do not count, and the next round goes the other
  way. There are 7 rounds; *kernel* is the median of them, and `..._of_first` the median of the rounds' ratios to the first
  scheme of the figure with as many threads: memcached's, but where the row says otherwise. The interval is that of the sign test. A quick look
  has 3 rounds of 0.15 s (0.3 s, 0.2 s) and no interval.
* **Every value is checked** by the generator; one that is wrong, a refused request, a lost connection or a missing key ends the run.
  *values_verified* says how many of a turn were right.
* **One thread** (`MC`, `CH`): the server on one processor, the generator on the other, where it spins. **Two threads** (`2T`):
  server and generator share both, and the generator sleeps when there is nothing to do.
* **Requests**: 20 000 keys of 64 bytes, values of 1 KB, nine gets to a set, TCP. Latency is from when a request should have been sent.
* **Load** is in per cent of what the figure's first server carries with 32 requests outstanding, measured anew for every point,
  as what is machine and what is server changes from machine to machine.
* **suspect** is a scheme of which more than half of the turns are not to be believed, by the generator's own account: it was late, waited
  for a processor, or what was asked for did not come back. Beyond 100 % of load, and where server and generator share
  processors, that is what is to be seen.
* **Simulated** has the same share of its own maximum, or as many clients. Its threads have a processor each.\n";

pub(super) const CLOSING: &str = "";
