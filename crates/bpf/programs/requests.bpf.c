/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Traces the requests of a server: packets of its ports, its sockets, and the scheduling of its threads, one record an
 * event. Nothing is decided here: plimsoll-breakdown joins the records. What does not concern the server is rejected by
 * its port, its network namespace or its process before anything else is done.
 */
#include "kernel.h"

#include <stdbool.h>

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
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} KERNEL_TYPE;

struct Qdisc {
	int (*enqueue)(void);
} KERNEL_TYPE;

struct netdev_queue {
	struct Qdisc *qdisc;
} KERNEL_TYPE;

struct net_device {
	int ifindex;
	struct netdev_queue *_tx;
	possible_net_t nd_net;
} KERNEL_TYPE;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	unsigned char *head;
	unsigned char *data;
} KERNEL_TYPE;

struct iov_iter {
	size_t count;
} KERNEL_TYPE;

struct msghdr {
	struct iov_iter msg_iter;
} KERNEL_TYPE;

/* The registers of a thread's system call, of which a futex has its address and its operation. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long orig_ax;
	unsigned long di;
	unsigned long si;
} KERNEL_TYPE;
#define IS_FUTEX(registers) ((registers)->orig_ax == 202)
#define FIRST_ARGUMENT(registers) ((registers)->di)
#define SECOND_ARGUMENT(registers) ((registers)->si)
#else
struct user_pt_regs {
	__u64 regs[31];
};
struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
	__s32 syscallno;
} KERNEL_TYPE;
#define IS_FUTEX(registers) ((registers)->syscallno == 98)
#define FIRST_ARGUMENT(registers) ((registers)->orig_x0)
#define SECOND_ARGUMENT(registers) ((registers)->user_regs.regs[1])
#endif

struct task_struct {
	int pid;
	int tgid;
} KERNEL_TYPE;

const volatile struct request_settings settings = {};

/* The server's ports: 1 where traced. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} ports SEC(".maps");

/* The server's processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

/* When a thread of the server stopped and was woken, and when its present system call began to send. */
struct thread_state {
	__u64 stopped_ns;
	__u64 woken_ns;
	__u64 preempted;
	__u64 send_ns;
	/* The address and the operation of the futex that it sleeps at, and 1 more than its stack's number. */
	__u64 futex;
	__u64 operation;
	__u64 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

/* The callers of futexes, by the number of their stack. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, REQUEST_STACK_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

/* The flow of the last packet that a processor received: a datagram's socket is notified right after it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} last_flow SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct request_counts);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} records SEC(".maps");

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define AF_INET6 10
#define TCP_LISTEN 10
#define MSG_PEEK 2
#define IP_FRAGMENT_OFFSET 0x1fff
/* The ports, the sequence number and the data offset of TCP are within so many bytes. */
#define TRANSPORT_BYTES 14
#define GOLDEN 0x9e3779b97f4a7c15ULL

static __always_inline bool is_traced_port(__u16 port)
{
	__u32 key = port;
	__u8 *traced = bpf_map_lookup_elem(&ports, &key);

	return traced && *traced;
}

static __always_inline bool is_server(__u32 process)
{
	return bpf_map_lookup_elem(&processes, &process) != NULL;
}

static __always_inline bool is_sampled(__u64 flow)
{
	return settings.sample <= 1 || ((flow * GOLDEN) >> 32) % settings.sample == 0;
}

/* Returns 32 bits for an IPv6 address: those of IPv4 for a mapped one. */
static __always_inline __u32 folded(const __u32 *words)
{
	if (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff))
		return words[3];
	/* Class E (RFC 1112, section 4) is no host's IPv4 address, so the two kinds cannot be confused. */
	return ((words[0] ^ words[1] ^ words[2] ^ words[3]) & bpf_htonl(0x0fffffff)) | bpf_htonl(0xf0000000);
}

static __always_inline __u64 flow_number(__u32 peer, __be16 peer_port, __u16 port)
{
	return (__u64)peer << 32 | (__u64)bpf_ntohs(peer_port) << 16 | port;
}

static __always_inline __u64 flow_of_socket(const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;
	__u32 peer = common->skc_daddr;

	if (common->skc_family == AF_INET6) {
		__u32 words[4];

		bpf_probe_read_kernel(words, sizeof(words), &common->skc_v6_daddr);
		peer = folded(words);
	}
	return flow_number(peer, common->skc_dport, common->skc_num);
}

static __always_inline bool is_traced_socket(const struct sock *sk)
{
	return is_traced_port(sk->__sk_common.skc_num) && sk->__sk_common.skc_net.net->ns.inum == settings.network;
}

static __always_inline void emit(__u64 now, __u64 kind, __u64 thread, __u64 flow, __u64 bytes, __u64 first,
				 __u64 second)
{
	struct request_record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		__u32 only = 0;
		struct request_counts *count = bpf_map_lookup_elem(&counts, &only);

		if (count)
			__sync_fetch_and_add(&count->lost, 1);
		return;
	}
	record->time_ns = now;
	record->kind = kind;
	record->thread = thread;
	record->flow = flow;
	record->bytes = bytes;
	record->first = first;
	record->second = second;
	/* The reader comes round by itself: an interrupt for each record would cost more than all else. */
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* What the headers of a packet say. */
struct packet {
	__u32 source;
	__u32 destination;
	__be16 source_port;
	__be16 destination_port;
	__u32 sequence;
	__u32 payload;
	__u8 protocol;
};

/* The headers that are read at once: IPv6 and the begin of TCP, or IPv4 with its options and less. */
#define HEADER_BYTES 56

/* Reads the headers from the network header `at` on, of which `length` bytes of packet follow. */
static __always_inline bool read_headers(const unsigned char *at, __u32 length, __be16 kind, struct packet *packet)
{
	__u8 bytes[HEADER_BYTES] = {};
	const __u8 *transport;
	__u32 head;

	/* What is behind the headers need not be there in a short packet; it is not looked at. */
	if (bpf_probe_read_kernel(bytes, sizeof(bytes), at))
		return false;
	if (kind == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = (const struct iphdr *)bytes;

		if (ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET))
			return false;
		packet->protocol = ip->protocol;
		packet->source = ip->saddr;
		packet->destination = ip->daddr;
		head = ip->ihl * 4;
		/* Padding of short frames is no payload. A length of 0 is that of a segment above 64 KiB. */
		if (ip->tot_len)
			length = bpf_ntohs(ip->tot_len);
	} else if (kind == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = (const struct ipv6hdr *)bytes;

		packet->protocol = ip->nexthdr;
		packet->source = folded(ip->saddr.in6_u.u6_addr32);
		packet->destination = folded(ip->daddr.in6_u.u6_addr32);
		head = sizeof(*ip);
		if (ip->payload_len)
			length = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	} else {
		return false;
	}
	if (packet->protocol == IPPROTO_TCP ? !settings.tcp : packet->protocol != IPPROTO_UDP || !settings.udp)
		return false;
	if (head > sizeof(bytes) - TRANSPORT_BYTES) {
		if (bpf_probe_read_kernel(bytes, TRANSPORT_BYTES, at + head))
			return false;
		transport = bytes;
	} else {
		transport = bytes + head;
	}
	packet->source_port = *(const __be16 *)transport;
	packet->destination_port = *(const __be16 *)(transport + 2);
	if (packet->protocol == IPPROTO_TCP) {
		packet->sequence = bpf_ntohl(*(const __be32 *)(transport + 4));
		head += (transport[12] >> 4) * 4;
	} else {
		packet->sequence = 0;
		head += 8;
	}
	packet->payload = length > head ? length - head : 0;
	return packet->payload != 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(received, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	struct packet packet = {};
	__u32 only = 0;
	__u64 flow, *last;

	/* The network header is where the data begins, and skb->network_header is not set yet. */
	if (!read_headers(skb->data, skb->len, skb->protocol, &packet) ||
	    !is_traced_port(bpf_ntohs(packet.destination_port)) || dev->nd_net.net->ns.inum != settings.network)
		return 0;
	flow = flow_number(packet.source, packet.source_port, bpf_ntohs(packet.destination_port));
	if (packet.protocol == IPPROTO_UDP) {
		last = bpf_map_lookup_elem(&last_flow, &only);
		if (last)
			*last = flow;
	}
	if (is_sampled(flow))
		emit(bpf_ktime_get_ns(), REQUEST_RECEIVED | (__u64)dev->ifindex << 8, 0, flow, packet.payload,
		     packet.sequence, packet.protocol);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(ready, const struct sock *sk)
{
	__u64 flow, *last, socket = 0;
	__u32 only = 0;

	if (!is_traced_socket(sk) || sk->__sk_common.skc_state == TCP_LISTEN)
		return 0;
	if (sk->sk_protocol == IPPROTO_UDP) {
		last = settings.udp ? bpf_map_lookup_elem(&last_flow, &only) : NULL;
		if (!last || !*last)
			return 0;
		flow = *last;
		*last = 0;
		socket = (__u64)sk;
	} else {
		flow = flow_of_socket(sk);
		/* Every datagram counts, as the reads do not say whose they are. */
		if (!settings.tcp || !is_sampled(flow))
			return 0;
	}
	emit(bpf_ktime_get_ns(), REQUEST_READY, 0, flow, 0, socket, 0);
	return 0;
}

/* The bytes that a receiving system call returned. A UDP socket does not say whose datagram it was; the queue is FIFO. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(read, struct sock *sk, int length, int flags)
{
	__u64 flow, socket = 0;

	if (length <= 0 || (flags & MSG_PEEK) || !is_traced_socket(sk))
		return 0;
	if (sk->sk_protocol == IPPROTO_UDP) {
		if (!settings.udp)
			return 0;
		flow = 0;
		socket = (__u64)sk;
	} else {
		flow = flow_of_socket(sk);
		if (!settings.tcp || !is_sampled(flow))
			return 0;
	}
	emit(bpf_ktime_get_ns(), REQUEST_READ, bpf_get_current_pid_tgid(), flow, length, socket, 0);
	return 0;
}

/* Once for each packet that the call fills, with the bytes that the call still has. */
SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(send_stream, const struct sock *sk, const struct msghdr *message)
{
	__u64 flow;

	if (!is_traced_socket(sk))
		return 0;
	flow = flow_of_socket(sk);
	if (is_sampled(flow))
		emit(bpf_ktime_get_ns(), REQUEST_SEND, bpf_get_current_pid_tgid(), flow, message->msg_iter.count, 0, 0);
	return 0;
}

/* System calls that send, where no tracepoint of the protocol shows the begin: their number differs by architecture. */
#if defined(__TARGET_ARCH_x86)
#define SENDS(number) ((number) == 1 || (number) == 20 || (number) == 44 || (number) == 46 || (number) == 307)
#else
#define SENDS(number) ((number) == 64 || (number) == 66 || (number) == 206 || (number) == 211 || (number) == 269)
#endif

SEC("tp_btf/sys_enter")
int BPF_PROG(send_call, void *registers, long number)
{
	struct thread_state *state;

	if (!SENDS(number) || !is_server(bpf_get_current_pid_tgid() >> 32))
		return 0;
	state = bpf_task_storage_get(&threads, (struct task_struct *)bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state)
		state->send_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int transmit(struct sk_buff *skb, __u64 kind)
{
	struct sock *sk = skb->sk;
	struct net_device *dev = skb->dev;
	struct packet packet = {};
	__u64 flow, thread, send_ns = 0;

	/* A device without a queueing discipline, such as the loopback, has nothing to wait in. */
	if (!sk || (kind == REQUEST_QUEUED && !dev->_tx->qdisc->enqueue))
		return 0;
	if (!is_traced_port(sk->__sk_common.skc_num) || dev->nd_net.net->ns.inum != settings.network)
		return 0;
	if (!read_headers(skb->head + skb->network_header,
			  skb->len - (skb->head + skb->network_header - skb->data), skb->protocol, &packet))
		return 0;
	flow = flow_number(packet.destination, packet.destination_port, bpf_ntohs(packet.source_port));
	if (!is_sampled(flow))
		return 0;
	thread = bpf_get_current_pid_tgid();
	if (settings.system_calls && is_server(thread >> 32)) {
		struct thread_state *state =
			bpf_task_storage_get(&threads, (struct task_struct *)bpf_get_current_task_btf(), NULL, 0);

		if (state)
			send_ns = state->send_ns;
	}
	emit(bpf_ktime_get_ns(), kind | (__u64)dev->ifindex << 8, thread, flow, packet.payload, packet.sequence,
	     send_ns);
	return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(queued, struct sk_buff *skb)
{
	return transmit(skb, REQUEST_QUEUED);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(transmitted, struct sk_buff *skb)
{
	return transmit(skb, REQUEST_TRANSMITTED);
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(closed, struct sock *sk)
{
	if (is_traced_socket(sk) && sk->__sk_common.skc_dport)
		emit(bpf_ktime_get_ns(), REQUEST_CLOSED, 0, flow_of_socket(sk), 0, 0, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(woken, struct task_struct *task)
{
	struct thread_state *state;

	if (!is_server(task->tgid))
		return 0;
	state = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state)
		state->woken_ns = bpf_ktime_get_ns();
	return 0;
}

/* Notes the futex that the present thread is about to sleep at, from the registers of its system call, and who called
 * it, by the chain of frame pointers. */
static __always_inline void note_futex(void *context, struct task_struct *from, struct thread_state *state)
{
	struct pt_regs *registers;
	long stack;

	state->futex = 0;
	if (state->preempted)
		return;
	registers = (struct pt_regs *)bpf_task_pt_regs(from);
	if (!registers || !IS_FUTEX(registers))
		return;
	state->futex = FIRST_ARGUMENT(registers);
	state->operation = SECOND_ARGUMENT(registers);
	stack = bpf_get_stackid(context, &stacks, BPF_F_USER_STACK);
	state->stack = stack < 0 ? 0 : stack + 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool preempted, struct task_struct *from, struct task_struct *to, unsigned int from_state)
{
	struct thread_state *state;
	__u64 thread, now = 0;

	if (from->pid && is_server(from->tgid)) {
		now = bpf_ktime_get_ns();
		state = bpf_task_storage_get(&threads, from, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (state) {
			state->stopped_ns = now;
			state->woken_ns = 0;
			/* TASK_RUNNING is 0: such a thread stays in the run queue. */
			state->preempted = preempted || from_state == 0;
			note_futex(ctx, from, state);
		}
	}
	if (to->pid && is_server(to->tgid)) {
		if (!now)
			now = bpf_ktime_get_ns();
		state = bpf_task_storage_get(&threads, to, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (state) {
			thread = (__u64)to->tgid << 32 | (__u32)to->pid;
			emit(now, REQUEST_RESUMED, thread, 0, state->preempted, state->stopped_ns, state->woken_ns);
			if (state->futex && state->stopped_ns)
				emit(now, REQUEST_WAITED | state->stack << 8, thread, state->futex, state->operation,
				     state->stopped_ns, state->woken_ns);
			state->futex = 0;
		}
	}
	return 0;
}
