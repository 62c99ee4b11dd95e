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

/// What sizes send buffers is compiled with.
struct send_buffer_settings {
	/// What is asked for as SO_SNDBUF; the kernel doubles it, for its own overhead.
	__u64 bytes;
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

/*
 * qjump.rs, Limiter::on_packet, in ns; true if the packet may leave. Only one processor refills; until its store
 * is seen, others still spend what the last epoch left. A packet that loses the race for the bucket SWAP_TRIES
 * times counts as excess.
 */
static __always_inline int qjump_on_packet(struct qjump_bucket *bucket, __u64 now_ns, __u64 bytes,
					   __u64 epoch_ns, __u64 full)
{
	__u64 next = LATEST(bucket->next_ns), left;
	int try;

	if (now_ns >= next && SWAPPED(bucket->next_ns, next, SATURATING_ADD(now_ns, epoch_ns)))
		LATEST(bucket->bytes) = full;
	for (try = 0; try < SWAP_TRIES; try++) {
		left = LATEST(bucket->bytes);
		if (bytes > left)
			break;
		if (SWAPPED(bucket->bytes, left, left - bytes))
			return 1;
	}
	__sync_fetch_and_add(&bucket->excess, 1);
	return 0;
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
