/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * QJump's limiter, at the egress of a host's device: a bucket per level, the level from skb->priority. A
 * priority of 8 or more is a traffic class of something else and counts as level 0, the lowest.
 *
 * With write_dscp the level leaves the host as a class selector (DSCP = 8 x level), since skb->priority does
 * not.
 */
#include "kernel.h"

const volatile struct qjump_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QJUMP_LEVELS);
	__type(key, __u32);
	__type(value, struct qjump_bucket);
} state SEC(".maps");

/* ECN keeps its two bits. Reads the header in place and writes through helpers, since a program that writes in
 * place makes the kernel copy the header of every packet of TCP. */
static __always_inline void write_dscp(struct __sk_buff *skb, __u32 level)
{
	__u16 *head = network_header(skb), before, after;

	if (!head)
		return;
	before = *head;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		after = (before & bpf_htons(0xff03)) | bpf_htons(level << 5);
		if (after == before)
			return;
		bpf_l3_csum_replace(skb, ETH_HLEN + __builtin_offsetof(struct iphdr, check), before, after,
				    sizeof(before));
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		after = (before & bpf_htons(0xf03f)) | bpf_htons(level << 9);
		if (after == before)
			return;
	} else {
		return;
	}
	bpf_skb_store_bytes(skb, ETH_HLEN, &after, sizeof(after), 0);
}

static __always_inline int may_leave(struct __sk_buff *skb, __u32 level, __u64 full)
{
	struct qjump_bucket *bucket = bpf_map_lookup_elem(&state, &level);
	__u64 now = now_ns(skb, settings.inputs_from_cb);

	return !bucket || qjump_on_packet(bucket, now, skb->wire_len, settings.epoch_ns, full);
}

SEC("tc")
int qjump(struct __sk_buff *skb)
{
	__u32 level = skb->priority < QJUMP_LEVELS ? skb->priority : 0;
	__u64 full = settings.full[level & (QJUMP_LEVELS - 1)];

	if (full != QJUMP_UNLIMITED && !may_leave(skb, level, full))
		return settings.excess_action;
	if (settings.write_dscp)
		write_dscp(skb, level);
	return TC_ACT_UNSPEC;
}
