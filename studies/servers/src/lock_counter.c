/*
 * Counts how often the threads of a program acquire a mutex of pthreads, and how often they find it taken: what
 * mutrace counts, which Debian no longer has. It is loaded before the C library (LD_PRELOAD), and counts in the file
 * that the environment names, which lock_counter.rs makes and reads.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* The counts of a thread, on a cache line of their own. */
struct counts {
	uint64_t acquired;
	uint64_t contended;
	uint64_t waited_ns;
	uint64_t unused[5];
};

/* Threads beyond these share the counts of others. */
#define THREADS 256

static int (*lock)(pthread_mutex_t *);
static struct counts *all;
static uint32_t threads;
static __thread struct counts *own __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("PLIMSOLL_LOCK_COUNTS");
	int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *map = mmap(NULL, THREADS * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (map != MAP_FAILED)
		all = map;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static void add(uint64_t *count, uint64_t more)
{
	__atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int answer = pthread_mutex_trylock(mutex);
	uint64_t from;

	if (all && !own)
		own = &all[__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % THREADS];
	if (own)
		add(&own->acquired, 1);
	if (answer != EBUSY)
		return answer;
	if (!lock)
		lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (!own)
		return lock(mutex);
	add(&own->contended, 1);
	from = now_ns();
	answer = lock(mutex);
	add(&own->waited_ns, now_ns() - from);
	return answer;
}
