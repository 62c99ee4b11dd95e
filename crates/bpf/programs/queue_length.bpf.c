/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ECN threshold of a port, at the device's egress: marks a packet that arrives while the device's own queue is at
 * the threshold or above. It needs a root queue that counts in one place: a classful one or TBF does, whereas the
 * lockless pfifo_fast counts per processor and reads as empty.
 */
#include "kernel.h"

const volatile struct queue_length_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_length_counts);
} state SEC(".maps");

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct gnet_stats_queue {
	__u32 backlog;
} KERNEL_TYPE;

struct qdisc_skb_head {
	__u32 qlen;
} KERNEL_TYPE;

struct Qdisc {
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
} KERNEL_TYPE;

struct net_device {
	struct Qdisc *qdisc;
} KERNEL_TYPE;

struct sk_buff {
	struct net_device *dev;
} KERNEL_TYPE;

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

static __always_inline __u64 backlog(struct __sk_buff *skb)
{
	__u32 bytes = skb->cb[2], packets = skb->cb[3];
	struct Qdisc *queue;

	if (settings.inputs_from_cb)
		return settings.in_packets ? packets : bytes;
	queue = ((struct sk_buff *)bpf_cast_to_kern_ctx(skb))->dev->qdisc;
	return settings.in_packets ? queue->q.qlen : queue->qstats.backlog;
}

SEC("tc")
int queue_length(struct __sk_buff *skb)
{
	__u64 waiting = backlog(skb);
	__u32 only = 0;
	struct queue_length_counts *counts = bpf_map_lookup_elem(&state, &only);

	if (!counts)
		return TC_ACT_UNSPEC;
	if (waiting > counts->longest)
		counts->longest = waiting;
	if (waiting >= settings.marks_from)
		__sync_fetch_and_add(set_ce(skb) ? &counts->marked : &counts->not_capable, 1);
	return TC_ACT_UNSPEC;
}
