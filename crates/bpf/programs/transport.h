/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Finds the header behind IP. Later fragments have none, and IPv6 extension headers are not followed. */
#ifndef PLIMSOLL_TRANSPORT_H
#define PLIMSOLL_TRANSPORT_H

#include "kernel.h"

#define FRAGMENT_OFFSET 0x1fff
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

struct ports {
	__u16 source;
	__u16 destination;
};

/* Returns its offset in the packet, and its protocol; 0 if there is none. */
static __always_inline __u32 transport_at(struct __sk_buff *skb, __u8 *protocol)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ipv4 = data + ETH_HLEN;
	struct ipv6hdr *ipv6 = data + ETH_HLEN;

	*protocol = 0;
	if (skb->protocol == bpf_htons(ETH_P_IP) && (void *)(ipv4 + 1) <= end) {
		if (ipv4->frag_off & bpf_htons(FRAGMENT_OFFSET))
			return 0;
		*protocol = ipv4->protocol;
		return ETH_HLEN + ipv4->ihl * 4;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6) && (void *)(ipv6 + 1) <= end) {
		*protocol = ipv6->nexthdr;
		return ETH_HLEN + sizeof(*ipv6);
	}
	return 0;
}

#endif
