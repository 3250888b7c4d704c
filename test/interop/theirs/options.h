#ifndef OPTIONS_H
#define OPTIONS_H

#include <netinet/in.h>

#include "pattern.h"

#define MAX_ADDRS 8

enum policy { RESENT, TIMED, PRIORITY }; /* retransmissions; ms; the priority of messages that are not important() */
enum scheduler { ANY_ORDER, FIRST_COME, ROUND_ROBIN, BY_PRIORITY };
enum ending { END_WAIT, END_SHUTDOWN, END_ABORT };

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct options {
	int server, udp, dual;
	union address local[MAX_ADDRS], peer[MAX_ADDRS];
	int locals, peers;
	uint16_t port, local_port, udp_port, encap_port;
	struct pattern out, in; /* what this side sends, what it expects */
	unsigned send, expect;  /* messages */
	unsigned run, peer_run;
	int partial;            /* fewer messages than expected are no failure */
	int interleave;         /* offer I-DATA, and take turns among streams */
	long abandon;           /* when a message is given up, by policy; -1: never */
	enum policy policy;     /* what that counts */
	enum scheduler scheduler;
	long adaptation;        /* -1: none */
	enum ending ending;
	const char *reason;     /* of the abort */
	unsigned rto_min;       /* ms, 0: the default; so below */
	unsigned rto_max;       /* ms */
	unsigned heartbeat;     /* ms */
	unsigned path_retrans;  /* Path.Max.Retrans */
	unsigned buffer;        /* octets of send and receive buffer */
	unsigned cookie_life;   /* ms */
	const char *resets;     /* what to ask of the peer about streams */
	unsigned timeout;       /* s */
};

/* parse reads the command line and exits on a mistake. */
void parse(struct options *o, int argc, char **argv);

#endif
