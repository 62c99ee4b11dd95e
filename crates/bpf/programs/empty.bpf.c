/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Does nothing, to measure what a run of any program costs. */
#include "kernel.h"

SEC("tc")
int empty(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}
