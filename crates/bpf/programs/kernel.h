/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Included by every program: the kernel's interface, the license, and the source of a program's inputs. */
#ifndef PLIMSOLL_KERNEL_H
#define PLIMSOLL_KERNEL_H

#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

_Static_assert((int)ACTION_PASS == TC_ACT_UNSPEC && ACTION_REFUSE == TC_ACT_SHOT && ACTION_DROP == TC_ACT_STOLEN,
	       "shared.h repeats the kernel's numbers");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Returns the time; in tests, the time that the caller put into the control block. The verifier removes the branch,
 * since `inputs_from_cb` is in a frozen map. */
static __always_inline __u64 now_ns(struct __sk_buff *skb, __u64 inputs_from_cb)
{
	if (inputs_from_cb)
		return (__u64)skb->cb[1] << 32 | skb->cb[0];
	return bpf_ktime_get_ns();
}

/* Returns the first 16 bits behind the Ethernet header: version, header length and type of service of IPv4; version,
 * traffic class and four bits of the flow label of IPv6. Returns NULL where they are not in the linear part. */
static __always_inline __u16 *network_header(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	return data + ETH_HLEN + sizeof(__u16) <= end ? data + ETH_HLEN : NULL;
}

/* Returns the class selector of the DSCP, which carries a level; -1 for a packet that is neither IPv4 nor IPv6. */
static __always_inline int class_selector(struct __sk_buff *skb)
{
	__u16 *head = network_header(skb);

	if (!head)
		return -1;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return bpf_ntohs(*head) >> 5 & 7;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return bpf_ntohs(*head) >> 9 & 7;
	return -1;
}

/* Sets Congestion Experienced; returns true if the packet now carries it. */
static __always_inline int set_ce(struct __sk_buff *skb)
{
	return bpf_skb_ecn_set_ce(skb) > 0;
}

#endif
