/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by Rust and the programs: constants and layouts, and the arithmetic that must equal crates/mechanisms bit by
 * bit.
 *
 * build.rs translates the constants and every struct between the two "Rust" lines into Rust. In that part, a field is
 * a __u64 or an array of them, a constant is a number, and a comment line starts with three slashes.
 */
#ifndef PLIMSOLL_SHARED_H
#define PLIMSOLL_SHARED_H

/* -- Rust -- */

/// The number of the limiter's levels: 802.1Q has eight priorities.
#define QJUMP_LEVELS 8
/// The most guests of a limiter, each with a bucket for each level; the host itself is guest 0.
#define QJUMP_GUESTS 8
/// The bucket of a level without limit, which keeps no state and has no cost.
#define QJUMP_UNLIMITED 0xffffffffffffffff
/// A program lets the packet pass, to the next program if there is one: TC_ACT_UNSPEC, -1.
#define ACTION_PASS 0xffffffff
/// The packet is freed, and its sender gets an error (NET_XMIT_DROP): TC_ACT_SHOT.
#define ACTION_REFUSE 2
/// The packet is freed, and its sender sees success: TC_ACT_STOLEN.
#define ACTION_DROP 4

/// The constants of the limiter, fixed when it is loaded.
struct qjump_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// The network epoch, in ns.
	__u64 epoch_ns;
	/// The action for a packet beyond its level's share.
	__u64 excess_action;
	/// 1 to write the level into the DSCP as a class selector.
	__u64 write_dscp;
	/// 1 to write the level into the priority of an 802.1Q tag, which is added where there is none.
	__u64 write_pcp;
	/// The VLAN of a tag that is added: 0 for a tag of priority only.
	__u64 vlan;
	/// The bytes per epoch of each level.
	__u64 full[QJUMP_LEVELS];
	/// The source address of each guest's frames, its first byte in bits 40 to 47; 0 for none.
	__u64 guest_address[QJUMP_GUESTS];
	/// The level of each guest's packets; 8 for the class selector of their DSCP.
	__u64 guest_level[QJUMP_GUESTS];
};

/// The bucket of one level.
struct qjump_bucket {
	/// Bytes left in this epoch.
	__u64 bytes;
	/// The time from which a packet refills it, in ns.
	__u64 next_ns;
	/// The number of packets beyond the share so far.
	__u64 excess;
};

/// The counts of one level's packets on one processor.
struct qjump_counts {
	/// The packets that left.
	__u64 passed;
	/// The bytes of those packets, as the limiter counts them.
	__u64 bytes;
	/// The packets beyond the share.
	__u64 refused;
};

/// The most ports that the classifier of ports accepts.
#define CLASSIFIED_PORTS 16

/// The constants of the classifier of ports, fixed when it is loaded.
struct port_classifier_settings {
	/// The ports in host order; 0 stands for none.
	__u64 port[CLASSIFIED_PORTS];
	/// The level of each port.
	__u64 level[CLASSIFIED_PORTS];
};

/// The constants of the classifier of sockets, fixed when it is loaded.
struct qjump_classifier_settings {
	/// The level of new sockets.
	__u64 level;
};

/// The constants of datagram steering, fixed when it is loaded.
struct steering_settings {
	/// The initial value of a key's hash.
	__u64 seed;
	/// The factor by which the hash multiplies words.
	__u64 factor;
	/// The number of partitions, 1 or more.
	__u64 partitions;
	/// 1 where a binary request's partition is its vBucket field, 0 where its key determines it.
	__u64 by_vbucket;
};

/// A frame that an XDP program leaves to the kernel's stack: XDP_PASS.
#define FRAME_PASS 2
/// A frame that an XDP program drops: XDP_DROP.
#define FRAME_DROP 1

/// The constants of the redirection of datagrams, fixed when it is loaded.
struct redirect_settings {
	/// The device's own address, with its first byte in the highest position.
	__u64 hardware;
	/// The action for a datagram on a queue without a socket: FRAME_PASS; tests use FRAME_DROP, by which they see
	/// the redirected frames.
	__u64 without_socket;
	/// The number of threads to which each queue's datagrams are dispatched by their keys; 0 for one socket a queue.
	__u64 threads;
	/// The initial value of a key's hash.
	__u64 seed;
	/// The factor by which the hash multiplies words.
	__u64 factor;
	/// The number of partitions, 1 or more with dispatch.
	__u64 partitions;
	/// 1 where a binary request's partition is its vBucket field, 0 where its key determines it.
	__u64 by_vbucket;
};

/// The number that stands for no socket where a program returns the number of one.
#define NO_SOCKET 0xffffffff

/// A connection counts as one of those that share a level for at least this long after its last activity, and less than
/// twice as long, in ns.
#define SHARING_NS 500000000

/// The constants of the set-up of connections, fixed when it is loaded.
struct connection_settings {
	/// The value requested as SO_SNDBUF, which the kernel doubles for its own overhead; 0 leaves it.
	__u64 send_buffer;
	/// The bytes that the level may send in an epoch, with all headers, less than 2^32; 0 for no pace.
	__u64 bucket;
	/// The network epoch, in ns.
	__u64 epoch_ns;
	/// The minimum retransmission timeout to request, in us; 0 leaves it.
	__u64 rto_min_us;
};

/// The number of connections that share a level: those active in each of two periods.
struct connection_sharers {
	/// The number of the latest period.
	__u64 period;
	/// The connections active in the latest period.
	__u64 now;
	/// The connections active in the period before.
	__u64 before;
};

/// A connection that is paced.
struct connection_pace {
	/// The period in which it was last active.
	__u64 period;
	/// Its rate, in bytes of payload a second; 0 before it is set.
	__u64 rate;
};

/// The constants of a phantom queue, fixed when it is loaded.
struct phantom_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// The time that one byte takes at the drain rate, in 2^-16 ps; less than 2^40.
	__u64 byte_cost;
	/// The level above which a packet is marked, in 2^-16 ps.
	__u64 threshold;
};

/// The state of a phantom queue.
struct phantom_queue {
	/// The time until it is empty, as of the last packet, in 2^-16 ps.
	__u64 level;
	/// The latest time seen, in ns.
	__u64 last_ns;
	/// The packets over the threshold that were marked.
	__u64 marked;
	/// The packets over the threshold that cannot carry a mark.
	__u64 not_capable;
};

/// The number of powers of R's remaining share that are stored, for 2^i intervals each.
#define PACER_KEEP_POWERS 16
/// The most cgroups that a pacer accepts.
#define PACER_CGROUPS 8
/// The most flows that a pacer remembers; the least recently used are evicted.
#define PACER_FLOWS 65536

/// The constants of the pacer, fixed when it is loaded: EarliestDepartureConstants of pacer/earliest.rs.
struct pacer_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// The number of paced cgroups; 0 paces all programs.
	__u64 cgroups;
	/// The IDs of these cgroups.
	__u64 cgroup_id[PACER_CGROUPS];
	/// The depth of these cgroups below the root of the hierarchy.
	__u64 cgroup_depth[PACER_CGROUPS];
	/// The size of the token bucket, in bits.
	__u64 bucket_bits;
	/// The interval T_r, in ns.
	__u64 interval_ns;
	/// The minimum of R, in bit/s.
	__u64 floor;
	/// The share of R that remains after 2^i intervals, in 2^-23.
	__u64 keep[PACER_KEEP_POWERS];
	/// The weight eta / T_r, in 2^-16 /s.
	__u64 measured;
	/// The weight beta, in 2^-16 /s.
	__u64 push;
	/// The value at which M_r saturates, in bits.
	__u64 received_max;
	/// The value up to which Q counts, in bits.
	__u64 pushing_max;
	/// The number of pushes that R remembers.
	__u64 pushes_max;
	/// 0 where packets get a departure time; otherwise the 32-bit class of the device's HTB to which they go.
	__u64 class_id;
};

/// The state of a pacer.
struct pacer_state {
	/// The kernel's lock, which reads as 0.
	__u64 lock;
	/// The rate R, in bit/s.
	__u64 rate;
	/// The end of the interval, in ns; 0 before the first packet.
	__u64 tick_ns;
	/// M_r, the bits received in this interval.
	__u64 received;
	/// The time at which the bucket has paid for all packets so far, in ns.
	__u64 free_ns;
	/// The bits in the bucket, as of `free_ns`.
	__u64 tokens;
	/// Q, the bits that leave later than `backlog_ns`.
	__u64 backlog;
	/// The time at which `backlog` was measured, in ns.
	__u64 backlog_ns;
};

/// The counts of a pacer on one processor.
struct pacer_counts {
	/// The packets that got a departure time.
	__u64 paced;
	/// The packets of flows that are not associated.
	__u64 bypassed;
	/// The total waiting time of the paced packets, in ns.
	__u64 held_ns;
};

/// The state of a flow that was associated.
struct pacer_flow {
	/// The time at which the association ends, in ns.
	__u64 until_ns;
	/// The departure time of the flow's last packet, in ns.
	__u64 leaves_ns;
};

/// The constants of the pacer's association, fixed when it is loaded.
struct pacer_feedback_settings {
	/// 1 where time and draw come from the packet's control block (tests), 0 where they come from the kernel.
	__u64 inputs_from_cb;
	/// The number of associating draws out of 2^32.
	__u64 hits;
	/// The timeout T_i, in ns.
	__u64 timeout_ns;
};

/// The counts of congestion feedback on one processor.
struct pacer_feedback_counts {
	/// The acknowledgements with ECE.
	__u64 draws;
	/// The acknowledgements that associated their flow.
	__u64 associations;
};

/// The constants of the marker by queue length, fixed when it is loaded.
struct queue_length_settings {
	/// 1 where the backlog comes from the packet's control block (tests), 0 where it comes from the queue.
	__u64 inputs_from_cb;
	/// The smallest backlog at which a packet is marked.
	__u64 marks_from;
	/// 1 to count packets, 0 to count bytes.
	__u64 in_packets;
};

/// The counts of a marker by queue length.
struct queue_length_counts {
	/// The packets over the threshold that were marked.
	__u64 marked;
	/// The packets over the threshold that cannot carry a mark.
	__u64 not_capable;
	/// The longest backlog seen, in bytes or packets.
	__u64 longest;
};

/// The most receivers of a host's circuits.
#define CIRCUIT_RECEIVERS 1024

/// The constants of the gate of circuits, fixed when it is loaded.
struct circuit_gate_settings {
	/// 1 where the time comes from the packet's control block (tests), 0 where it comes from the clock.
	__u64 inputs_from_cb;
	/// The index of the device to the circuit switch.
	__u64 ifindex;
};

/// The lease of a circuit to one receiver.
struct circuit_lease {
	/// The end of the lease by CLOCK_MONOTONIC, in ns.
	__u64 until_ns;
	/// The link-layer address of the receiver's device, in the first six bytes.
	__u64 address;
};

/// The counts of a gate of circuits.
struct circuit_gate_counts {
	/// The packets that took a circuit, long segments counted as one.
	__u64 packets;
	/// The bytes of these packets.
	__u64 bytes;
	/// The packets that passed since the lease to their receiver had ended.
	__u64 late;
};

/// The constants of the estimator by send calls, fixed when it is loaded.
struct send_call_settings {
	/// The inode number of the network namespace whose sockets count.
	__u64 network;
};

/// The demand of one socket.
struct send_demand {
	/// The receiver's IPv4 address as the kernel stores it, in the first four bytes.
	__u64 receiver;
	/// The bytes that programs have given to send calls and that the receiver has not acknowledged.
	__u64 bytes;
};

/// The constants of DCTCP, fixed when it is loaded.
struct dctcp_settings {
	/// The initial alpha of a connection, in 2^-30.
	__u64 initial_alpha;
	/// The gain g, in 2^-32.
	__u64 gain;
};

/// The counts of DCTCP over all connections; concurrent connections may lose a count of `updates`.
struct dctcp_counts {
	/// The number of connections started.
	__u64 connections;
	/// The number of windows after which alpha was updated.
	__u64 updates;
	/// The alpha of the last update, in 2^-30.
	__u64 last_alpha;
	/// The number of windows cut because of marks.
	__u64 cuts;
	/// The number of windows cut because of loss.
	__u64 losses;
	/// The number of changes of the receiver's CE state.
	__u64 ce_changes;
	/// The number of windows that the guard restored; a run with any is suspect.
	__u64 guarded;
};

/// One input of DCTCP's arithmetic, and its results.
struct dctcp_vector {
	/// Alpha in 2^-30, at most 2^30.
	__u64 alpha;
	/// The gain g in 2^-32, at most 2^32.
	__u64 gain;
	/// The marked units, less than 2^34 and at most `acked`.
	__u64 marked;
	/// The acknowledged units, less than 2^34.
	__u64 acked;
	/// The congestion window, less than 2^32.
	__u64 window;
	/// The last window that the program recorded, less than 2^32.
	__u64 shadow;
	/// Result: alpha after the update.
	__u64 updated;
	/// Result: the window after a cut by `alpha`.
	__u64 reduced;
	/// Result: the window after the guard.
	__u64 guarded;
};

/// A TCP segment or UDP datagram with payload reaches the network stack from a device.
#define REQUEST_RECEIVED 1
/// The socket has the payload and notifies its readers (sk_data_ready).
#define REQUEST_READY 2
/// A thread has read payload from the socket.
#define REQUEST_READ 3
/// A thread hands payload to TCP (tcp_sendmsg_locked).
#define REQUEST_SEND 4
/// A packet with payload enters the queueing discipline of a device that has one.
#define REQUEST_QUEUED 5
/// A packet with payload is handed to the device's driver.
#define REQUEST_TRANSMITTED 6
/// A thread of the server gets a processor again.
#define REQUEST_RESUMED 7
/// The connection no longer exists.
#define REQUEST_CLOSED 8

/// A thread of the server continues after it slept at a futex: `flow` is its address, `bytes` the operation.
#define REQUEST_WAITED 9

/// The callers of a futex that are noted, at most.
#define REQUEST_STACK_FRAMES 16

/// The constants of the programs that trace requests.
struct request_settings {
	/// The inode number of the server's network namespace.
	__u64 network;
	/// One connection of so many is traced, at least 1.
	__u64 sample;
	/// 1 to trace TCP.
	__u64 tcp;
	/// 1 to trace UDP.
	__u64 udp;
	/// 1 where the begin of sending system calls is traced.
	__u64 system_calls;
};

/// One event of a request or of a server's thread.
struct request_record {
	/// The time of the event by CLOCK_MONOTONIC, in ns.
	__u64 time_ns;
	/// The kind of event (REQUEST_*). Above the lowest 8 bits, the index of the device; for REQUEST_WAITED, 1 more than
	/// the number of the thread's stack, 0 if unknown.
	__u64 kind;
	/// The thread on the processor (or that resumed): process in the upper 32 bits, thread in the lower.
	__u64 thread;
	/// The peer's IPv4 address (or folded IPv6 address), the peer's port and the local port: 32, 16 and 16 bits.
	__u64 flow;
	/// The bytes of payload (REQUEST_SEND: that the call still has); for REQUEST_RESUMED 1 where the thread was preempted, 0 where it slept.
	__u64 bytes;
	/// The TCP sequence number of the first byte; for REQUEST_READY and REQUEST_READ of UDP the socket's address; for
	/// REQUEST_RESUMED and REQUEST_WAITED the time when the thread stopped, 0 if unknown.
	__u64 first;
	/// When the sending system call began; for REQUEST_RESUMED the time of the wake-up. In ns, 0 if unknown.
	__u64 second;
};

/// The callers of a sample that are known at the most.
#define SAMPLE_STACK_FRAMES 64

/// A place in the code where samples found a processor.
struct sample_place {
	/// The process that the processor worked for.
	__u64 process;
	/// The address of the instruction; the kernel's are in the upper half.
	__u64 address;
	/// 1 more than the number of the stack of the process's code, 0 if there is none.
	__u64 user_stack;
	/// The same of the kernel's code; 0 for a sample of the process's.
	__u64 kernel_stack;
};

/// The counts of the program that samples.
struct sample_counts {
	/// The samples that found no room in the map.
	__u64 lost;
};

/// The counts of the programs that trace requests.
struct request_counts {
	/// The records that found no room in the ring buffer.
	__u64 lost;
};

/* -- Rust -- */

#define SATURATING_ADD(a, b) ((a) + (b) < (a) ? ~0ULL : (a) + (b))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))

/*
 * Processors share the state without a lock: each word changes by compare-and-swap, which costs a tenth of
 * bpf_spin_lock. Without concurrency the result is that of Rust. Each function states what two processors may see of
 * each other; none of them waits.
 */
#define SWAP_TRIES 8
#define SWAPPED(word, old, new) (__sync_val_compare_and_swap(&(word), old, new) == (old))
#define LATEST(word) (*(volatile __u64 *)&(word))

/* Takes the bytes from the bucket if it holds them; returns whether it did. */
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
 * Implements Limiter::on_packet of qjump.rs, in ns; returns whether the packet may leave. Only one processor refills;
 * until its store is visible, others still spend the rest of the last epoch. A packet that loses the race for the
 * bucket SWAP_TRIES times counts as excess.
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

/* Implements the part of Limiter::on_stamped_packet of qjump.rs that needs no clock; returns whether the packet may
 * leave. */
static __always_inline int qjump_on_stamp(struct qjump_bucket *bucket, __u64 stamp_ns, __u64 bytes)
{
	return stamp_ns && stamp_ns < LATEST(bucket->next_ns) && qjump_take(bucket, bytes);
}

/* Implements pace of qjump/sharing.rs: the rate of each connection that shares a level, in bytes of payload a second.
 * */
static __always_inline __u64 qjump_pace(__u64 bucket, __u64 epoch_ns, __u64 segment, __u64 header, __u64 sharers)
{
	__u64 frame = segment + header, rate;

	bucket -= MINIMUM(frame, bucket) / 2;
	rate = bucket * segment / (frame ? frame : 1) * 1000000000ULL / (epoch_ns ? epoch_ns : 1);
	rate /= sharers ? sharers : 1;
	return rate ? rate : 1;
}

/* Implements Sharers::heard_of of qjump/sharing.rs: records a connection last active in `own`, and returns how many
 * connections share. Processors that see a new period at once may count its connection in the period before. */
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
 * Implements PhantomQueue::on_transmit of phantom_queue.rs; returns whether the packet must be marked. The processor
 * that moves last_ns drains the queue for the time between, so that no time counts twice; a packet that loses the race
 * for the level SWAP_TRIES times is not counted.
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

/* Implements EarliestDepartureState::pushes of pacer/earliest.rs. */
static __always_inline __u64 pacer_pushes(const struct pacer_state *state, const volatile struct pacer_settings *set,
					  __u64 now_ns)
{
	__u64 intervals = SATURATING_SUB(state->free_ns, now_ns) / set->interval_ns;

	return MINIMUM(intervals + 1, set->pushes_max);
}

/* Implements next_rate of the same file. */
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

/* Implements decay of the same file. */
static __always_inline void pacer_decay(struct pacer_state *state, const volatile struct pacer_settings *set,
					__u64 intervals)
{
	/* Reading the rate anew keeps the verifier from following a known rate into all 2^16 paths of the loop. */
	__u64 rate = intervals >> PACER_KEEP_POWERS ? 0 : LATEST(state->rate);
	int power;

#pragma unroll
	for (power = 0; power < PACER_KEEP_POWERS; power++)
		if (intervals >> power & 1)
			rate = (rate * set->keep[power]) >> PACER_SHARE_BITS;
	state->rate = MAXIMUM(rate, set->floor);
}

/* Implements drain of the same file. */
static __always_inline void pacer_drain(struct pacer_state *state, __u64 now_ns)
{
	if (now_ns >= state->free_ns)
		state->backlog = 0;
	else if (now_ns > state->backlog_ns)
		state->backlog = state->backlog * (state->free_ns - now_ns) / (state->free_ns - state->backlog_ns);
	state->backlog_ns = MAXIMUM(state->backlog_ns, now_ns);
}

/* Implements refill of the same file. */
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

/* Implements end_intervals of the same file, once the interval has begun. */
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

/* Implements pay of the same file: returns when a packet leaves, in ns. */
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

/* Implements controller/dctcp.rs: alpha after a window with `marked` of `acked` units marked. */
static __always_inline __u64 dctcp_updated(__u64 alpha, __u64 marked, __u64 acked, __u64 gain)
{
	__u64 share = (marked << DCTCP_SHIFT) / (acked ? acked : 1);

	return alpha - ((alpha * gain) >> DCTCP_GAIN_SHIFT) + ((share * gain) >> DCTCP_GAIN_SHIFT);
}

/* Implements controller/dctcp.rs: the window after a cut because of marks. */
static __always_inline __u64 dctcp_reduced(__u64 window, __u64 alpha)
{
	return window - ((window * alpha) >> (DCTCP_SHIFT + 1));
}

#define CWND_MIN 2
/* The packets that simultaneous ACKs may add to twice the window. */
#define GUARD_MARGIN 1024

/* Returns `window`, or `shadow` after a cut where the window has grown by more than ACKs can explain. */
static __always_inline __u64 dctcp_guarded(__u64 window, __u64 shadow, __u64 alpha)
{
	__u64 reduced = dctcp_reduced(shadow, alpha);

	if (window <= 2 * shadow + GUARD_MARGIN)
		return window;
	return reduced > CWND_MIN ? reduced : CWND_MIN;
}

#endif
