/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What both sides know: the constants and layouts that Rust sets and reads, and the arithmetic that is held
 * to crates/mechanisms bit by bit.
 *
 * build.rs makes Rust of the constants and of every struct between the two "Rust" lines. There, a field is
 * a __u64 or an array of them, a constant is a number, and a comment line starts with three slashes.
 */
#ifndef PLIMSOLL_SHARED_H
#define PLIMSOLL_SHARED_H

/* -- Rust -- */

/// Levels of the limiter: 802.1Q has eight priorities.
#define QJUMP_LEVELS 8
/// The bucket of a level without limit, which keeps no state and costs nothing.
#define QJUMP_UNLIMITED 0xffffffffffffffff
/// A packet that a program lets pass, to the next program if there is one: TC_ACT_UNSPEC, -1.
#define ACTION_PASS 0xffffffff
/// The packet is freed and its sender is told (NET_XMIT_DROP): TC_ACT_SHOT.
#define ACTION_REFUSE 2
/// The packet is freed and its sender hears of success: TC_ACT_STOLEN.
#define ACTION_DROP 4

/// What the limiter is compiled with.
struct qjump_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// The network epoch, in ns.
	__u64 epoch_ns;
	/// What becomes of a packet beyond its level's share.
	__u64 excess_action;
	/// 1 to write the level into the DSCP as a class selector.
	__u64 write_dscp;
	/// 1 to write the level into the priority of an 802.1Q tag, which is added where there is none.
	__u64 write_pcp;
	/// The VLAN of a tag that is added: 0 for a tag of priority only.
	__u64 vlan;
	/// Bytes per epoch of each level.
	__u64 full[QJUMP_LEVELS];
};

/// One level's bucket.
struct qjump_bucket {
	/// Bytes left in this epoch.
	__u64 bytes;
	/// From when on a packet refills it, in ns.
	__u64 next_ns;
	/// Packets that went beyond the share so far.
	__u64 excess;
};

/// What became of one level's packets on one processor.
struct qjump_counts {
	/// Packets that left.
	__u64 passed;
	/// Their bytes, as the limiter counts them.
	__u64 bytes;
	/// Packets beyond the share.
	__u64 refused;
};

/// Ports that the classifier of ports knows at most.
#define CLASSIFIED_PORTS 16

/// What the classifier of ports is compiled with.
struct port_classifier_settings {
	/// Ports in host order; 0 for none.
	__u64 port[CLASSIFIED_PORTS];
	/// Level of each port.
	__u64 level[CLASSIFIED_PORTS];
};

/// What the classifier of sockets is compiled with.
struct qjump_classifier_settings {
	/// The level that new sockets get.
	__u64 level;
};

/// What steers datagrams is compiled with.
struct steering_settings {
	/// What the hash of a key starts with.
	__u64 seed;
	/// What words are multiplied by.
	__u64 factor;
	/// Partitions, 1 or more.
	__u64 partitions;
	/// 1 where a binary request's partition is its vBucket field, 0 where it is its key's.
	__u64 by_vbucket;
};

/// A frame that an XDP program leaves to the kernel's stack: XDP_PASS.
#define FRAME_PASS 2
/// A frame that goes nowhere: XDP_DROP.
#define FRAME_DROP 1

/// What takes datagrams from a device is compiled with.
struct redirect_settings {
	/// The device's own address, its six bytes from the highest on.
	__u64 hardware;
	/// What becomes of a datagram on a queue without a socket: FRAME_PASS; in tests, which tell what is taken by it,
	/// FRAME_DROP.
	__u64 without_socket;
};

/// A connection counts among those that share a level for so long after it was last heard of, and less than twice as
/// long, in ns.
#define SHARING_NS 500000000

/// What sets up a level's connections is compiled with.
struct connection_settings {
	/// What is asked for as SO_SNDBUF, which the kernel doubles, for its own overhead; 0 to leave it.
	__u64 send_buffer;
	/// What the level may send in an epoch, in bytes with all headers, less than 2^32; 0 for no pace.
	__u64 bucket;
	/// The network epoch, in ns.
	__u64 epoch_ns;
	/// The least retransmission timeout to ask for, in us; 0 to leave it.
	__u64 rto_min_us;
};

/// How many connections share a level: those heard of in each of two periods.
struct connection_sharers {
	/// The latest period.
	__u64 period;
	/// Connections heard of in it.
	__u64 now;
	/// Connections heard of in the one before.
	__u64 before;
};

/// A connection that has a pace.
struct connection_pace {
	/// The period in which it was last heard of.
	__u64 period;
	/// Its pace, in bytes of payload a second; 0 before it has one.
	__u64 rate;
};

/// What a phantom queue is compiled with.
struct phantom_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// Time that one byte takes at the drain rate, in 2^-16 ps; less than 2^40.
	__u64 byte_cost;
	/// Level above which a packet is marked, in 2^-16 ps.
	__u64 threshold;
};

/// A phantom queue.
struct phantom_queue {
	/// Time until it is empty as of the last packet, in 2^-16 ps.
	__u64 level;
	/// The latest time seen, in ns.
	__u64 last_ns;
	/// Packets over the threshold that took the mark.
	__u64 marked;
	/// Packets over the threshold that cannot carry a mark.
	__u64 not_capable;
};

/// R keeps this many powers of its share: of 2^i intervals.
#define PACER_KEEP_POWERS 16
/// Cgroups that a pacer knows at most.
#define PACER_CGROUPS 8
/// Flows that a pacer remembers at most; of more, those used least recently are forgotten.
#define PACER_FLOWS 65536

/// What the pacer is compiled with: pacer/earliest.rs, EarliestDepartureConstants.
struct pacer_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// How many cgroups are paced; 0 for everybody.
	__u64 cgroups;
	/// Their ids.
	__u64 cgroup_id[PACER_CGROUPS];
	/// How far below the root of the hierarchy they are.
	__u64 cgroup_depth[PACER_CGROUPS];
	/// The token bucket, in bits.
	__u64 bucket_bits;
	/// T_r, in ns.
	__u64 interval_ns;
	/// The least R, in bit/s.
	__u64 floor;
	/// What R keeps over 2^i intervals, in 2^-23.
	__u64 keep[PACER_KEEP_POWERS];
	/// eta / T_r, in 2^-16 /s.
	__u64 measured;
	/// beta, in 2^-16 /s.
	__u64 push;
	/// M_r saturates here, in bits.
	__u64 received_max;
	/// Q counts up to this, in bits.
	__u64 pushing_max;
	/// Pushes that R remembers.
	__u64 pushes_max;
	/// 0 where packets get a departure time; else the class of the device's HTB that gets them, in 32 bits.
	__u64 class_id;
};

/// A pacer.
struct pacer_state {
	/// The kernel's; reads as 0.
	__u64 lock;
	/// R, in bit/s.
	__u64 rate;
	/// When the interval ends, in ns; 0 before the first packet.
	__u64 tick_ns;
	/// M_r: bits in this interval.
	__u64 received;
	/// When all that has left or will leave is paid for, in ns.
	__u64 free_ns;
	/// Bits of the bucket, as of `free_ns`.
	__u64 tokens;
	/// Q: bits that leave later than `backlog_ns`.
	__u64 backlog;
	/// When `backlog` was taken, in ns.
	__u64 backlog_ns;
};

/// What a pacer did on one processor.
struct pacer_counts {
	/// Packets that got a departure time.
	__u64 paced;
	/// Packets of flows that are not associated.
	__u64 bypassed;
	/// How long the paced ones wait in all, in ns.
	__u64 held_ns;
};

/// A flow that was associated.
struct pacer_flow {
	/// Associated until then, in ns.
	__u64 until_ns;
	/// When its last packet leaves, in ns.
	__u64 leaves_ns;
};

/// What the pacer's association is compiled with.
struct pacer_feedback_settings {
	/// 1 where time and draw come from the packet's control block (tests), 0 where they come from the kernel.
	__u64 inputs_from_cb;
	/// Of 2^32 draws, so many hit.
	__u64 hits;
	/// T_i, in ns.
	__u64 timeout_ns;
};

/// What became of congestion feedback on one processor.
struct pacer_feedback_counts {
	/// Acknowledgements with ECE.
	__u64 draws;
	/// Those that associated their flow.
	__u64 associations;
};

/// What the marker by queue length is compiled with.
struct queue_length_settings {
	/// 1 where the backlog comes from the packet's control block (tests), 0 where it comes from the queue.
	__u64 inputs_from_cb;
	/// A backlog that marks: this or more.
	__u64 marks_from;
	/// 1 to count packets, 0 to count bytes.
	__u64 in_packets;
};

/// What a marker by queue length counts.
struct queue_length_counts {
	/// Packets over the threshold that took the mark.
	__u64 marked;
	/// Packets over the threshold that cannot carry a mark.
	__u64 not_capable;
	/// The longest backlog seen, in bytes or packets.
	__u64 longest;
};

/// What DCTCP is compiled with.
struct dctcp_settings {
	/// Alpha of a new connection, in 2^-30.
	__u64 initial_alpha;
	/// g, in 2^-32.
	__u64 gain;
};

/// What DCTCP counts over all connections; concurrent connections may lose a count of `updates`.
struct dctcp_counts {
	/// Connections started.
	__u64 connections;
	/// Windows after which alpha was updated.
	__u64 updates;
	/// The alpha of the last update, in 2^-30.
	__u64 last_alpha;
	/// Windows cut because of marks.
	__u64 cuts;
	/// Windows cut because of loss.
	__u64 losses;
	/// Changes of the receiver's CE state.
	__u64 ce_changes;
	/// Windows that the guard put back; a run with any is suspect.
	__u64 guarded;
};

/// One question to DCTCP's arithmetic, and its answers.
struct dctcp_vector {
	/// In 2^-30, at most 2^30.
	__u64 alpha;
	/// In 2^-32, at most 2^32.
	__u64 gain;
	/// Marked units, less than 2^34 and at most `acked`.
	__u64 marked;
	/// Acknowledged units, less than 2^34.
	__u64 acked;
	/// A window, less than 2^32.
	__u64 window;
	/// The last window that the program knew of, less than 2^32.
	__u64 shadow;
	/// Answer: alpha after the update.
	__u64 updated;
	/// Answer: the window after a cut by `alpha`.
	__u64 reduced;
	/// Answer: the window that the guard leaves.
	__u64 guarded;
};

/* -- Rust -- */

#define SATURATING_ADD(a, b) ((a) + (b) < (a) ? ~0ULL : (a) + (b))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))

/*
 * Processors share the state without a lock: each word changes by compare-and-swap, which costs a tenth of
 * bpf_spin_lock. In sequence the result is that of Rust. What two processors may see of each other is said at
 * each function; nobody waits.
 */
#define SWAP_TRIES 8
#define SWAPPED(word, old, new) (__sync_val_compare_and_swap(&(word), old, new) == (old))
#define LATEST(word) (*(volatile __u64 *)&(word))

/* Takes the bytes from the bucket if they are there; true if so. */
static __always_inline int qjump_take(struct qjump_bucket *bucket, __u64 bytes)
{
	__u64 left;
	int try;

	for (try = 0; try < SWAP_TRIES; try++) {
		left = LATEST(bucket->bytes);
		if (bytes > left)
			break;
		if (SWAPPED(bucket->bytes, left, left - bytes))
			return 1;
	}
	return 0;
}

/*
 * qjump.rs, Limiter::on_packet, in ns; true if the packet may leave. Only one processor refills; until its store
 * is seen, others still spend what the last epoch left. A packet that loses the race for the bucket SWAP_TRIES
 * times counts as excess.
 */
static __always_inline int qjump_on_packet(struct qjump_bucket *bucket, __u64 now_ns, __u64 bytes,
					   __u64 epoch_ns, __u64 full)
{
	__u64 next = LATEST(bucket->next_ns);

	if (now_ns >= next && SWAPPED(bucket->next_ns, next, SATURATING_ADD(now_ns, epoch_ns)))
		LATEST(bucket->bytes) = full;
	if (qjump_take(bucket, bytes))
		return 1;
	__sync_fetch_and_add(&bucket->excess, 1);
	return 0;
}

/* qjump.rs, Limiter::on_stamped_packet, as far as it needs no clock; true if the packet may leave by that. */
static __always_inline int qjump_on_stamp(struct qjump_bucket *bucket, __u64 stamp_ns, __u64 bytes)
{
	return stamp_ns && stamp_ns < LATEST(bucket->next_ns) && qjump_take(bucket, bytes);
}

/* qjump/sharing.rs, pace: of one of so many connections that share a level, in bytes of payload a second. */
static __always_inline __u64 qjump_pace(__u64 bucket, __u64 epoch_ns, __u64 segment, __u64 header, __u64 sharers)
{
	__u64 frame = segment + header, rate;

	bucket -= MINIMUM(frame, bucket) / 2;
	rate = bucket * segment / (frame ? frame : 1) * 1000000000ULL / (epoch_ns ? epoch_ns : 1);
	rate /= sharers ? sharers : 1;
	return rate ? rate : 1;
}

/* qjump/sharing.rs, Sharers::heard_of: a connection that was last heard of in `own`; how many share. Processors that see a
 * new period at once may count a connection of it as of the one before. */
static __always_inline __u64 sharers_heard_of(struct connection_sharers *sharers, __u64 *own, __u64 now_ns)
{
	__u64 latest = LATEST(sharers->period), period = now_ns / SHARING_NS + 1, now, before;

	period = period > latest ? period : latest;
	if (period > latest && SWAPPED(sharers->period, latest, period)) {
		LATEST(sharers->before) = period == latest + 1 ? LATEST(sharers->now) : 0;
		LATEST(sharers->now) = 0;
	}
	if (*own != period) {
		*own = period;
		__sync_fetch_and_add(&sharers->now, 1);
	}
	now = LATEST(sharers->now);
	before = LATEST(sharers->before);
	return now > before ? now : before;
}

#define PHANTOM_FRACTION_BITS 16
#define PHANTOM_BYTES_MAX ((1ULL << 24) - 1)
#define PHANTOM_ELAPSED_NS_MAX ((1ULL << 48) - 1)
#define PS_PER_NS 1000ULL

/*
 * phantom_queue.rs, PhantomQueue::on_transmit; true if the packet must be marked. Whoever moves last_ns drains the
 * queue for the time between, so no time counts twice; a packet that loses the race for the level SWAP_TRIES
 * times is not counted.
 */
static __always_inline int phantom_on_transmit(struct phantom_queue *queue, __u64 now_ns, __u64 bytes,
					       __u64 byte_cost, __u64 threshold)
{
	__u64 cost = MINIMUM(bytes, PHANTOM_BYTES_MAX) * byte_cost;
	__u64 last = LATEST(queue->last_ns), elapsed = 0, before, level;
	int try;

	if (now_ns > last && SWAPPED(queue->last_ns, last, now_ns))
		elapsed = MINIMUM(now_ns - last, PHANTOM_ELAPSED_NS_MAX) * PS_PER_NS;
	for (try = 0; try < SWAP_TRIES; try++) {
		before = LATEST(queue->level);
		level = elapsed > before >> PHANTOM_FRACTION_BITS ?
				0 :
				before - (elapsed << PHANTOM_FRACTION_BITS);
		level = SATURATING_ADD(level, cost);
		if (SWAPPED(queue->level, before, level))
			return level > threshold;
	}
	return 0;
}

#define PACER_SHARE_BITS 23
#define PACER_FACTOR_BITS 16
#define PACER_RATE_MAX 1000000000000ULL
#define PACER_BYTES_MAX ((1ULL << 24) - 1)
#define PACER_BACKLOG_MAX ((1ULL << 31) - 1)
#define PACER_HORIZON_NS ((1ULL << 32) - 1)
#define NS_PER_S 1000000000ULL

#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define SATURATING_SUB(a, b) ((a) > (b) ? (a) - (b) : 0)

/* pacer/earliest.rs, EarliestDepartureState::pushes. */
static __always_inline __u64 pacer_pushes(const struct pacer_state *state, const volatile struct pacer_settings *set,
					  __u64 now_ns)
{
	__u64 intervals = SATURATING_SUB(state->free_ns, now_ns) / set->interval_ns;

	return MINIMUM(intervals + 1, set->pushes_max);
}

/* next_rate. */
static __always_inline __u64 pacer_next_rate(const struct pacer_state *state, const volatile struct pacer_settings *set,
					     __u64 pushes)
{
	__u64 rate = (state->rate * set->keep[0]) >> PACER_SHARE_BITS, pushed;

	rate += (MINIMUM(state->received, set->received_max) * set->measured) >> PACER_FACTOR_BITS;
	pushed = (MINIMUM(state->backlog, set->pushing_max) * set->push) >> PACER_FACTOR_BITS;
	rate += MINIMUM(pushed, PACER_RATE_MAX) * pushes;
	rate = MINIMUM(rate, PACER_RATE_MAX);
	return MAXIMUM(rate, set->floor);
}

/* decay. */
static __always_inline void pacer_decay(struct pacer_state *state, const volatile struct pacer_settings *set,
					__u64 intervals)
{
	/* Read anew: the verifier follows a rate that it knows into each of the 2^16 ways through the loop. */
	__u64 rate = intervals >> PACER_KEEP_POWERS ? 0 : LATEST(state->rate);
	int power;

#pragma unroll
	for (power = 0; power < PACER_KEEP_POWERS; power++)
		if (intervals >> power & 1)
			rate = (rate * set->keep[power]) >> PACER_SHARE_BITS;
	state->rate = MAXIMUM(rate, set->floor);
}

/* drain. */
static __always_inline void pacer_drain(struct pacer_state *state, __u64 now_ns)
{
	if (now_ns >= state->free_ns)
		state->backlog = 0;
	else if (now_ns > state->backlog_ns)
		state->backlog = state->backlog * (state->free_ns - now_ns) / (state->free_ns - state->backlog_ns);
	state->backlog_ns = MAXIMUM(state->backlog_ns, now_ns);
}

/* refill. */
static __always_inline void pacer_refill(struct pacer_state *state, const volatile struct pacer_settings *set,
					 __u64 now_ns)
{
	__u64 idle, full, earned;

	if (now_ns <= state->free_ns)
		return;
	idle = now_ns - state->free_ns;
	full = (set->bucket_bits * NS_PER_S + state->rate - 1) / state->rate;
	earned = idle >= full ? set->bucket_bits : state->rate * idle / NS_PER_S;
	state->tokens = MINIMUM(state->tokens + earned, set->bucket_bits);
	state->free_ns = now_ns;
}

/* end_intervals, once the interval has begun. */
static __always_inline void pacer_end_intervals(struct pacer_state *state, const volatile struct pacer_settings *set,
						__u64 now_ns)
{
	__u64 idle;

	if (!state->tick_ns)
		state->tick_ns = SATURATING_ADD(now_ns, set->interval_ns);
	if (now_ns < state->tick_ns)
		return;
	idle = (now_ns - state->tick_ns) / set->interval_ns;
	pacer_drain(state, state->tick_ns);
	state->rate = pacer_next_rate(state, set, 1);
	state->received = 0;
	pacer_decay(state, set, idle);
	state->tick_ns += idle * set->interval_ns;
	state->tick_ns = SATURATING_ADD(state->tick_ns, set->interval_ns);
}

/* pay: when a packet leaves, in ns. */
static __always_inline __u64 pacer_pay(struct pacer_state *state, const volatile struct pacer_settings *set,
				       __u64 now_ns, __u64 bits)
{
	__u64 needed = MINIMUM(bits, set->bucket_bits), rate, leaves, free, horizon;

	pacer_drain(state, now_ns);
	pacer_refill(state, set, now_ns);
	rate = pacer_next_rate(state, set, pacer_pushes(state, set, now_ns));
	rate = MAXIMUM(rate, state->rate);
	leaves = (SATURATING_SUB(needed, state->tokens) * NS_PER_S + rate - 1) / rate;
	leaves = SATURATING_ADD(state->free_ns, leaves);
	free = (SATURATING_SUB(bits, state->tokens) * NS_PER_S + rate - 1) / rate;
	free = SATURATING_ADD(state->free_ns, free);
	horizon = SATURATING_ADD(now_ns, PACER_HORIZON_NS);
	free = MINIMUM(free, horizon);
	state->free_ns = MAXIMUM(free, state->free_ns);
	state->tokens = SATURATING_SUB(state->tokens, bits);
	leaves = MINIMUM(leaves, state->free_ns);
	if (leaves > now_ns)
		state->backlog = MINIMUM(state->backlog + bits, PACER_BACKLOG_MAX);
	return leaves;
}

#define DCTCP_SHIFT 30
#define DCTCP_GAIN_SHIFT 32

/* controller/dctcp.rs: alpha after a window with `marked` of `acked` units marked. */
static __always_inline __u64 dctcp_updated(__u64 alpha, __u64 marked, __u64 acked, __u64 gain)
{
	__u64 share = (marked << DCTCP_SHIFT) / (acked ? acked : 1);

	return alpha - ((alpha * gain) >> DCTCP_GAIN_SHIFT) + ((share * gain) >> DCTCP_GAIN_SHIFT);
}

/* controller/dctcp.rs: the window after a cut because of marks. */
static __always_inline __u64 dctcp_reduced(__u64 window, __u64 alpha)
{
	return window - ((window * alpha) >> (DCTCP_SHIFT + 1));
}

#define CWND_MIN 2
/* Packets that ACKs of one moment may add to twice the window. */
#define GUARD_MARGIN 1024

/* `window`, or where it has jumped beyond what ACKs can do since `shadow`, that one after a cut. */
static __always_inline __u64 dctcp_guarded(__u64 window, __u64 shadow, __u64 alpha)
{
	__u64 reduced = dctcp_reduced(shadow, alpha);

	if (window <= 2 * shadow + GUARD_MARGIN)
		return window;
	return reduced > CWND_MIN ? reduced : CWND_MIN;
}

#endif
