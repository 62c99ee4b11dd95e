/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Chronos's steering of datagrams: each datagram goes to the socket of the thread that owns its partition, before the
 * kernel queues it. The partition is that of the key in memcached's ASCII, meta or binary protocol behind the 8-byte
 * UDP frame header, by the hash of plimsoll_chronos::KeyHash, or the vBucket field.
 *
 * A datagram that the program cannot parse goes to the socket of the kernel's own hash, whose thread hands the request
 * to the owner.
 */
#include "kernel.h"

/* The offset of the payload, behind the UDP header and memcached's frame header. */
#define PAYLOAD_AT 16
#define HEAD_BYTES 24
#define KEY_BYTES 250
#define KEY_WORDS 32
#define BINARY_REQUEST 0x80
#define LOW(word) ((word) & 0xffffffff)

const volatile struct steering_settings settings = {};

/* The thread that owns each partition. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} owners SEC(".maps");

/* The socket of each thread. */
struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sockets SEC(".maps");

/* Returns the upper half of a product. */
static __always_inline __u64 upper(__u64 a, __u64 b)
{
	__u64 low = LOW(a) * LOW(b), first = (a >> 32) * LOW(b), second = LOW(a) * (b >> 32);
	__u64 middle = (low >> 32) + LOW(first) + LOW(second);

	return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32) + (middle >> 32);
}

static __always_inline __u64 fold(__u64 word)
{
	return word * settings.factor ^ upper(word, settings.factor);
}

/* Implements KeyHash::hash for the first `length` bytes of `words`, little-endian. */
static __always_inline __u64 hash_of(const __u64 *words, __u64 length)
{
	__u64 hash = settings.seed ^ length, last = 0, rest = length & 7;

	for (__u32 i = 0; i < KEY_WORDS; i++) {
		if (8 * i + 8 > length) {
			last = rest ? words[i] & ~0ULL >> (64 - 8 * rest) : 0;
			break;
		}
		hash = fold(hash ^ words[i]);
	}
	return fold(fold(hash ^ last) ^ settings.seed);
}

/* Returns the offset of the key in the datagram, or 0 if there is none, and sets `length` to its maximum length. */
static __always_inline __u32 find_key(const __u8 *head, __u32 *length)
{
	if (head[0] == BINARY_REQUEST) {
		*length = head[2] << 8 | head[3];
		return *length ? PAYLOAD_AT + HEAD_BYTES + head[4] : 0;
	}
	*length = KEY_BYTES;
	for (int i = 1; i < 16; i++)
		if (head[i] == ' ')
			return PAYLOAD_AT + i + 1;
	return 0;
}

/* Computes the hash of the key in the datagram; returns false if there is none. */
static __always_inline int hash_key(struct sk_reuseport_md *datagram, const __u8 *head, __u64 *hash)
{
	__u64 words[KEY_WORDS] = {};
	const __u8 *bytes = (const __u8 *)words;
	__u32 length, at = find_key(head, &length), here = datagram->len, end;

	if (!at || at >= here)
		return 0;
	here -= at;
	if (here > KEY_BYTES)
		here = KEY_BYTES;
	if (here < 1 || bpf_skb_load_bytes(datagram, at, words, here))
		return 0;
	if (here > length)
		here = length;
	if (head[0] == BINARY_REQUEST) {
		*hash = hash_of(words, here);
		return 1;
	}
	for (end = 0; end < KEY_BYTES; end++)
		if (end >= here || bytes[end] <= ' ')
			break;
	*hash = hash_of(words, end);
	return end > 0;
}

SEC("sk_reuseport")
int steer(struct sk_reuseport_md *datagram)
{
	__u8 head[HEAD_BYTES] = {};
	__u32 length = datagram->len, partition, *owner;
	__u64 hash;

	if (length <= PAYLOAD_AT)
		return SK_PASS;
	length -= PAYLOAD_AT;
	if (length > HEAD_BYTES)
		length = HEAD_BYTES;
	if (length < 1 || bpf_skb_load_bytes(datagram, PAYLOAD_AT, head, length))
		return SK_PASS;
	if (head[0] == BINARY_REQUEST && settings.by_vbucket)
		partition = (head[6] << 8 | head[7]) % (__u32)settings.partitions;
	else if (hash_key(datagram, head, &hash))
		partition = upper(hash, settings.partitions);
	else
		return SK_PASS;
	owner = bpf_map_lookup_elem(&owners, &partition);
	if (owner)
		/* A thread without a socket leaves the choice to the kernel. */
		bpf_sk_select_reuseport(datagram, &sockets, owner, 0);
	return SK_PASS;
}
