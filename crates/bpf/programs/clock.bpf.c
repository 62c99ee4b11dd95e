/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reads only the clock, to measure the part of a program's cost that is this machine's. */
#include "kernel.h"

__u64 latest;

SEC("tc")
int clock(struct __sk_buff *skb)
{
	latest = bpf_ktime_get_ns();
	return TC_ACT_UNSPEC;
}
