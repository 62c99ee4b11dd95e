/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The gate of a host's circuits, at the egress of its device to the packet switch: a packet over IPv4 to an address
 * that has a lease leaves by the device to the circuit switch, with the link-layer address of the receiver's device
 * there. All other packets pass.
 *
 * A lease ends by the clock. So no process has to close the gate, and a program whose process has ended is detached.
 */
#include "kernel.h"

const volatile struct circuit_gate_settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CIRCUIT_RECEIVERS);
	__type(key, __u32);
	__type(value, struct circuit_lease);
} leases SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct circuit_gate_counts);
} counts SEC(".maps");

SEC("tc")
int circuit_gate(struct __sk_buff *skb)
{
	__u32 destination, only = 0;
	struct circuit_gate_counts *count = bpf_map_lookup_elem(&counts, &only);
	struct circuit_lease *lease;

	if (!count || skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, daddr), &destination, sizeof(destination)))
		return TC_ACT_UNSPEC;
	lease = bpf_map_lookup_elem(&leases, &destination);
	if (!lease)
		return TC_ACT_UNSPEC;
	if (now_ns(skb, settings.inputs_from_cb) >= lease->until_ns) {
		count->late++;
		return TC_ACT_UNSPEC;
	}
	if (bpf_skb_store_bytes(skb, 0, &lease->address, ETH_ALEN, 0))
		return TC_ACT_UNSPEC;
	count->packets++;
	count->bytes += skb->len;
	return bpf_redirect(settings.ifindex, 0);
}
