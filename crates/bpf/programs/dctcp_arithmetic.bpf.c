/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* DCTCP's arithmetic alone: after its Ethernet header, the packet holds a struct dctcp_vector, which is filled in. */
#include "kernel.h"

SEC("tc")
int dctcp_arithmetic(struct __sk_buff *skb)
{
	struct dctcp_vector vector;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &vector, sizeof(vector)))
		return TC_ACT_SHOT;
	vector.updated = dctcp_updated(vector.alpha, vector.marked, vector.acked, vector.gain);
	vector.reduced = dctcp_reduced(vector.window, vector.alpha);
	vector.guarded = dctcp_guarded(vector.window, vector.shadow, vector.alpha);
	return bpf_skb_store_bytes(skb, ETH_HLEN, &vector, sizeof(vector), 0) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
