#include "resets.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define MAX_TRIES 200

/* Both stacks have these values for the flags of each notification. */
#define DENIED 0x0004
#define FAILED 0x0008

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static unsigned awaited_type, awaited_flag; /* guarded by lock: the notification that is the answer; 0: it is there */
static unsigned answer;                     /* guarded by lock: its flags */

void enable_resets(void)
{
	static const uint16_t events[] = {SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT};
	struct sctp_assoc_value all = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 7};

#ifdef LINUX_SCTP
	struct sctp_assoc_value on = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1};
	if (stack_set(IPPROTO_SCTP, SCTP_RECONFIG_SUPPORTED, &on, sizeof on) != 0)
		line("error SCTP_RECONFIG_SUPPORTED: %s", strerror(errno));
#endif
	if (stack_set(IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &all, sizeof all) != 0)
		line("error SCTP_ENABLE_STREAM_RESET: %s", strerror(errno));
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		struct sctp_event e = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = events[i], .se_on = 1};
		if (stack_set(IPPROTO_SCTP, SCTP_EVENT, &e, sizeof e) != 0)
			line("error SCTP_EVENT %u: %s", events[i], strerror(errno));
	}
}

void reset_notification(const union sctp_notification *n)
{
	unsigned type = n->sn_header.sn_type, flags = n->sn_header.sn_flags;

	switch (type) {
	case SCTP_STREAM_RESET_EVENT:
		line("streams-reset %s flags=0x%x", flags & SCTP_STREAM_RESET_OUTGOING_SSN ? "out" : "in", flags);
		break;
	case SCTP_ASSOC_RESET_EVENT:
		line("tsns-reset flags=0x%x", flags);
		break;
	default:
		line("streams-added flags=0x%x", flags);
	}
	pthread_mutex_lock(&lock);
	if (type == awaited_type && (awaited_flag == 0 || (flags & awaited_flag))) {
		awaited_type = 0;
		answer = flags;
		pthread_cond_broadcast(&heard);
	}
	pthread_mutex_unlock(&lock);
}

/* start asks for one thing. */
static int start(const struct options *o, const char *what)
{
	union {
		struct sctp_reset_streams reset;
		unsigned char room[sizeof(struct sctp_reset_streams) + 2 * sizeof(uint16_t)];
	} list = {.reset = {.srs_flags = SCTP_STREAM_RESET_OUTGOING}};
	struct sctp_add_streams add = {.sas_outstrms = 1};
	sctp_assoc_t id = 0;

	if (strcmp(what, "tsns") == 0)
		return stack_set(IPPROTO_SCTP, SCTP_RESET_ASSOC, &id, sizeof id);
	if (strncmp(what, "add-", 4) == 0) {
		if (strcmp(what, "add-in") == 0)
			add = (struct sctp_add_streams){.sas_instrms = 1};
		return stack_set(IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add);
	}
	if (strcmp(what, "in") == 0 || strcmp(what, "all-in") == 0)
		list.reset.srs_flags = SCTP_STREAM_RESET_INCOMING;
	if (strncmp(what, "all-", 4) == 0)
		return stack_set(IPPROTO_SCTP, SCTP_RESET_STREAMS, &list, sizeof list.reset);
	list.reset.srs_number_streams = 2;
	list.reset.srs_stream_list[0] = (uint16_t)(o->out.streams - 1);
	list.reset.srs_stream_list[1] = 0;
	return stack_set(IPPROTO_SCTP, SCTP_RESET_STREAMS, &list, sizeof list);
}

/* ask asks for one thing until the peer has answered. A peer that has a request of its own under way
 * is asked again. */
static void ask(const struct options *o, const char *what)
{
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		int ok;

		pthread_mutex_lock(&lock);
		awaited_flag = 0;
		awaited_type = SCTP_STREAM_RESET_EVENT;
		if (strcmp(what, "tsns") == 0)
			awaited_type = SCTP_ASSOC_RESET_EVENT;
		else if (strncmp(what, "add-", 4) == 0)
			awaited_type = SCTP_STREAM_CHANGE_EVENT;
		else
			awaited_flag = strstr(what, "in") != NULL ? SCTP_STREAM_RESET_INCOMING_SSN : SCTP_STREAM_RESET_OUTGOING_SSN;
		pthread_mutex_unlock(&lock);
		ok = start(o, what);
		if (ok != 0 && errno != EALREADY && errno != EBUSY && errno != EAGAIN && errno != EINPROGRESS &&
			errno != EINVAL) { /* which is that of an association that is not up */
			line("asked %s: %s", what, strerror(errno));
			return;
		}
		pthread_mutex_lock(&lock);
		while (ok == 0 && awaited_type != 0)
			pthread_cond_wait(&heard, &lock);
		/* that there is nothing to do is a failure to usrsctp, and asking again changes nothing */
		ok = ok == 0 && (!(answer & FAILED) || answer & SCTP_STREAM_RESET_INCOMING_SSN);
		pthread_mutex_unlock(&lock);
		if (ok) {
			line("asked %s %s", what, answer & DENIED ? "denied" : "performed");
			return;
		}
		usleep(10000);
	}
	line("asked %s failed", what);
}

void ask_if_due(const struct options *o, unsigned i)
{
	static unsigned next = 1;
	char what[16];
	const char *s = o->resets;
	unsigned all = 1;

	if (*s == 0)
		return;
	for (const char *c = s; *c != 0; c++)
		all += *c == ',';
	if (next > all || i != o->send / (all + 1) * next)
		return;
	for (unsigned k = 1; k < next; k++)
		s = strchr(s, ',') + 1;
	next++;
	snprintf(what, sizeof what, "%.*s", (int)strcspn(s, ","), s);
	ask(o, what);
}
