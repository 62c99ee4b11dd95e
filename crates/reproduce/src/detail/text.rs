//! The words of the page.

pub(super) const HEAD: &str = "
# DeTail, reproduced\n
DeTail takes the network's long tail away from pages that need many retrievals: links push back instead of dropping,
every packet goes where least waits, and TCP takes reordering for no loss. Here is the evaluation of the authors' talk:
the motivation, page creation by retrieval size, which part of the stack does what, a degraded core link and
long background flows; then what each choice that the talk leaves open changes.\n\n";

pub(super) const READING: &str = "\nThe talk publishes statements more than numbers: *over 50 %* less page creation \
time at the 99.9th percentile for every retrieval size, push-back without load balancing *worse than the baseline*, \
*91 %* less on a degraded core link, and 150 retrievals in *200 ms*. They are held in the table *What the talk says*: \
there `published` is the least that counts (80 % for the degraded link).\n
*Source* has what the talk says: a FatTree of 128 servers with an oversubscription of 4, 1 Gb/s, NewReno over hashed
paths, retrievals of 2 to 32 KB at a higher priority than 1 MB background flows. All else is chosen, marked `choice` in
`scenarios/detail/arms.toml`,
with the talk's statements known; each is varied below, also where the statements then do not hold. *Standard* is the transport of the RFCs (SACK,
handshakes, delayed acknowledgements, a first timeout of 1 s and a smallest one of 200 ms) and pauses with as much
buffer as two priorities leave each other; its runs are short.\n
| arm | priorities | a full port | push-back | paths | |
|---|---|---|---|---|---|
| `baseline` | yes | drops what arrives | | hashed | the talk's baseline: priorities alone |
| `evicting` | yes | drops the lowest priority | | hashed | the other reading of it |
| `none` | | drops what arrives | | hashed | |
| `push-back` | | | of links | hashed | push-back alone |
| `balancing` | | drops what arrives | | adaptive | load balancing alone |
| `without-balancing` | yes | | by priority | hashed | the stack without load balancing |
| `without-push-back` | yes | drops what arrives | | adaptive | the stack without push-back |
| `DeTail` | yes | | by priority | adaptive | the whole stack |\n
A front-end's page is ten retrievals, one after the other; pages of the five sizes begin equally often, and in figure
`pages` they run at once and are told apart. An arm has 19 200 pages there, and some 4000 to 6000 in a sensitivity.\n";

pub(super) const CLOSING: &str = "\n## Why push-back alone is worse\n
* **A pause stops whoever shares the link.** Where hashing puts two flows on one link, its queue fills, and the switch
  pauses every link that brings a part of it, also for packets that go elsewhere. With nobody to move traffic away,
  queues spread towards the edge. `push-back` has no packet lost and no timeout for a loss, and its *median* page takes about ten
  times as long as the baseline's: a retrieval waits behind background flows several hops from where they collide.
* **With priorities it needs retrievals that collide.** A pause of one priority protects retrievals from the background.
  Up to a load of 0.3 `without-balancing` then has about the median of the baseline that evicts, and a worse 99.9th
  percentile from a load of 0.2 on; at a load of 0.4, where hashed retrievals themselves overload links, it is three times worse (figure `load`). On the degraded
  link one path always is overloaded: the median page of `without-balancing` takes a second at a load of 0.3, where that
  of `baseline` takes 20 ms, for everybody pays for one link.
* **Smaller thresholds spread it sooner** (figure `pauses`): a port that drops takes a burst of 128 KB, a link that is
  paused from 8 KB on does not.
* **With retrievals at once it is worse than the plain baseline too** (figure `order`, ten in parallel at a load of 0.3): 86 ms for
  `without-balancing`, 78 ms for `baseline`, 38 ms for DeTail. There both statements of the talk hold for the stack
  without its balancing, not only for push-back alone.
* **With serial retrievals it is better than a baseline that drops them.** `without-balancing` then beats `baseline` at every
  load, because that baseline's tail is not queues but lost retrievals. So which push-back the talk
  removed balancing from, and what its baseline's full ports dropped, decide its statement. On the standard base, where a loss costs
  200 ms or a second, even `push-back` has the shorter 99.9th percentile, though not the shorter median.\n
## What the talk leaves open, by weight\n
* **What a full port drops** matters most. Background flows fill a port that all priorities share; a
  retrieval that finds it full is lost, whatever its priority, and waits for a timeout of 10 ms or its multiples.
  `evicting` loses none to the background, and is within a third of DeTail at the 99.9th percentile (`cut_percent_of_evicting`):
  most of what DeTail gains over `baseline`, a buffer with priorities gains too. Not so where hashing
  meets a slow link.
* **The load of retrievals.** DeTail's gain over `evicting` begins where hashed retrievals collide: over all sizes it is
  a few percent up to a load of 0.3, and 30 % at 0.4.
* **How many at once.** Forty parallel retrievals overflow the last link of their front-end, in every arm. No other path leads there, so
  balancing has nothing to choose from, and DeTail's pauses hold up others as push-back's do.
* **The baseline's smallest timeout** sets its tail directly (figure `timeout`).
* **ECN and the thresholds of balancing** move DeTail's tail little. Its pauses from 16 KB on cost the background flows
  more than balancing alone does.\n
## The degraded link\n
Hashing keeps a 32nd of the flows between pods on a tenth of their bandwidth. What it carries at a load of 0.3 is more
than it can, so the baseline's queue of unfinished pages grows as long as the run: that row says more of the length of a run
than of the network (`unfinished_percent`; pages that never end are not in its percentiles, which favours the baseline). At 0.05 it
ends. Balancing alone avoids the link only as its own queue says; behind it, losses and timeouts remain. With push-back the
queue in front of the link says how slow it is: 90 to 98 % of the 99.9th percentile go.\n
## The motivation\n
Of the measured round trips only the median, the 94th percentile and the largest are known. The 99.9th percentile of 150 in a
row is 252 ms if all times between two known ones are equally likely, 203 ms if all logarithms are, and 167 ms for the
log-normal distribution through the first two. The talk's 200 ms lies within.\n
## Long background flows\n
Balancing more than halves the mean of 1 MB flows, and takes a quarter and a sixth off those of 16 and 64 MB, which are bound by their hosts'
links. Retrievals are light here: evicting, pausing and DeTail give them the same tail, a sixth or less of
the baseline's.\n";
