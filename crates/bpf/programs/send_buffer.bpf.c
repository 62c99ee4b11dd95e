/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sizes the send buffer of the TCP connections of a cgroup when they are opened, in place of the kernel's tuning: a
 * program whose level sends little then waits for room, rather than fill megabytes that will leave seconds later.
 */
#include "kernel.h"

const volatile struct send_buffer_settings settings = {};

/* Of asm-generic/socket.h. */
#define SOL_SOCKET 1
#define SO_SNDBUF 7

SEC("sockops")
int send_buffer(struct bpf_sock_ops *socket)
{
	int bytes = settings.bytes;

	if (socket->op == BPF_SOCK_OPS_TCP_CONNECT_CB || socket->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return 1;
}
