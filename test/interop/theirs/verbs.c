/* The peer of ../verbs/main.go: a program of rdma-core, on the kernel's software iWARP. See there for what
 * the ends do. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE 16  /* octets of a note: round, STag and address */
#define SLOTS 4 /* receives that are posted */

struct note {
	uint32_t round, stag;
	uint64_t addr;
};

static struct rdma_cm_id *id;
static uint32_t size, rounds, done;
static const char *kind;
static uint8_t *memory; /* local data, the target of the peer, and what is received */
static struct ibv_mr *mr;

static void fail(const char *what)
{
	printf("result failed rounds=%u: %s: %s\n", done, what, strerror(errno));
	exit(1);
}

static uint8_t *target(void) { return memory + size; }
static uint8_t *slot(uint64_t n) { return memory + 2 * size + n * (size + NOTE); }

static void put32(uint8_t *b, uint32_t v) { v = htobe32(v); memcpy(b, &v, 4); }
static void put64(uint8_t *b, uint64_t v) { v = htobe64(v); memcpy(b, &v, 8); }
static uint32_t get32(const uint8_t *b) { uint32_t v; memcpy(&v, b, 4); return be32toh(v); }
static uint64_t get64(const uint8_t *b) { uint64_t v; memcpy(&v, b, 8); return be64toh(v); }

static uint8_t octet(uint32_t round, uint32_t k) { return (uint8_t)(round * 31 + k * 7 + (k >> 8)); }

static void fill(uint8_t *b, uint32_t round)
{
	for (uint32_t k = 0; k < size; k++)
		b[k] = octet(round, k);
}

static void check(const uint8_t *b, uint32_t round, const char *what)
{
	for (uint32_t k = 0; k < size; k++)
		if (b[k] != octet(round, k)) {
			printf("result failed rounds=%u: octet %u of %s is wrong\n", done, k, what);
			exit(1);
		}
}

static void post_recv(uint64_t n)
{
	if (rdma_post_recv(id, (void *)(uintptr_t)n, slot(n), size + NOTE, mr))
		fail("post a receive");
}

/* take_note waits for a Send. Behind its note there may be data. */
static struct note take_note(const uint8_t **data, uint32_t *invalidated)
{
	struct ibv_wc wc;
	struct note n;
	const uint8_t *b;

	if (rdma_get_recv_comp(id, &wc) != 1)
		fail("wait for a Send");
	if (wc.status != IBV_WC_SUCCESS) {
		printf("result failed rounds=%u: receive: %s\n", done, ibv_wc_status_str(wc.status));
		exit(1);
	}
	b = slot(wc.wr_id);
	n = (struct note){get32(b), get32(b + 4), get64(b + 8)};
	if (data) {
		memcpy(target(), b + NOTE, wc.byte_len - NOTE);
		*data = target();
	}
	if (invalidated)
		*invalidated = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : 0;
	post_recv(wc.wr_id);
	return n;
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if ((errno = ibv_post_send(id->qp, wr, &bad)))
		fail("post");
	if (rdma_get_send_comp(id, &wc) != 1)
		fail("wait for a completion");
	if (wc.status != IBV_WC_SUCCESS) {
		printf("result failed rounds=%u: request %d: %s\n", done, wr->opcode, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static struct ibv_sge at(uint8_t *b, uint32_t len) { return (struct ibv_sge){(uintptr_t)b, len, mr->lkey}; }

/* send_note sends a note, and len octets of local data behind it. */
static void send_note(struct note n, uint32_t len, uint32_t invalidates)
{
	static uint8_t *b;
	static struct ibv_mr *of;
	struct ibv_sge list[2];
	struct ibv_send_wr wr = {.sg_list = list, .num_sge = len ? 2 : 1, .opcode = IBV_WR_SEND};

	if (!b && (!(b = malloc(NOTE)) || !(of = ibv_reg_mr(id->pd, b, NOTE, IBV_ACCESS_LOCAL_WRITE))))
		fail("register a note");
	put32(b, n.round);
	put32(b + 4, n.stag);
	put64(b + 8, n.addr);
	list[0] = (struct ibv_sge){(uintptr_t)b, NOTE, of->lkey};
	list[1] = at(memory, len);
	if (invalidates) {
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = invalidates;
		wr.wr.rdma.rkey = invalidates; /* where libsiw of rdma-core 44 takes it from */
	}
	post(&wr);
}

static void reach(enum ibv_wr_opcode op, struct note where)
{
	struct ibv_sge list = at(memory, size);
	struct ibv_send_wr wr = {.sg_list = &list, .num_sge = 1, .opcode = op,
		.wr.rdma = {.remote_addr = where.addr, .rkey = where.stag}};

	post(&wr);
}

static int is(const char *name) { return strcmp(kind, name) == 0; }

/* drive is one round of the client. */
static void drive(uint32_t i)
{
	const uint8_t *data;
	struct note theirs;

	if (is("send")) {
		fill(memory, i);
		send_note((struct note){.round = i}, size, 0);
		take_note(&data, NULL);
		check(data, ~i, "the answer");
		return;
	}
	send_note((struct note){.round = i}, 0, 0);
	theirs = take_note(NULL, NULL);
	if (is("read")) {
		reach(IBV_WR_RDMA_READ, theirs);
		check(memory, i, "what was read");
		return;
	}
	fill(memory, i);
	reach(IBV_WR_RDMA_WRITE, theirs);
	send_note((struct note){.round = i}, 0, is("invalidate") ? theirs.stag : 0);
	take_note(NULL, NULL);
}

/* serve is one round of the server. */
static void serve(uint32_t i)
{
	const uint8_t *data;
	struct ibv_mr *window = mr;
	uint32_t invalidated;

	if (is("send")) {
		take_note(&data, NULL);
		check(data, i, "what was sent");
		fill(memory, ~i);
		send_note((struct note){.round = i}, size, 0);
		return;
	}
	take_note(NULL, NULL);
	if (is("read"))
		fill(target(), i);
	if (is("invalidate") && !(window = ibv_reg_mr(id->pd, target(), size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)))
		fail("register a window");
	send_note((struct note){i, window->rkey, (uintptr_t)target()}, 0, 0);
	if (is("read"))
		return;
	take_note(NULL, &invalidated);
	check(target(), i, "what was written");
	if (is("invalidate")) {
		/* libsiw of rdma-core 44 says nothing of an invalidation. The client finds out. */
		if (invalidated && invalidated != window->rkey) {
			printf("result failed rounds=%u: %#x was invalidated, and not %#x\n", done, invalidated, window->rkey);
			exit(1);
		}
		if (ibv_dereg_mr(window))
			fail("deregister a window");
	}
	send_note((struct note){.round = i}, 0, 0);
}

static void set_up(const char *address, const char *port, int is_server)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = is_server ? RAI_PASSIVE : 0}, *where;
	struct ibv_qp_init_attr qp = {.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 1},
		.sq_sig_all = 0};
	struct rdma_conn_param param = {.responder_resources = 4, .initiator_depth = 4};
	struct rdma_cm_id *listener = NULL;

	if (rdma_getaddrinfo(address, port, &hints, &where))
		fail("find the address");
	if (rdma_create_ep(is_server ? &listener : &id, where, NULL, &qp))
		fail("make a queue pair");
	if (is_server) {
		if (rdma_listen(listener, 1))
			fail("listen");
		printf("listening\n");
		fflush(stdout);
		if (rdma_get_request(listener, &id))
			fail("wait for a client");
	}
	memory = calloc(1, 2 * size + SLOTS * (size + NOTE));
	mr = ibv_reg_mr(id->pd, memory, 2 * size + SLOTS * (size + NOTE),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!memory || !mr)
		fail("register memory");
	for (uint64_t n = 0; n < SLOTS; n++)
		post_recv(n);
	if (is_server ? rdma_accept(id, &param) : rdma_connect(id, &param))
		fail("connect");
	if (is_server)
		rdma_destroy_ep(listener); /* a second client is refused, rather than kept waiting */
}

int main(int argc, char **argv)
{
	const char *address = NULL, *port = "7174";
	int is_server = 0, c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "sa:p:k:n:S:")) != -1)
		switch (c) {
		case 's': is_server = 1; break;
		case 'a': address = optarg; break;
		case 'p': port = optarg; break;
		case 'k': kind = optarg; break;
		case 'n': rounds = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'S': size = (uint32_t)strtoul(optarg, NULL, 10); break;
		default: return 2;
		}
	if (!address || !kind || !rounds || !size)
		return 2;
	set_up(address, port, is_server);
	for (; done < rounds; done++)
		if (is_server)
			serve(done);
		else
			drive(done);
	if (is_server) {
		take_note(NULL, NULL); /* that was all: the server ends the session */
	} else {
		struct ibv_wc wc;

		send_note((struct note){.round = done}, 0, 0);
		if (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
			printf("result failed rounds=%u: there is another Send\n", done);
			return 1;
		}
	}
	rdma_disconnect(id);
	printf("result ok rounds=%u\n", done);
	return 0;
}
