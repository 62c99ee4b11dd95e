/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts the bytes that programs have given to TCP by send calls and that their receivers have not acknowledged:
 *
 *   send call ── 300 KB still in the call ──> socket ── 200 KB written, not acknowledged ──> receiver
 *                `sending`: storage of the socket        write_seq - snd_una
 *
 * `filling` runs each time before a call fills a packet, with the bytes that the call still has, and `returned` at the
 * end of a call. `demand` reads all sockets, each with its lock: its send calls have filled what they could, and wait.
 */
#include "kernel.h"

#include <bpf/bpf_tracing.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} KERNEL_TYPE;

struct net {
	struct ns_common ns;
} KERNEL_TYPE;

typedef struct {
	struct net *net;
} KERNEL_TYPE possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
} KERNEL_TYPE;

struct tcp_sock {
	__u32 write_seq;
	__u32 snd_una;
} KERNEL_TYPE;

struct iov_iter {
	size_t count;
} KERNEL_TYPE;

struct msghdr {
	struct iov_iter msg_iter;
} KERNEL_TYPE;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL_TYPE;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} KERNEL_TYPE;

const volatile struct send_call_settings settings = {};

/* The send calls of a socket that have not returned. */
struct sending {
	/* The bytes that the calls had at `sequence`. */
	__s64 bytes;
	/* The sequence number behind the last byte written, when a call began to fill its last packet. */
	__u64 sequence;
	__u64 calls;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sending);
} sockets SEC(".maps");

/* The send call of a thread. */
struct call {
	/* The address of the socket; 0 for none. */
	__u64 socket;
	/* The bytes of the call. */
	__s64 given;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} threads SEC(".maps");

/* States of connections that may have something to send, as include/net/tcp_states.h numbers them. */
enum { ESTABLISHED = 1, FIN_WAIT1 = 4, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
/* From linux/socket.h. */
enum { INET = 2, INET6 = 10 };

/* Runs with the socket's lock. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(filling, const struct sock *sk, const struct msghdr *message)
{
	struct sending *sending;
	struct call *call;
	__u32 written;

	if (sk->__sk_common.skc_net.net->ns.inum != settings.network ||
	    bpf_probe_read_kernel(&written, sizeof(written), &((const struct tcp_sock *)sk)->write_seq))
		return 0;
	call = bpf_task_storage_get(&threads, (struct task_struct *)bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
	sending = bpf_sk_storage_get(&sockets, (void *)sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call || !sending)
		return 0;
	if (sending->calls)
		__sync_fetch_and_sub(&sending->bytes, (__u32)(written - (__u32)sending->sequence));
	else
		sending->bytes = 0;
	sending->sequence = written;
	if (call->socket == (__u64)sk)
		return 0;
	call->socket = (__u64)sk;
	call->given = message->msg_iter.count;
	__sync_fetch_and_add(&sending->bytes, call->given);
	__sync_fetch_and_add(&sending->calls, 1);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(returned, struct sock *sk, int written)
{
	struct sending *sending;
	struct call *call;

	call = bpf_task_storage_get(&threads, (struct task_struct *)bpf_get_current_task_btf(), NULL, 0);
	if (!call || call->socket != (__u64)sk)
		return 0;
	call->socket = 0;
	sending = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	if (!sending)
		return 0;
	/* What the call did not write is no demand, as the program knows. */
	if (written < 0)
		written = 0;
	if (written < call->given)
		__sync_fetch_and_sub(&sending->bytes, call->given - written);
	__sync_fetch_and_sub(&sending->calls, 1);
	return 0;
}

/* Finds the receiver's IPv4 address, also of a socket of IPv6 that uses IPv4. */
static __always_inline int receiver_of(struct sock_common *common, __u64 *receiver)
{
	if (common->skc_family == INET) {
		*receiver = common->skc_daddr;
		return 1;
	}
	if (common->skc_family == INET6 && !common->skc_v6_daddr.in6_u.u6_addr32[0] &&
	    !common->skc_v6_daddr.in6_u.u6_addr32[1] &&
	    common->skc_v6_daddr.in6_u.u6_addr32[2] == bpf_htonl(0xffff)) {
		*receiver = common->skc_v6_daddr.in6_u.u6_addr32[3];
		return 1;
	}
	return 0;
}

SEC("iter/tcp")
int demand(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct send_demand record = {};
	struct sending *sending;
	struct tcp_sock *tcp;
	__s64 in_calls = 0;
	__u8 state;

	if (!common || !receiver_of(common, &record.receiver))
		return 0;
	state = common->skc_state;
	if (state != ESTABLISHED && state != FIN_WAIT1 && state != CLOSE_WAIT && state != LAST_ACK && state != CLOSING)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return 0;
	record.bytes = (__u32)(tcp->write_seq - tcp->snd_una);
	/* A FIN that was not acknowledged has a sequence number, and is no byte. */
	if (record.bytes && state != ESTABLISHED && state != CLOSE_WAIT)
		record.bytes--;
	sending = bpf_sk_storage_get(&sockets, tcp, NULL, 0);
	if (sending && sending->calls)
		in_calls = sending->bytes - (__u32)(tcp->write_seq - (__u32)sending->sequence);
	if (in_calls > 0)
		record.bytes += in_calls;
	if (record.bytes)
		bpf_seq_write(context->meta->seq, &record, sizeof(record));
	return 0;
}
