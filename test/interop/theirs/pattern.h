/* What every message looks like: a function of the seed, the run and the message's index, so that
 * the receiver knows it without being told. ../internal/pattern is the same in Go. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define MAX_SIZE 60000     /* octets of the longest message */
#define MAX_INDEX (1 << 20) /* messages of one run */
#define MAX_RUN 16

enum sizes { SIZES_SMALL, SIZES_MIXED, SIZES_BIG, SIZES_SHORT };
enum order { ORDERED, UNORDERED, BOTH };

struct pattern {
	uint64_t seed;
	enum sizes sizes;
	enum order order;
	unsigned streams;
};

struct shape {
	size_t size;
	uint16_t stream;
	int unordered;
	uint32_t ppid; /* host order */
	uint64_t key;  /* of the content */
};

/* shape_of returns all of a message but its octets. */
struct shape shape_of(const struct pattern *p, unsigned run, unsigned index);

/* which_of finds run and index in a payload protocol identifier; it returns 0 when it is not ours. */
int which_of(uint32_t ppid, unsigned *run, unsigned *index);

/* fill writes the message's octets to b, which has room for s->size rounded up to 8. */
void fill(const struct shape *s, unsigned char *b);

/* important says that a message is not given up where there are priorities. */
static inline int important(unsigned index) { return index % 3 == 0; }

#endif
