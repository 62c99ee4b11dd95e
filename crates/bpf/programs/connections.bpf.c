/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sets up the TCP connections of a cgroup whose programs have a level, so that they send within it:
 *
 *   pace          the level's rate, divided by the connections that were active recently
 *   retransmits   soon, and repeatedly at the same interval, since the limiter drops what TCP cannot hold back
 *   send buffer   small, instead of the kernel's tuning: a program then waits for space, rather than fill megabytes
 *                 that would leave seconds later
 *
 * TCP paces itself, without fq. It does not pace a connection's first ten segments, nor what it sends after a
 * retransmission timeout.
 */
#include "kernel.h"

const volatile struct connection_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connection_sharers);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection_pace);
} paces SEC(".maps");

/* From asm-generic/socket.h, linux/socket.h and linux/tcp.h. */
#define SOL_SOCKET 1
#define SO_SNDBUF 7
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define TCP_THIN_LINEAR_TIMEOUTS 16
#define AF_INET6 10

/* The length of the Ethernet, IP and TCP headers, with timestamps. */
#define HEADERS_IPV4 66
#define HEADERS_IPV6 86
/* The kernel accepts two jiffies or more; a jiffy is 10 ms at 100 a second. */
#define RTO_MIN_EVERYWHERE_US 20000

static __always_inline void pace(struct bpf_sock_ops *socket)
{
	__u32 zero = 0, asked;
	__u64 share, rate, headers = socket->family == AF_INET6 ? HEADERS_IPV6 : HEADERS_IPV4;
	struct connection_sharers *sharers = bpf_map_lookup_elem(&state, &zero);
	struct connection_pace *own;

	if (!settings.bucket || !sharers || !socket->sk)
		return;
	own = bpf_sk_storage_get(&paces, socket->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!own)
		return;
	share = sharers_heard_of(sharers, &own->period, bpf_ktime_get_ns());
	rate = qjump_pace(settings.bucket, settings.epoch_ns, socket->mss_cache, headers, share);
	rate = MINIMUM(rate, 0xfffffffe);
	if (rate == own->rate)
		return;
	asked = rate;
	if (!bpf_setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &asked, sizeof(asked)))
		own->rate = rate;
}

static __always_inline void retransmit_soon(struct bpf_sock_ops *socket)
{
	int least = settings.rto_min_us, everywhere = RTO_MIN_EVERYWHERE_US, on = 1;

	if (!least)
		return;
	if (bpf_setsockopt(socket, SOL_TCP, TCP_BPF_RTO_MIN, &least, sizeof(least)))
		bpf_setsockopt(socket, SOL_TCP, TCP_BPF_RTO_MIN, &everywhere, sizeof(everywhere));
	bpf_setsockopt(socket, SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof(on));
}

SEC("sockops")
int connections(struct bpf_sock_ops *socket)
{
	int bytes = settings.send_buffer;

	switch (socket->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (bytes)
			bpf_setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (bytes)
			bpf_setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		/* Fall through. */
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		retransmit_soon(socket);
		if (settings.bucket)
			bpf_sock_ops_cb_flags_set(socket, BPF_SOCK_OPS_RTT_CB_FLAG);
		pace(socket);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		pace(socket);
		break;
	}
	return 1;
}
