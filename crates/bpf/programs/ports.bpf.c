/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Levels by port, ahead of the limiter at a device's egress: what goes from or to one of the ports by TCP or UDP has
 * that port's level, whatever its socket says. Later fragments, which carry no ports, keep what they have, and so do
 * packets with IPv6 extension headers.
 */
#include "kernel.h"

const volatile struct port_classifier_settings settings = {};

#define FRAGMENT_OFFSET 0x1fff
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

struct ports {
	__u16 source;
	__u16 destination;
};

/* Where the ports are in the packet; 0 for nowhere. */
static __always_inline __u32 ports_at(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ipv4 = data + ETH_HLEN;
	struct ipv6hdr *ipv6 = data + ETH_HLEN;
	__u8 protocol;
	__u32 at;

	if (skb->protocol == bpf_htons(ETH_P_IP) && (void *)(ipv4 + 1) <= end) {
		if (ipv4->frag_off & bpf_htons(FRAGMENT_OFFSET))
			return 0;
		protocol = ipv4->protocol;
		at = ETH_HLEN + ipv4->ihl * 4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6) && (void *)(ipv6 + 1) <= end) {
		protocol = ipv6->nexthdr;
		at = ETH_HLEN + sizeof(*ipv6);
	} else {
		return 0;
	}
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP ? at : 0;
}

SEC("tc")
int classify_ports(struct __sk_buff *skb)
{
	__u32 at = ports_at(skb);
	struct ports ports;
	int index;

	if (!at || bpf_skb_load_bytes(skb, at, &ports, sizeof(ports)))
		return TC_ACT_UNSPEC;
	for (index = 0; index < CLASSIFIED_PORTS; index++) {
		__u16 port = settings.port[index];

		if (!port)
			break;
		if (port == bpf_ntohs(ports.source) || port == bpf_ntohs(ports.destination)) {
			skb->priority = settings.level[index];
			break;
		}
	}
	return TC_ACT_UNSPEC;
}
