/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Levels by port, ahead of the limiter at a device's egress: a TCP or UDP packet from or to one of the ports gets that
 * port's level, regardless of its socket's priority. Later fragments, which carry no ports, keep their level, and so do
 * packets with IPv6 extension headers.
 */
#include "transport.h"

const volatile struct port_classifier_settings settings = {};

SEC("tc")
int classify_ports(struct __sk_buff *skb)
{
	__u8 protocol;
	__u32 at = transport_at(skb, &protocol);
	struct ports ports;
	int index;

	if (!at || (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP) || bpf_skb_load_bytes(skb, at, &ports, sizeof(ports)))
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
