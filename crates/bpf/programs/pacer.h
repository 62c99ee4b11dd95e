/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Shared by the pacer's two programs: the associated flows, and the number of a packet's flow. */
#ifndef PLIMSOLL_PACER_H
#define PLIMSOLL_PACER_H

#include "transport.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PACER_FLOWS);
	__type(key, __u64);
	__type(value, struct pacer_flow);
} flows SEC(".maps");

/* Mixes addresses and ports, as the pacer's host sees them, into a 64-bit number; pacer.rs repeats it. Two flows with
 * one number would be paced together. */
static __always_inline __u64 mixed(__u64 number, __u64 word)
{
	number = (number ^ word) * 0x9e3779b97f4a7c15ULL;
	return number ^ number >> 32;
}

/* The fields of the TCP header that the pacer reads. */
struct tcp_head {
	struct ports ports;
	__u32 sequence;
	__u32 acknowledgement;
	__u8 offset;
	__u8 flags;
};

/* Returns the flow of a TCP packet, and its header; 0 for any other packet. */
static __always_inline __u64 flow_of(struct __sk_buff *skb, int leaves, struct tcp_head *tcp)
{
	__u64 number = 0, *source, *destination;
	void *data, *end;
	__u8 protocol;
	__u32 at = transport_at(skb, &protocol);

	if (protocol != PROTOCOL_TCP || bpf_skb_load_bytes(skb, at, tcp, sizeof(*tcp)))
		return 0;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ipv4 = data + ETH_HLEN;

		if ((void *)(ipv4 + 1) > end)
			return 0;
		number = leaves ? (__u64)ipv4->saddr << 32 | ipv4->daddr : (__u64)ipv4->daddr << 32 | ipv4->saddr;
		number = mixed(0, number);
	} else {
		struct ipv6hdr *ipv6 = data + ETH_HLEN;
		__u64 local[2], remote[2];

		if ((void *)(ipv6 + 1) > end)
			return 0;
		source = (__u64 *)&ipv6->saddr;
		destination = (__u64 *)&ipv6->daddr;
		local[0] = leaves ? source[0] : destination[0];
		local[1] = leaves ? source[1] : destination[1];
		remote[0] = leaves ? destination[0] : source[0];
		remote[1] = leaves ? destination[1] : source[1];
		number = mixed(mixed(mixed(mixed(0, local[0]), local[1]), remote[0]), remote[1]);
	}
	return mixed(number, leaves ? (__u64)tcp->ports.source << 16 | tcp->ports.destination :
				      (__u64)tcp->ports.destination << 16 | tcp->ports.source);
}

#endif
