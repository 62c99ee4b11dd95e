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

pub(super) const CLOSING: &str = "\n## What two processors and a loopback cannot show\n
* **User-level networking.** Most of the published gains are the kernel's part of a request (Table 5.1: 86 to 95 %), which
  Chronos leaves out. Here both servers have the kernel's TCP, so the times of memcached and Chronos differ by what is left:
  *server_us_per_request*, and who is how long in line.
* **Threads that poll.** With a generator on the second processor there is none to spare for a thread that spins. Threads
  sleep, so a message between them costs the wake-up that *given* measures, by a byte through a socket between the two processors and back:
  several times what memcached takes for the request itself. On a machine where a server has two processors of its own, it
  would be `-o chronos_poll=spin` and some hundred nanoseconds.
* **Lock contention.** Two threads seldom meet at a lock that is held for a small part of a request; the published collapse is of four
  threads that do little else. memcached 1.6 has a lock for each item and none for the cache; the one lock of the dissertation's memcached is
  `global lock` here. Gets of an item that was fetched before, or that is not there, share the `reader/writer lock`; whatever changes
  something takes it alone.
* **Steering.** With TCP a request comes to the thread of its connection, and every second one belongs to the other. In
  the dissertation the network card takes it to its owner. The kernel does as much for datagrams (`-o chronos_steering=on`).
* **Generator and server on the same processors** (`2T`): the generator is late where the server is at work, and takes from it what it uses.
  Its own lag is part of these latencies; compare schemes, not times.
* **S servers on one processor** (*fig4.2*): the fan-out's answers are made one after the other, so its latency grows with the sum of
  the work, not with the largest of S draws. The simulated column has the draws: a processor for each.
* **Bursts of 10 ms** come once a second at this ratio, and a turn would need ten seconds. Bursts here are of 1 ms.\n
## What the model has, and what it leaves out\n
It is told a time of service, a spread of deliveries and a wake-up, and has queues, the closed loop, the fan-out and the
chains come out of them. It leaves out three things that this machine has. *The cost of a request falls with load*
(*server_us_per_request*): a server that finds several requests when it looks pays once for the system call and the wake-up; the
model has the cost of saturation, and the deliveries of low load, at every load. *The generator is a queue as well*: it takes as
long for a request as the server does, and a closed loop with few clients waits for both. *Processors are
shared*: the model's two threads have one each.\n";
