//! The words of the page.

pub(super) const HEAD: &str = "
# Chronos, simulated\n
memcached's tail is made in the server: in the kernel, in line for a lock, in a queue behind one thread. Chronos takes
requests past the kernel and steers each to the thread that owns its partition. Here are the figures of
Kapoor's dissertation (chapters 4 to 6; SoCC 2012) by a queueing model of the server (`crates/sim/src/server`): threads,
queues, locks, partitions and the load balancer, which is the code of this project's runtime. What a
request costs is given, once for all figures; what it waits for comes out.\n\n";

pub(super) const READING: &str = "\n## What is given and what comes out\n
| given | | from |
|---|---|---|
| network, DMA, line | 4.7 us and 0.9 us a get of 1 KB | Table 5.1, 10 Gb/s |
| application | 2 us, 99th percentile 3 us | Table 5.1 |
| kernel at low load | 76 us in the mean, standard deviation 50 us, log-normal | Table 5.1, section 4.1 |
| of these, on the thread | 20.2 us | 4 threads, 120 000 requests/s, a third of the time in line for the lock |
| waking the next in line for a mutex | 7 us | the same |
| user-level networking | 2.5 us | section 6.1.1: 1 to 4 us |
| RCU's grace period | 9 us | 550 000 requests/s |
| memslap's own kernel | 60 us | section 6.2: 50 to 70 us |\n
The kernel's 76 us are mostly time in which no thread is busy (interrupt, wake-up): 76 us on four threads would allow 51 000
requests/s. How much is the thread's follows from the published maximum and the third that is spent in line for the lock.
Both stand in the figure `lock`, which holds that the two parameters do what they were taken for; that more
than half of all requests find the lock taken (62 %) was not put in, nor was anything of chapter 6.\n
Queueing, lock contention, tails, the numbers of requests that can be served, and who is better come out. What the
dissertation leaves open is varied in `assumed-mc` and `assumed-ch`. *Source* is the paper's design, a mutex for
every partition; *standard* has the hand-over of this project's runtime, where requests for a moved partition
wait until its old owner has served those before them, and nobody takes a lock. `MC` is memcached, `UNet locks`
memcached over user-level networking, `CH` Chronos. The text gives numbers, the figures no tables: a number that the text
calls *about* so much is held within a factor of 1.35, its bounds and orders in the table *What the text says*.\n
The model of a server is held to M/D/1, M/M/1, M/M/c and a closed queue of threads before one lock within 1 % in its
own tests. Two errata of the dissertation: 254.25 us is the 99.95th percentile of N(90 us, 50 us), not the 99th, which is 206.3 us
(the expected maximum of 100 draws is 215 us); and Eq. 4.2 holds with mu as the rate of service, not the time.\n";

pub(super) const CLOSING: &str = "\n## What steering buys, and where it does not\n
* **A lock that the kernel resolves serves at the speed of its wake-ups.** Behind one mutex that sleeps, user-level networking
  alone makes memcached no faster than the kernel's sockets do: 2 us of work and 7 us of waking allow 111 000 requests/s,
  on 4 threads and on 64 (`cores`). Its latency is short while nobody meets at the lock, and endless beyond.
* **Read/write locks and RCU end where their writers do**: with one write in ten, at about 0.5 million
  requests/s, on any number of threads.
* **Where keys are asked alike, partitions are enough.** A static mapping is then the best of all designs, for nothing
  moves: Algorithm 1 sees 50 requests in 50 us, takes their noise for load, and moves some 8 partitions each
  epoch, which costs a few microseconds at the 99th percentile (`assumed-ch`: *a mapping that stays*, *1024
  partitions*). A threshold below which nothing moves would save them.
* **Where keys are hot, the hand-over decides** (`fig6.7`). Three keys with 99 % of a million requests/s, others each
  millisecond: at the 99th percentile a static mapping has 1.6 ms; Chronos's, looking each 100 us, 1.9 ms with a mutex
  for each partition, and 0.1 ms where a moved partition waits for its old owner instead. The mutex lets two threads meet whose
  queues both have requests for the hot partition, and stops one of them for each.
* **The shorter the epoch, the better**, down to 10 us, where only ten requests tell the balancer what is hot.
* **One partition is one thread**: 500 000 requests/s, and no mapping helps (`limit`). Skew by Zipf's law comes to the same with
  many threads (`cores-zipf`): of 64, one has the most popular key and others wait for it. A static mapping serves 5.3
  million requests/s, steering 5.8 million with the hand-over that waits, and 1.5 million with mutexes, for each move of a
  hot partition leaves its queue behind.
* **Beyond its maximum memcached has the latency of its socket's buffer**: 2.2 ms with 256 requests in it, two hundred
  times Chronos's at 200 000 requests/s (*20x* is published), and it loses 39 % of them.
* **Bursts are not skew.** No balancing helps against more requests than all threads can serve (`fig6.6`).
* **Memory of the other node** does nothing while threads idle and everything when they do not: 1.5 times the service time is
  1.16 times the latency at half a million requests/s and 1.7 times at 1.15 million. Steering across nodes takes partitions away
  from their memory (*first owner*), which is a fifth to two fifths of the difference.\n
## What the model is not\n
Threads keep their cores; nothing else runs there; the NIC and the clients have no queue but the line. The
background traffic of section 6.3 is therefore not on this page. Latency ends at the client's NIC, and memslap's own kernel
is a time between an answer and the next request.\n";

pub(super) const ORDERINGS: &str = "\n## Pairs in the other order\n
Where the measured intervals are apart and the order is not the published one.\n\n";
