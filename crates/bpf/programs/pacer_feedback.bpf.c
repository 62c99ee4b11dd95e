/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The association of HULL's pacer, at the ingress of the device: each acknowledgement with ECE associates its flow with
 * a given probability. It shares the map of flows with pacer.bpf.c.
 */
#include "pacer.h"

const volatile struct pacer_feedback_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacer_feedback_counts);
} counts SEC(".maps");

#define TCP_SYN 0x02
#define TCP_ACK 0x10
#define TCP_ECE 0x40

static __always_inline __u64 draw(struct __sk_buff *skb)
{
	return settings.inputs_from_cb ? skb->cb[2] : bpf_get_prandom_u32();
}

/* Implements EarliestDeparture::on_ece of pacer/earliest.rs. */
static __always_inline void associate(__u64 number, __u64 until)
{
	struct pacer_flow *flow = bpf_map_lookup_elem(&flows, &number), new = { .until_ns = until };

	if (flow)
		flow->until_ns = until;
	else
		bpf_map_update_elem(&flows, &number, &new, BPF_NOEXIST);
}

SEC("tc")
int pacer_feedback(struct __sk_buff *skb)
{
	struct pacer_feedback_counts *count;
	struct tcp_head tcp;
	__u64 number = flow_of(skb, 0, &tcp);
	__u32 only = 0;

	/* With SYN, ECE negotiates ECN. */
	if (!number || (tcp.flags & (TCP_SYN | TCP_ACK | TCP_ECE)) != (TCP_ACK | TCP_ECE))
		return TC_ACT_UNSPEC;
	count = bpf_map_lookup_elem(&counts, &only);
	if (!count)
		return TC_ACT_UNSPEC;
	count->draws++;
	if (draw(skb) < settings.hits) {
		count->associations++;
		associate(number, SATURATING_ADD(now_ns(skb, settings.inputs_from_cb), settings.timeout_ns));
	}
	return TC_ACT_UNSPEC;
}
