/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Redirects a server's datagrams from a device's receive queue to an AF_XDP socket of that queue, before the kernel's
 * stack sees them.
 *
 * A queue has one socket; or, with Chronos's dispatch, one for each thread, and a datagram goes to the socket of the
 * thread that owns its partition (datagram_key.h). A request without a key goes to the thread with the queue's number.
 *
 * Only plain frames are redirected: Ethernet to the device's own address, without a tag; IPv4 without options, and
 * IPv6 without extension headers; no fragment; UDP to one of the server's addresses and ports. Everything else stays
 * with the kernel, whose socket answers fragmented datagrams. A tag that the device has stripped is not visible here.
 * The server verifies checksums, since it can recognize those that the sender's device was to fill in.
 */
#include "kernel.h"

#include <linux/in.h>
#include <linux/udp.h>

#define IPV4_WITHOUT_OPTIONS 0x45
/* The flag for more fragments, and the fragment's offset. */
#define FRAGMENT 0x3fff

_Static_assert(FRAME_PASS == XDP_PASS && FRAME_DROP == XDP_DROP, "shared.h repeats the kernel's numbers");

const volatile struct redirect_settings settings = {};

#define load_bytes(datagram, offset, to, length) bpf_xdp_load_bytes(datagram, offset, to, length)

#include "datagram_key.h"

/* An address in network order, with IPv4 mapped into IPv6, and a port in host order. */
struct endpoint {
	__u32 address[4];
	__u32 port;
};

/* The addresses and ports at which the server listens. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct endpoint);
	__type(value, __u32);
} endpoints SEC(".maps");

/* The thread that owns each partition. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} owners SEC(".maps");

/* The socket of each queue, or the sockets of the first queue's threads, of the second queue's, and so on. */
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

/* Returns the frame's UDP header, and its destination's address; NULL if the frame is not for the server. */
static __always_inline struct udphdr *find_udp(void *data, void *end, struct endpoint *endpoint)
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
		endpoint->address[2] = bpf_htonl(0xffff);
		endpoint->address[3] = ipv4->daddr;
		return (void *)(ipv4 + 1);
	}
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ipv6 + 1) <= end) {
		if (ipv6->nexthdr != IPPROTO_UDP)
			return NULL;
		__builtin_memcpy(endpoint->address, &ipv6->daddr, sizeof(endpoint->address));
		return (void *)(ipv6 + 1);
	}
	return NULL;
}

/* Returns the number of the socket for a datagram whose UDP payload begins at offset `at` of the frame. */
static __always_inline __u32 socket_of(struct xdp_md *frame, __u32 at)
{
	__u32 queue = frame->rx_queue_index, bytes = frame->data_end - frame->data;
	__u32 threads = settings.threads, thread, partition, *owner;

	if (!threads)
		return queue;
	thread = queue % threads;
	at = unknown(at, bytes);
	if (bytes > at && find_partition(frame, at, bytes - at, &partition)) {
		owner = bpf_map_lookup_elem(&owners, &partition);
		if (owner)
			thread = *owner;
	}
	return queue * threads + thread;
}

/* Sets the number of the socket for a frame; returns false if the frame is the kernel's. */
static __always_inline int find_socket(struct xdp_md *frame, __u32 *socket)
{
	void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
	struct endpoint endpoint = {};
	struct udphdr *udp = find_udp(data, end, &endpoint);

	if (!udp || (void *)(udp + 1) > end)
		return 0;
	endpoint.port = bpf_ntohs(udp->dest);
	if (!bpf_map_lookup_elem(&endpoints, &endpoint))
		return 0;
	*socket = socket_of(frame, (void *)(udp + 1) - data);
	return 1;
}

SEC("xdp")
int to_sockets(struct xdp_md *frame)
{
	__u32 socket;

	if (!find_socket(frame, &socket))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, socket, settings.without_socket);
}

/* Returns the number of the socket for a frame, for tests; NO_SOCKET if the frame is the kernel's. */
SEC("xdp")
int number_of_socket(struct xdp_md *frame)
{
	__u32 socket;

	return find_socket(frame, &socket) ? socket : NO_SOCKET;
}
