/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Samples what the processors run for some processes: a clock of each processor runs the program, which counts the
 * address of the instruction that it interrupts, with its callers as far as frame pointers lead to them. What the
 * kernel does in an interrupt counts for the process that it interrupts.
 */
#include "kernel.h"

/* The registers at a sample, up to the instruction's address: struct pt_regs, which starts bpf_perf_event_data. */
struct sample_registers {
#if defined(__TARGET_ARCH_x86)
	__u64 before[16];
#else
	__u64 before[32];
#endif
	__u64 instruction;
};

/* The processes that are sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct sample_place);
	__type(value, __u64);
} samples SEC(".maps");

/* Addresses of code, the innermost first, by the number of their stack. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SAMPLE_STACK_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_counts);
} counts SEC(".maps");

SEC("perf_event")
int sampled(struct sample_registers *registers)
{
	__u32 process = bpf_get_current_pid_tgid() >> 32, only = 0;
	struct sample_place place = {};
	struct sample_counts *total;
	__u64 one = 1, *count;
	long stack;

	if (!bpf_map_lookup_elem(&processes, &process))
		return 0;
	place.address = registers->instruction;
	place.process = process;
	stack = bpf_get_stackid(registers, &stacks, BPF_F_USER_STACK);
	place.user_stack = stack < 0 ? 0 : stack + 1;
	if (place.address >> 63) {
		stack = bpf_get_stackid(registers, &stacks, 0);
		place.kernel_stack = stack < 0 ? 0 : stack + 1;
	}
	count = bpf_map_lookup_elem(&samples, &place);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&samples, &place, &one, BPF_NOEXIST)) {
		/* The map is full, or the other processor was first. */
		total = bpf_map_lookup_elem(&counts, &only);
		if (total)
			__sync_fetch_and_add(&total->lost, 1);
	}
	return 0;
}
