/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HULL's phantom queue, one program a port. It must see packets as they are sent: behind the port's shaper, at the
 * ingress of the link's other end.
 */
#include "kernel.h"

const volatile struct phantom_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct phantom_queue);
} state SEC(".maps");

SEC("tc")
int phantom_queue(struct __sk_buff *skb)
{
	__u32 only = 0;
	struct phantom_queue *queue = bpf_map_lookup_elem(&state, &only);
	__u64 now = now_ns(skb, settings.inputs_from_cb);

	if (!queue)
		return TC_ACT_UNSPEC;
	if (phantom_on_transmit(queue, now, skb->wire_len, settings.byte_cost, settings.threshold))
		__sync_fetch_and_add(set_ce(skb) ? &queue->marked : &queue->not_capable, 1);
	return TC_ACT_UNSPEC;
}
