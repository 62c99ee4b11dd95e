/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * QJump's limiter, at the egress of a host's device: a bucket per level; the level is skb->priority. A priority of 8
 * or more is a foreign traffic class and counts as level 0, the lowest.
 *
 * The guests that share the device, such as virtual machines behind a bridge, have buckets of their own: a guest is
 * known by the source address of its frames. skb->priority does not leave a guest, so its level is that of the
 * settings or, without one, the class selector that the guest has written.
 *
 * With write_dscp the level leaves the host as a class selector (DSCP = 8 x level), with write_pcp as the priority of
 * an 802.1Q tag, since skb->priority stays inside the host. Counts are per processor, so none is lost or delayed.
 */
#include "kernel.h"

const volatile struct qjump_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, (1 + QJUMP_GUESTS) * QJUMP_LEVELS);
	__type(key, __u32);
	__type(value, struct qjump_bucket);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, (1 + QJUMP_GUESTS) * QJUMP_LEVELS);
	__type(key, __u32);
	__type(value, struct qjump_counts);
} counts SEC(".maps");

/* Returns the number of the guest that has sent the packet, from 1; 0 for the host itself. */
static __always_inline __u32 guest_of(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u8 *source = data + ETH_ALEN;
	__u64 address = 0;
	int i;

	if (!settings.guest_address[0] || data + ETH_HLEN > end)
		return 0;
	for (i = 0; i < ETH_ALEN; i++)
		address = address << 8 | source[i];
	for (i = 0; i < QJUMP_GUESTS; i++)
		if (address == settings.guest_address[i])
			return i + 1;
	return 0;
}

static __always_inline __u32 level_of(struct __sk_buff *skb, __u32 guest)
{
	__u32 level = skb->priority;
	int written;

	if (guest) {
		level = settings.guest_level[(guest - 1) & (QJUMP_GUESTS - 1)];
		if (level >= QJUMP_LEVELS) {
			written = class_selector(skb);
			level = written < 0 ? 0 : written;
		}
	}
	return level < QJUMP_LEVELS ? level : 0;
}

/* Writes the DSCP; the two ECN bits stay. Reads the header in place and writes through helpers, since a program that
 * writes in place makes the kernel copy the header of every TCP packet. */
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

#define VLAN_PRIORITY_SHIFT 13

/* Sets the priority of the 802.1Q tag; an existing tag keeps its other fields. */
static __always_inline void write_pcp(struct __sk_buff *skb, __u32 level)
{
	__u16 tag = settings.vlan, protocol = bpf_htons(ETH_P_8021Q);

	if (skb->vlan_present) {
		tag = skb->vlan_tci & ((1 << VLAN_PRIORITY_SHIFT) - 1);
		protocol = skb->vlan_proto;
		if (bpf_skb_vlan_pop(skb))
			return;
	}
	bpf_skb_vlan_push(skb, protocol, tag | level << VLAN_PRIORITY_SHIFT);
}

/* TCP has stamped its packets with the time, or with the earlier time of their burst. A packet whose stamp is in the
 * epoch does not read the clock, which costs more than everything else together. */
static __always_inline int may_leave(struct __sk_buff *skb, __u32 place, __u64 full)
{
	struct qjump_bucket *bucket = bpf_map_lookup_elem(&state, &place);

	if (!bucket || qjump_on_stamp(bucket, skb->tstamp, skb->wire_len))
		return 1;
	return qjump_on_packet(bucket, now_ns(skb, settings.inputs_from_cb), skb->wire_len, settings.epoch_ns, full);
}

/* Returns whether no event will make TCP retry a refused segment before a timer of 200 ms (nothing in flight) or 500 ms
 * (a retransmission). If the segment is dropped instead, the retransmission timer retries, which can be shorter. */
static __always_inline int waits_for_nothing(struct __sk_buff *skb)
{
	struct bpf_sock *socket = skb->sk;
	struct bpf_tcp_sock *tcp;

	if (!socket)
		return 0;
	socket = bpf_sk_fullsock(socket);
	if (!socket)
		return 0;
	tcp = bpf_tcp_sock(socket);
	return tcp && tcp->packets_out + tcp->retrans_out <= tcp->lost_out + tcp->sacked_out;
}

SEC("tc")
int qjump(struct __sk_buff *skb)
{
	__u32 guest = guest_of(skb), level = level_of(skb, guest), place = guest * QJUMP_LEVELS + level;
	__u64 full = settings.full[level & (QJUMP_LEVELS - 1)];
	struct qjump_counts *count = bpf_map_lookup_elem(&counts, &place);

	if (!count)
		return TC_ACT_UNSPEC;
	if (full != QJUMP_UNLIMITED && !may_leave(skb, place, full)) {
		count->refused++;
		if (settings.excess_action == ACTION_REFUSE && waits_for_nothing(skb))
			return ACTION_DROP;
		return settings.excess_action;
	}
	count->passed++;
	count->bytes += skb->wire_len;
	if (settings.write_dscp)
		write_dscp(skb, level);
	if (settings.write_pcp)
		write_pcp(skb, level);
	return TC_ACT_UNSPEC;
}
