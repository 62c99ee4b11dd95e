/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Finds the partition of a request to memcached in a datagram: that of its key, in the ASCII, meta or binary protocol
 * behind the 8-byte UDP frame header, by the hash of plimsoll_chronos::KeyHash, or that of its vBucket field.
 *
 * The including program defines `settings` with the fields seed, factor, partitions and by_vbucket, and
 * `load_bytes(datagram, offset, to, length)`, which returns 0 if it has copied `length` bytes.
 */
#ifndef PLIMSOLL_DATAGRAM_KEY_H
#define PLIMSOLL_DATAGRAM_KEY_H

/* The bytes of memcached's frame header, which precedes the request. */
#define FRAME_HEADER_BYTES 8
#define HEAD_BYTES 24
#define HEAD_ROOM 32
#define KEY_BYTES 250
#define KEY_WORDS 32
#define BINARY_REQUEST 0x80
#define LOW(word) ((word) & 0xffffffff)

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

/*
 * Returns `value`, below 512, such that the verifier does not know it: otherwise it walks what follows once for each
 * value. `any` is a number that the verifier does not know either.
 */
static __always_inline __u32 unknown(__u32 value, __u32 any)
{
	any &= 0x1ff;
	value ^= any;
	asm volatile("" : "+r"(value));
	return (value ^ any) & 0x1ff;
}

/*
 * Returns `value`, 1 to `most`, a power of two, such that the verifier knows it: that of Linux 6.1 learns nothing from a
 * comparison with 0.
 */
static __always_inline __u32 positive(__u32 value, __u32 most)
{
	value--;
	asm volatile("" : "+r"(value));
	return (value & (most - 1)) + 1;
}

/* Implements KeyHash::hash for the first `length` bytes of `words`, little-endian; `length` is below 8 * KEY_WORDS. */
static __always_inline __u64 hash_of(const __u64 *words, __u64 length)
{
	__u64 hash = settings.seed ^ length, rest = length & 7, last = length >> 3;

	for (__u32 i = 0; i < KEY_WORDS && 8 * i + 8 <= length; i++)
		hash = fold(hash ^ words[i]);
	/* The compiler knows that the index is small enough, and the verifier of Linux 6.1 does not. */
	asm volatile("" : "+r"(last));
	last = rest ? words[last & (KEY_WORDS - 1)] & ~0ULL >> (64 - 8 * rest) : 0;
	return fold(fold(hash ^ last) ^ settings.seed);
}

/* Returns the offset of the key in the request, or 0 if there is none, and sets `length` to its maximum length. */
static __always_inline __u32 find_key(const __u8 *head, __u32 *length)
{
	if (head[0] == BINARY_REQUEST) {
		*length = head[2] << 8 | head[3];
		return *length ? HEAD_BYTES + head[4] : 0;
	}
	*length = KEY_BYTES;
	for (int i = 1; i < 16; i++)
		if (head[i] == ' ')
			return i + 1;
	return 0;
}

/* Computes the hash of the request's key; returns false if there is none. `here` bytes begin at offset `request`. */
static __always_inline int hash_key(void *datagram, __u32 request, __u32 here, const __u8 *head, __u64 *hash)
{
	__u64 words[KEY_WORDS] = {};
	const __u8 *bytes = (const __u8 *)words;
	__u32 length, at = find_key(head, &length), end;

	if (!at || at >= here)
		return 0;
	at = unknown(at, head[0]);
	here -= at;
	if (here > KEY_BYTES)
		here = KEY_BYTES;
	if (!here || load_bytes(datagram, request + at, words, positive(here, sizeof(words))))
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
	end = unknown(end, bytes[0]);
	*hash = hash_of(words, end);
	return end > 0;
}

/*
 * Sets the partition of the request whose frame header begins at offset `at` of a datagram with `here` bytes from
 * there; returns false if the request has neither key nor vBucket.
 */
static __always_inline int find_partition(void *datagram, __u32 at, __u32 here, __u32 *partition)
{
	__u8 head[HEAD_ROOM] = {};
	__u32 length;
	__u64 hash;

	if (here <= FRAME_HEADER_BYTES)
		return 0;
	at += FRAME_HEADER_BYTES;
	here -= FRAME_HEADER_BYTES;
	length = here > HEAD_BYTES ? HEAD_BYTES : here;
	if (load_bytes(datagram, at, head, positive(length, sizeof(head))))
		return 0;
	if (head[0] == BINARY_REQUEST && settings.by_vbucket)
		*partition = (head[6] << 8 | head[7]) % (__u32)settings.partitions;
	else if (hash_key(datagram, at, here, head, &hash))
		*partition = upper(hash, settings.partitions);
	else
		return 0;
	return 1;
}

#endif
