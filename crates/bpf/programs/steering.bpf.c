/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Chronos's steering of datagrams: each datagram goes to the socket of the thread that owns its partition
 * (datagram_key.h), before the kernel queues it.
 *
 * A datagram that the program cannot parse goes to the socket of the kernel's own hash, whose thread hands the request
 * to the owner.
 */
#include "kernel.h"

#define load_bytes(datagram, offset, to, length) bpf_skb_load_bytes(datagram, offset, to, length)

const volatile struct steering_settings settings = {};

#include "datagram_key.h"

/* The bytes of the UDP header, at which the program's view of the datagram begins. */
#define UDP_BYTES 8

/* The thread that owns each partition. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} owners SEC(".maps");

/* The socket of each thread. */
struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sockets SEC(".maps");

SEC("sk_reuseport")
int steer(struct sk_reuseport_md *datagram)
{
	__u32 partition, *owner;

	if (datagram->len <= UDP_BYTES ||
	    !find_partition(datagram, UDP_BYTES, datagram->len - UDP_BYTES, &partition))
		return SK_PASS;
	owner = bpf_map_lookup_elem(&owners, &partition);
	if (owner)
		/* A thread without a socket leaves the choice to the kernel. */
		bpf_sk_select_reuseport(datagram, &sockets, owner, 0);
	return SK_PASS;
}
