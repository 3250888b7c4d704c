#include "pattern.h"

#define MARK 0x52u /* top octet of our payload protocol identifiers; no protocol is registered there */

/* mix is the finalizer of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static size_t size_of(enum sizes sizes, uint64_t r)
{
	uint64_t of = r % 1000, x = r >> 16;

	if (sizes == SIZES_BIG)
		return 1 + x % MAX_SIZE;
	if (of < 700)
		return 1 + x % 100;
	if (sizes == SIZES_SHORT)
		return 1 + x % 1000;
	if (of < 980 || sizes == SIZES_SMALL)
		return 1 + x % 1400;
	if (of < 998)
		return 1 + x % 9000;
	return 1 + x % MAX_SIZE;
}

struct shape shape_of(const struct pattern *p, unsigned run, unsigned index)
{
	uint64_t key = mix(p->seed + ((uint64_t)run << 32 | index) * 0x9e3779b97f4a7c15u);
	struct shape s = {
		.size = size_of(p->sizes, mix(key + 1)),
		.stream = (uint16_t)(mix(key + 2) % p->streams),
		.unordered = p->order == UNORDERED || (p->order == BOTH && (mix(key + 3) & 1)),
		.ppid = MARK << 24 | run << 20 | index,
		.key = key,
	};
	return s;
}

int which_of(uint32_t ppid, unsigned *run, unsigned *index)
{
	*run = ppid >> 20 & (MAX_RUN - 1);
	*index = ppid & (MAX_INDEX - 1);
	return ppid >> 24 == MARK;
}

void fill(const struct shape *s, unsigned char *b)
{
	for (size_t i = 0; i < s->size; i += 8) {
		uint64_t w = mix(s->key + 16 + i / 8);
		for (int k = 0; k < 8; k++)
			b[i + k] = (unsigned char)(w >> 8 * k);
	}
}
