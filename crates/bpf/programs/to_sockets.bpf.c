/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Takes a server's datagrams out of what a device receives, before the kernel's stack sees them, to the AF_XDP socket
 * of the queue that they came on.
 *
 * Only what is plain is taken: Ethernet to the device's own address, without a tag; IPv4 without options, and IPv6
 * without extension headers; no fragment; UDP to one of the server's addresses and ports. Everything else is the
 * kernel's as ever, and it is the kernel's socket that answers what comes in fragments. A tag that the device has taken
 * off itself cannot be seen here. Checksums are left to the server, which knows those that the sender's device was to
 * fill in.
 */
#include "kernel.h"

#include <linux/in.h>
#include <linux/udp.h>

#define IPV4_WITHOUT_OPTIONS 0x45
/* More fragments, and the fragment's offset. */
#define FRAGMENT 0x3fff

_Static_assert(FRAME_PASS == XDP_PASS && FRAME_DROP == XDP_DROP, "shared.h repeats the kernel's numbers");

const volatile struct redirect_settings settings = {};

/* An address, IPv4 as it is mapped into IPv6, in the order of the network; and a port in that of the host. */
struct place {
	__u32 address[4];
	__u32 port;
};

/* Where the server listens. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct place);
	__type(value, __u32);
} places SEC(".maps");

/* The socket of each queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

static __always_inline __u64 number_of(const __u8 *hardware)
{
	__u64 number = 0;

	for (int i = 0; i < ETH_ALEN; i++)
		number = number << 8 | hardware[i];
	return number;
}

/* Where the frame's UDP header is, and its destination's address; NULL if it is not one of ours. */
static __always_inline struct udphdr *find_udp(void *data, void *end, struct place *place)
{
	struct ethhdr *ethernet = data;
	struct iphdr *ipv4 = (void *)(ethernet + 1);
	struct ipv6hdr *ipv6 = (void *)(ethernet + 1);

	if ((void *)(ethernet + 1) > end || number_of(ethernet->h_dest) != settings.hardware)
		return NULL;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP) && (void *)(ipv4 + 1) <= end) {
		if (*(__u8 *)ipv4 != IPV4_WITHOUT_OPTIONS || ipv4->protocol != IPPROTO_UDP ||
		    ipv4->frag_off & bpf_htons(FRAGMENT))
			return NULL;
		place->address[2] = bpf_htonl(0xffff);
		place->address[3] = ipv4->daddr;
		return (void *)(ipv4 + 1);
	}
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ipv6 + 1) <= end) {
		if (ipv6->nexthdr != IPPROTO_UDP)
			return NULL;
		__builtin_memcpy(place->address, &ipv6->daddr, sizeof(place->address));
		return (void *)(ipv6 + 1);
	}
	return NULL;
}

SEC("xdp")
int to_sockets(struct xdp_md *frame)
{
	void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
	struct place place = {};
	struct udphdr *udp = find_udp(data, end, &place);

	if (!udp || (void *)(udp + 1) > end)
		return XDP_PASS;
	place.port = bpf_ntohs(udp->dest);
	if (!bpf_map_lookup_elem(&places, &place))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, frame->rx_queue_index, settings.without_socket);
}
