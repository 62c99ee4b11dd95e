/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * DCTCP (RFC 8257) as a congestion control of the kernel's TCP. Alpha counts packets, as Linux does, where the
 * Rust implementation counts bytes; the window grows as in Reno.
 *
 * The guard: on some kernels a struct_ops callback is occasionally skipped, and the stack then uses garbage as the
 * result of ssthresh(), to which cwnd grows. Where cwnd has grown by more than ACKs can explain, this program restores
 * the last window that it recorded, and counts the event.
 */
#include "kernel.h"

#include <bpf/bpf_tracing.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct sock {
} KERNEL_TYPE;

struct inet_connection_sock {
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
} KERNEL_TYPE;

struct tcp_sock {
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u8 ecn_flags;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 delivered;
	__u32 delivered_ce;
} KERNEL_TYPE;

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, __u32, __u32);
	void (*set_state)(struct sock *, __u8);
	void (*cwnd_event)(struct sock *, int);
	void (*in_ack_event)(struct sock *, __u32);
	__u32 (*undo_cwnd)(struct sock *);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *);
};

/* From include/net/tcp.h and include/net/inet_connection_sock.h. */
#define TCP_CONG_NON_RESTRICTED 0x1
#define TCP_CONG_NEEDS_ECN 0x2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_CA_RECOVERY 3
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define CA_EVENT_LOSS 3
#define CA_EVENT_ECN_NO_CE 4
#define CA_EVENT_ECN_IS_CE 5

extern void tcp_reno_cong_avoid(struct sock *, __u32 ack, __u32 acked) __ksym;

const volatile struct dctcp_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct dctcp_counts);
} state SEC(".maps");

/* The state of a connection, in icsk_ca_priv, which holds at most 104 bytes. */
struct connection {
	__u32 alpha;
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 rcv_nxt;
	__u32 ce_state;
	__u32 cwnd_before_loss;
	__u32 shadow_cwnd;
	__u32 shadow_ssthresh;
};

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return (struct connection *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void count(__u64 offset)
{
	__u32 only = 0;
	void *counts = bpf_map_lookup_elem(&state, &only);

	if (counts)
		__sync_fetch_and_add((__u64 *)(counts + offset), 1);
}
#define COUNT(field) count(__builtin_offsetof(struct dctcp_counts, field))

static __always_inline void start_window(struct tcp_sock *tcp, struct connection *connection)
{
	connection->window_end = tcp->snd_nxt;
	connection->delivered = tcp->delivered;
	connection->delivered_ce = tcp->delivered_ce;
}

static __always_inline void remember(struct tcp_sock *tcp, struct connection *connection)
{
	connection->shadow_cwnd = tcp->snd_cwnd;
	connection->shadow_ssthresh = tcp->snd_ssthresh;
}

static __always_inline __u32 reduced(__u32 cwnd, __u32 alpha)
{
	__u32 window = dctcp_reduced(cwnd, alpha);

	return window > CWND_MIN ? window : CWND_MIN;
}

static __always_inline void guard(struct tcp_sock *tcp, struct connection *connection)
{
	__u32 window = dctcp_guarded(tcp->snd_cwnd, connection->shadow_cwnd, connection->alpha);

	if (window != tcp->snd_cwnd) {
		tcp->snd_cwnd = window;
		tcp->snd_ssthresh = window;
		COUNT(guarded);
	} else if (tcp->snd_ssthresh > TCP_INFINITE_SSTHRESH) {
		tcp->snd_ssthresh = connection->shadow_ssthresh;
		COUNT(guarded);
	}
	remember(tcp, connection);
}

SEC("struct_ops")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct connection *connection = connection_of(sk);

	connection->alpha = settings.initial_alpha;
	connection->rcv_nxt = tcp->rcv_nxt;
	connection->ce_state = 0;
	connection->cwnd_before_loss = 0;
	remember(tcp, connection);
	start_window(tcp, connection);
	COUNT(connections);
}

SEC("struct_ops")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct connection *connection = connection_of(sk);

	connection->cwnd_before_loss = tcp->snd_cwnd;
	COUNT(cuts);
	return reduced(tcp->snd_cwnd, connection->alpha);
}

SEC("struct_ops")
void BPF_PROG(dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct connection *connection = connection_of(sk);
	__u32 only = 0, marked, acked;
	struct dctcp_counts *counts;

	guard(tcp, connection);
	/* RFC 8257, step 4. Linux continues where both are equal, and so counts empty windows at a receiver. */
	if ((__s32)(tcp->snd_una - connection->window_end) <= 0)
		return;
	marked = tcp->delivered_ce - connection->delivered_ce;
	acked = tcp->delivered - connection->delivered;
	/* An ACK may report more marks than it delivers. */
	marked = MINIMUM(marked, acked);
	connection->alpha = dctcp_updated(connection->alpha, marked, acked, settings.gain);
	start_window(tcp, connection);
	counts = bpf_map_lookup_elem(&state, &only);
	if (!counts)
		return;
	counts->updates++;
	counts->last_alpha = connection->alpha;
}

/* A loss is handled as in Reno (RFC 8257, section 3.5), after a call of ssthresh(). */
static __always_inline void on_loss(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);

	connection_of(sk)->cwnd_before_loss = tcp->snd_cwnd;
	tcp->snd_ssthresh = tcp->snd_cwnd / 2 > CWND_MIN ? tcp->snd_cwnd / 2 : CWND_MIN;
	COUNT(losses);
}

SEC("struct_ops")
void BPF_PROG(dctcp_set_state, struct sock *sk, __u8 to)
{
	if (to == TCP_CA_RECOVERY)
		on_loss(sk);
}

/* The receiver's state machine: it sends an ACK at once when CE changes (RFC 8257, section 3.2). */
static __always_inline void on_ce(struct sock *sk, __u32 ce)
{
	struct inet_connection_sock *socket = (struct inet_connection_sock *)sk;
	struct tcp_sock *tcp = tcp_of(sk);
	struct connection *connection = connection_of(sk);

	if (connection->ce_state != ce) {
		/* Earlier arrivals are acknowledged with the state in which they arrived. */
		if (socket->icsk_ack.pending & ICSK_ACK_TIMER) {
			if (connection->ce_state)
				tcp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tcp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			bpf_tcp_send_ack(tcp, connection->rcv_nxt);
		}
		socket->icsk_ack.pending |= ICSK_ACK_NOW;
		COUNT(ce_changes);
	}
	connection->rcv_nxt = tcp->rcv_nxt;
	connection->ce_state = ce;
	if (ce)
		tcp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tcp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

SEC("struct_ops")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, int event)
{
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		on_ce(sk, event == CA_EVENT_ECN_IS_CE);
	else if (event == CA_EVENT_LOSS)
		on_loss(sk);
}

SEC("struct_ops")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
	remember(tcp_of(sk), connection_of(sk));
}

SEC("struct_ops")
__u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk)
{
	__u32 before = connection_of(sk)->cwnd_before_loss, now = tcp_of(sk)->snd_cwnd;

	return now > before ? now : before;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.set_state = (void *)dctcp_set_state,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	.name = "plimsoll_dctcp",
};
