/* One end of an association over an SCTP that is not ours, the counterpart of ../peer. It sends and checks messages
 * of a known pattern, reports what happens on standard output, one line each, and ends with "result
 * ok" or "result bad". Then it lives on until SIGTERM, to answer retransmissions of the peer. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "report.h"
#include "resets.h"
#include "stack.h"

static struct options o;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Guarded by lock. */
static unsigned run;      /* the run being sent */
static int sent_all;      /* of that run */
static int ended;         /* we have asked for the end */
static int over;          /* the association is no more */

/* Of the receiving thread. */
static unsigned char *seen[MAX_RUN]; /* which messages came */
static long *last[MAX_RUN];          /* per stream: index of the last ordered message */
static unsigned received;            /* messages of the run that is expected */
static int got_last;                 /* the last of them */
static unsigned got_important;
static unsigned pieces, cut_off;     /* reads that were not the end of a message; messages of which only a part came */
static unsigned long octets_in, octets_out;
static unsigned numbers_again;       /* SSNs that began anew */
static int *last_ssn;                /* per stream, -1: none */
static int bad;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
	line("error %s: %s", what, strerror(errno));
	line("result bad");
	exit(1);
}

static void set(int level, int name, const void *value, socklen_t len, const char *what)
{
	if (stack_set(level, name, value, len) != 0)
		die(what);
}

static socklen_t length(const union address *a) { return a->sa.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6; }

static void set_port(union address *a, uint16_t port)
{
	if (a->sa.sa_family == AF_INET)
		a->v4.sin_port = htons(port);
	else
		a->v6.sin6_port = htons(port);
}

static int family(void)
{
	const union address *a = o.locals > 0 ? o.local : o.peer;

	return o.dual || (o.locals + o.peers > 0 && a->sa.sa_family == AF_INET6) ? AF_INET6 : AF_INET;
}

static void configure(void)
{
	static const uint16_t events[] = {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_REMOTE_ERROR, SCTP_SHUTDOWN_EVENT,
		SCTP_ADAPTATION_INDICATION, SCTP_PARTIAL_DELIVERY_EVENT};
	struct sctp_initmsg init = {.sinit_num_ostreams = (uint16_t)o.out.streams, .sinit_max_instreams = 65535};
	struct sctp_setadaptation adaptation = {.ssb_adaptation_ind = (uint32_t)o.adaptation};
	struct sctp_rtoinfo rto = {.srto_min = o.rto_min, .srto_max = o.rto_max, .srto_initial = o.rto_max};
	struct sctp_assocparams params = {.sasoc_cookie_life = o.cookie_life};
	struct sctp_paddrparams path = {.spp_hbinterval = o.heartbeat, .spp_pathmaxrxt = (uint16_t)o.path_retrans,
		.spp_flags = o.heartbeat > 0 ? SPP_HB_ENABLE : 0};
	struct sctp_udpencaps encaps;
	struct sctp_assoc_value yes = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1};
	static const uint32_t schedulers[] = STACK_SCHEDULERS;
	struct sctp_assoc_value order = {.assoc_id = SCTP_FUTURE_ASSOC,
		.assoc_value = schedulers[o.interleave && o.scheduler == ANY_ORDER ? ROUND_ROBIN : o.scheduler]};
	int on = 1, size = (int)o.buffer, between_streams = 2;
	uint32_t point = 4000; /* else the first parts of many messages would fill the buffer, and wait for ever */

	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		struct sctp_event e = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = events[i], .se_on = 1};
		set(IPPROTO_SCTP, SCTP_EVENT, &e, sizeof e, "SCTP_EVENT");
	}
	if (*o.resets != 0)
		enable_resets();
	set(IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
	set(IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init, "SCTP_INITMSG");
	if (o.interleave) {
		set(IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &between_streams, sizeof between_streams, "SCTP_FRAGMENT_INTERLEAVE");
		set(IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &yes, sizeof yes, "SCTP_INTERLEAVING_SUPPORTED");
		if (o.abandon < 0) /* usrsctp mixes up pieces of unordered messages that are given up */
			set(IPPROTO_SCTP, SCTP_PARTIAL_DELIVERY_POINT, &point, sizeof point, "SCTP_PARTIAL_DELIVERY_POINT");
	}
	if (o.interleave || o.scheduler != ANY_ORDER)
		set(IPPROTO_SCTP, STACK_SCHEDULER, &order, sizeof order, "the scheduler");
	path.spp_address.ss_family = (sa_family_t)family();
	if (o.heartbeat > 0 || o.path_retrans > 0)
		set(IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path, "SCTP_PEER_ADDR_PARAMS");
	if (o.rto_min > 0 || o.rto_max > 0)
		set(IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto, "SCTP_RTOINFO");
	if (o.cookie_life > 0)
		set(IPPROTO_SCTP, SCTP_ASSOCINFO, &params, sizeof params, "SCTP_ASSOCINFO");
	if (o.adaptation >= 0)
		set(IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &adaptation, sizeof adaptation, "SCTP_ADAPTATION_LAYER");
	if (size > 0) {
		set(SOL_SOCKET, SO_SNDBUF, &size, sizeof size, "SO_SNDBUF");
		set(SOL_SOCKET, SO_RCVBUF, &size, sizeof size, "SO_RCVBUF");
	}
	if (o.udp) {
		memset(&encaps, 0, sizeof encaps);
		encaps.sue_address.ss_family = (sa_family_t)family();
		encaps.sue_port = htons(o.encap_port);
		set(IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps, "SCTP_REMOTE_UDP_ENCAPS_PORT");
	}
}

static void bind_all(uint16_t port)
{
	union address any;

	memset(&any, 0, sizeof any);
	any.sa.sa_family = (sa_family_t)family();
	if (o.locals == 0) {
		set_port(&any, port);
		if (stack_bind(&any, length(&any), 1) != 0)
			die("bind");
	}
	for (int i = 0; i < o.locals; i++) {
		set_port(&o.local[i], port);
		if (stack_bind(&o.local[i], length(&o.local[i]), i == 0) != 0)
			die("bind");
	}
}

static void set_up(void)
{
	unsigned char list[sizeof o.peer];
	size_t len = 0;

	if (stack_socket(family(), o.udp ? o.udp_port : 0) < 0)
		die("socket");
	configure();
	if (o.server) {
		bind_all(o.port);
		if (stack_listen() != 0)
			die("listen");
		line("listening");
		if (stack_accept() != 0)
			die("accept");
		return;
	}
	if (o.locals > 0 || o.local_port > 0)
		bind_all(o.local_port);
	for (int i = 0; i < o.peers; i++) {
		set_port(&o.peer[i], o.port);
		memcpy(list + len, &o.peer[i], length(&o.peer[i]));
		len += length(&o.peer[i]);
	}
	if (stack_connect(list, (socklen_t)len, o.peers) != 0)
		die("connect");
}

/* rank_streams gives each stream its priority, once there is an association. */
static void rank_streams(void)
{
	for (unsigned k = 0; o.scheduler == BY_PRIORITY && k < o.out.streams; k++) {
		struct sctp_stream_value v = {.stream_id = (uint16_t)k, .stream_value = (uint16_t)(k % 3)};
		set(IPPROTO_SCTP, STACK_SCHEDULER_VALUE, &v, sizeof v, "the priority of a stream");
	}
}

/* maybe_end ends the association once everything is sent and received. Called with lock held. */
static void maybe_end(void)
{
	int all = received >= o.expect || (o.abandon >= 0 && got_last);

	if (ended || over || !sent_all || !all || o.ending == END_WAIT)
		return;
	ended = 1;
	if (o.ending == END_SHUTDOWN) {
		line("shutdown");
		if (stack_shutdown() != 0)
			line("error shutdown: %s", strerror(errno));
		return;
	}
	line("end abort by=self");
	if (stack_abort(o.reason) != 0)
		line("error abort: %s", strerror(errno));
}

/* sender sends the run's messages, and again as the next run when the peer restarts. */
static void *sender(void *arg)
{
	static const uint16_t policies[] = STACK_POLICIES;
	static unsigned char b[MAX_SIZE + 8];
	unsigned mine, i = 0;

	pthread_mutex_lock(&lock);
	mine = run;
	while (!over) {
		if (mine != run) {
			mine = run;
			i = 0;
		}
		if (i < o.send) {
			struct shape s = shape_of(&o.out, mine, i);
			uint16_t policy = o.abandon >= 0 && i < o.send - 1 ? policies[o.policy] : 0;
			uint32_t value = o.policy == PRIORITY && important(i) ? 0 : (uint32_t)o.abandon;
			pthread_mutex_unlock(&lock);
			ask_if_due(&o, i);
			fill(&s, b);
			ssize_t n;
			while ((n = stack_send(b, s.size, s.stream, s.unordered ? SCTP_UNORDERED : 0, s.ppid, policy, value)) < 0 && errno == EAGAIN &&
				*o.resets != 0)
				usleep(1000); /* the stream is being reset */
			if (n != (ssize_t)s.size) {
				line("send-failed index=%u: %s", i, strerror(errno));
				return arg;
			}
			i++;
			octets_out += s.size;
			pthread_mutex_lock(&lock);
			continue;
		}
		if (!sent_all) {
			line("sent %u run=%u", i, mine);
			sent_all = 1;
			maybe_end();
		}
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

static void wrong(const char *what, uint32_t ppid)
{
	if (bad++ < 5)
		line("wrong message 0x%08x: %s", ppid, what);
}

/* check compares a received message with what it has to be. */
static void check(const unsigned char *b, size_t len, const struct sctp_rcvinfo *info)
{
	static unsigned char want[MAX_SIZE + 8];
	uint32_t ppid = ntohl(info->rcv_ppid);
	unsigned r, i;

	if (!which_of(ppid, &r, &i)) {
		wrong("payload protocol identifier", ppid);
		return;
	}
	struct shape s = shape_of(&o.in, r, i);
	fill(&s, want);
	if (info->rcv_sid != s.stream)
		wrong("stream", ppid);
	else if (!(info->rcv_flags & SCTP_UNORDERED) != !s.unordered)
		wrong("order flag", ppid);
	else if (len != s.size)
		wrong("length", ppid);
	else if (memcmp(b, want, len) != 0)
		wrong("content", ppid);
	if (seen[r] == NULL) {
		seen[r] = calloc(MAX_INDEX, 1);
		last[r] = malloc(o.in.streams * sizeof *last[r]);
		for (unsigned k = 0; k < o.in.streams; k++)
			last[r][k] = -1;
	}
	if (seen[r][i]++)
		wrong("came twice", ppid);
	if (!s.unordered) {
		if (last[r][s.stream] >= (long)i)
			wrong("out of order", ppid);
		last[r][s.stream] = (long)i;
		numbers_again += last_ssn[s.stream] >= 0 && last_ssn[s.stream] < 65535 && info->rcv_ssn == 0;
		last_ssn[s.stream] = info->rcv_ssn;
	}
	octets_in += len;
	if (r != o.peer_run)
		return;
	pthread_mutex_lock(&lock);
	received++;
	got_important += important(i);
	got_last = got_last || i + 1 == o.expect;
	maybe_end();
	pthread_mutex_unlock(&lock);
}

/* receive runs until the association is over. */
static void receive(void)
{
	static unsigned char b[1 << 17];
	static struct { unsigned char *octets; size_t have; } part[65536]; /* of the message of a stream */
	int told = 0; /* how it ended */

	for (;;) {
		struct sctp_rcvinfo info;
		int flags = 0;
		ssize_t n = stack_receive(b, sizeof b, &info, &flags);

		if (n <= 0) {
			if (n < 0)
				line("read-failed %s", strerror(errno));
			else if (!told)
				line("end shutdown"); /* Linux tells the end of a peer's shutdown so alone */
			return;
		}
		if (flags & MSG_NOTIFICATION) {
			const union sctp_notification *event = (const union sctp_notification *)b;
			int what = notification(event, (size_t)n);
			told = told || what == -SCTP_SHUTDOWN_COMP || what == -SCTP_COMM_LOST;
			if (what == SCTP_PARTIAL_DELIVERY_EVENT) {
				cut_off++;
				part[event->sn_pdapi_event.pdapi_stream & 65535].have = 0;
			}
			if (what == -SCTP_RESTART) {
				for (size_t i = 0; i < 65536; i++)
					part[i].have = 0;
				pthread_mutex_lock(&lock);
				run++;
				sent_all = 0;
				pthread_cond_broadcast(&changed);
				pthread_mutex_unlock(&lock);
			}
			continue;
		}
		if (part[info.rcv_sid].octets == NULL)
			part[info.rcv_sid].octets = malloc(2 * sizeof b);
		memcpy(part[info.rcv_sid].octets + part[info.rcv_sid].have, b, (size_t)n);
		part[info.rcv_sid].have += (size_t)n;
		if (part[info.rcv_sid].have < sizeof b && !(flags & MSG_EOR)) {
			pieces++;
			continue;
		}
		check(part[info.rcv_sid].octets, part[info.rcv_sid].have, &info);
		part[info.rcv_sid].have = 0;
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	struct counters n;
	sigset_t term;
	double start;
	int signal;

	parse(&o, argc, argv);
	alarm(o.timeout);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	run = o.run;
	last_ssn = malloc(o.in.streams * sizeof *last_ssn);
	for (unsigned k = 0; k < o.in.streams; k++)
		last_ssn[k] = -1;
	set_up();
	rank_streams();
	start = now();
	pthread_create(&thread, NULL, sender, NULL);
	receive();
	start = now() - start;
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	n = stack_counters();
	line("received %u of %u", received, o.expect);
	if (o.interleave || o.abandon >= 0)
		line("extensions pieces=%u cut-off=%u important=%u", pieces, cut_off, got_important);
	if (*o.resets != 0)
		line("numbers-again %u", numbers_again);
	line("stats seconds=%.3f octets-in=%lu octets-out=%lu chunks-out=%u retransmitted=%u fast=%u timeouts=%u duplicates=%u",
	     start, octets_in, octets_out, n.chunks_out, n.retransmitted, n.fast, n.timeouts, n.duplicates);
	if (o.abandon >= 0 && o.policy == PRIORITY && got_important != (o.expect + 2) / 3)
		bad++;
	if (received != o.expect && !o.partial)
		bad++;
	line("result %s", bad ? "bad" : "ok");
	stack_close();
	sigwait(&term, &signal);
	_exit(bad != 0);
}
