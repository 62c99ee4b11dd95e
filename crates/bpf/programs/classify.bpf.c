/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * QJump's classifiers. At the host, a cgroup gives its level to the sockets that its programs open or, where the
 * programs are already running, to every packet that leaves their sockets; the programs need no change. At the
 * switch, the class selector becomes skb->priority again, before the port's queues read it; other packets keep theirs.
 */
#include "kernel.h"

const volatile struct qjump_classifier_settings settings = {};

SEC("cgroup/sock_create")
int classify_socket(struct bpf_sock *socket)
{
	socket->priority = settings.level;
	return 1;
}

SEC("cgroup_skb/egress")
int classify_traffic(struct __sk_buff *skb)
{
	skb->priority = settings.level;
	return 1;
}

SEC("tc")
int classify_packet(struct __sk_buff *skb)
{
	int level = class_selector(skb);

	if (level >= 0)
		skb->priority = level;
	return TC_ACT_UNSPEC;
}
