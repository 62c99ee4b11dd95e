/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HULL's pacer at the egress of a host's device: packets of associated flows get a departure time (skb->tstamp), which
 * the device's queue must obey, as fq does. Without such a queue they are put into a class instead, whose queue a
 * process sets to this pacer's rate. pacer_feedback.bpf.c associates flows.
 *
 * Each device has one pacer, which several processors use at once: the debits of the bucket and of the backlog must
 * agree, so a packet that debits them, or ends an interval, takes the lock. A packet that bypasses takes none.
 */
#include "pacer.h"

const volatile struct pacer_settings settings = {};

/* The struct pacer_state, with its lock in the form that the kernel requires. */
struct locked_pacer {
	struct bpf_spin_lock lock;
	__u32 unused;
	__u64 words[sizeof(struct pacer_state) / sizeof(__u64) - 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct locked_pacer);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacer_counts);
} counts SEC(".maps");

/* Returns whether the packet's socket is in one of the cgroups; true if there are none. */
static __always_inline int is_chosen(struct __sk_buff *skb)
{
	__u64 index;

	if (!settings.cgroups)
		return 1;
	for (index = 0; index < PACER_CGROUPS && index < settings.cgroups; index++) {
		__u64 id = bpf_skb_ancestor_cgroup_id(skb, settings.cgroup_depth[index]);

		if (id && id == settings.cgroup_id[index])
			return 1;
	}
	return 0;
}

/* The first part of on_packet, which is the same for all flows. */
static __always_inline void receive(struct locked_pacer *locked, __u64 now, __u64 bits)
{
	struct pacer_state *pacer = (struct pacer_state *)locked;
	__u64 tick = LATEST(pacer->tick_ns);

	if (!tick || now >= tick) {
		bpf_spin_lock(&locked->lock);
		pacer_end_intervals(pacer, &settings, now);
		bpf_spin_unlock(&locked->lock);
	}
	/* The sum exceeds the limit only by what other processors add at this moment, which next_rate() tolerates. */
	if (LATEST(pacer->received) + bits < settings.received_max)
		__sync_fetch_and_add(&pacer->received, bits);
	else
		LATEST(pacer->received) = settings.received_max;
}

SEC("tc")
int pacer(struct __sk_buff *skb)
{
	__u64 bits = 8 * MINIMUM((__u64)skb->wire_len, PACER_BYTES_MAX), now, number, leaves;
	struct locked_pacer *locked;
	struct pacer_counts *count;
	struct pacer_flow *flow;
	struct tcp_head tcp;
	__u32 only = 0;

	if (!is_chosen(skb))
		return TC_ACT_UNSPEC;
	locked = bpf_map_lookup_elem(&state, &only);
	count = bpf_map_lookup_elem(&counts, &only);
	if (!locked || !count)
		return TC_ACT_UNSPEC;
	now = now_ns(skb, settings.inputs_from_cb);
	receive(locked, now, bits);
	number = flow_of(skb, 1, &tcp);
	flow = number ? bpf_map_lookup_elem(&flows, &number) : NULL;
	if (!flow || (now >= flow->until_ns && now >= flow->leaves_ns)) {
		count->bypassed++;
		return TC_ACT_UNSPEC;
	}
	bpf_spin_lock(&locked->lock);
	leaves = pacer_pay((struct pacer_state *)locked, &settings, now, bits);
	bpf_spin_unlock(&locked->lock);
	flow->leaves_ns = leaves;
	count->paced++;
	count->held_ns += SATURATING_SUB(leaves, now);
	if (settings.class_id)
		skb->priority = settings.class_id;
	/* TCP paces itself, possibly at a lower rate. */
	else if (leaves > skb->tstamp)
		skb->tstamp = leaves;
	return TC_ACT_UNSPEC;
}
