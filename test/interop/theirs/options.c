#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"One end of an association, over libusrsctp.\n"
	"  --server                 accept (default: connect)\n"
	"  --udp                    encapsulate in UDP (RFC 6951)\n"
	"  --dual                   an IPv6 socket that takes IPv4 too, as most servers have\n"
	"  --local ADDR             bind to it; again for more (default: all)\n"
	"  --peer ADDR              connect to it; again for more\n"
	"  --port N                 SCTP port of the server (5001)\n"
	"  --local-port N           SCTP port of the client (any)\n"
	"  --udp-port N             own UDP port (9899)\n"
	"  --encap-port N           the peer's UDP port (9899)\n"
	"  --streams N              streams each way (10)\n"
	"  --send N, --expect N     messages to send and to receive (0)\n"
	"  --sizes short|small|mixed|big  of the messages, octets: to 1000, to 1400, to 60000 mostly short, to 60000 evenly\n"
	"  --order ordered|unordered|both\n"
	"  --seed N, --peer-seed N  of the messages sent, and of those received (0)\n"
	"  --run N, --peer-run N    which start of this program, and of the peer, it is (0)\n"
	"  --partial                fewer messages than expected are no failure\n"
	"  --interleave             offer I-DATA (RFC 8260), and take turns among streams\n"
	"  --abandon N              give a message up: all is received with the last one\n"
	"  --policy resent|timed|priority  when it was sent again N times, after N ms, or for want of room at priority N\n"
	"  --scheduler fcfs|rr|prio  of streams; with prio, stream n has priority n % 3\n"
	"  --adaptation N           announce this adaptation layer indication\n"
	"  --end wait|shutdown|abort  once all is sent and received (wait: the peer ends it)\n"
	"  --reason TEXT            of the abort\n"
	"  --rto-min MS, --rto-max MS, --heartbeat MS, --cookie-life MS, --path-retrans N\n"
	"  --buffer OCTETS          of sending, and of receiving\n"
	"  --resets LIST            ask for these among the messages: out, in, all-out, all-in, add-out, add-in, tsns\n"
	"  --timeout S              give up after so many seconds (60)\n";

static void fail(const char *what, const char *value)
{
	fprintf(stderr, "peer: %s %s\n%s", what, value, usage);
	exit(2);
}

static unsigned long number(const char *name, const char *s, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(s, &end, 0);

	if (*s == 0 || *end != 0 || n > max)
		fail(name, s);
	return n;
}

static int choice(const char *name, const char *s, const char *const *of)
{
	for (int i = 0; of[i] != NULL; i++)
		if (strcmp(s, of[i]) == 0)
			return i;
	fail(name, s);
	return 0;
}

static void address(union address *list, int *n, char *s)
{
	union address *a = &list[*n];
	char *zone = strchr(s, '%');

	if (*n == MAX_ADDRS)
		fail("too many addresses:", s);
	memset(a, 0, sizeof *a);
	if (zone != NULL) { /* a link-local address, with its interface */
		*zone = 0;
		a->v6.sin6_scope_id = if_nametoindex(zone + 1);
	}
	if (inet_pton(AF_INET, s, &a->v4.sin_addr) == 1)
		a->v4.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, s, &a->v6.sin6_addr) == 1)
		a->v6.sin6_family = AF_INET6;
	else
		fail("not an address:", s);
	++*n;
}

void parse(struct options *o, int argc, char **argv)
{
	enum { SERVER = 1, UDP, DUAL, LOCAL, PEER, PORT, LOCAL_PORT, UDP_PORT, ENCAP_PORT, STREAMS, SEND, EXPECT,
		SIZES, ORDER, SEED, PEER_SEED, RUN, PEER_RUN, PARTIAL, INTERLEAVE, ABANDON, POLICY, SCHEDULER, ADAPTATION, END, REASON, RTO_MIN, RTO_MAX,
		HEARTBEAT, PATH_RETRANS, BUFFER, COOKIE_LIFE, RESETS, TIMEOUT };
	static const struct option names[] = {
		{"server", 0, NULL, SERVER}, {"udp", 0, NULL, UDP}, {"dual", 0, NULL, DUAL}, {"local", 1, NULL, LOCAL}, {"peer", 1, NULL, PEER},
		{"port", 1, NULL, PORT}, {"local-port", 1, NULL, LOCAL_PORT}, {"udp-port", 1, NULL, UDP_PORT},
		{"encap-port", 1, NULL, ENCAP_PORT}, {"streams", 1, NULL, STREAMS}, {"send", 1, NULL, SEND},
		{"expect", 1, NULL, EXPECT}, {"sizes", 1, NULL, SIZES}, {"order", 1, NULL, ORDER}, {"seed", 1, NULL, SEED},
		{"peer-seed", 1, NULL, PEER_SEED},
		{"run", 1, NULL, RUN}, {"peer-run", 1, NULL, PEER_RUN}, {"partial", 0, NULL, PARTIAL},
		{"interleave", 0, NULL, INTERLEAVE}, {"abandon", 1, NULL, ABANDON}, {"policy", 1, NULL, POLICY}, {"scheduler", 1, NULL, SCHEDULER},
		{"adaptation", 1, NULL, ADAPTATION}, {"end", 1, NULL, END}, {"reason", 1, NULL, REASON},
		{"rto-min", 1, NULL, RTO_MIN}, {"rto-max", 1, NULL, RTO_MAX},
		{"heartbeat", 1, NULL, HEARTBEAT}, {"path-retrans", 1, NULL, PATH_RETRANS}, {"buffer", 1, NULL, BUFFER}, {"cookie-life", 1, NULL, COOKIE_LIFE},
		{"resets", 1, NULL, RESETS}, {"timeout", 1, NULL, TIMEOUT}, {0},
	};
	static const char *const sizes[] = {"small", "mixed", "big", "short", NULL};
	static const char *const orders[] = {"ordered", "unordered", "both", NULL};
	static const char *const policies[] = {"resent", "timed", "priority", NULL};
	static const char *const schedulers[] = {"any", "fcfs", "rr", "prio", NULL};
	static const char *const endings[] = {"wait", "shutdown", "abort", NULL};
	uint64_t seed;
	int c;

	memset(o, 0, sizeof *o);
	o->port = 5001;
	o->udp_port = o->encap_port = 9899;
	o->adaptation = o->abandon = -1;
	o->reason = o->resets = "";
	o->timeout = 60;
	o->out = (struct pattern){.sizes = SIZES_MIXED, .streams = 10};
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case SERVER: o->server = 1; break;
		case UDP: o->udp = 1; break;
		case DUAL: o->dual = 1; break;
		case LOCAL: address(o->local, &o->locals, optarg); break;
		case PEER: address(o->peer, &o->peers, optarg); break;
		case PORT: o->port = (uint16_t)number("--port", optarg, 65535); break;
		case LOCAL_PORT: o->local_port = (uint16_t)number("--local-port", optarg, 65535); break;
		case UDP_PORT: o->udp_port = (uint16_t)number("--udp-port", optarg, 65535); break;
		case ENCAP_PORT: o->encap_port = (uint16_t)number("--encap-port", optarg, 65535); break;
		case STREAMS: o->out.streams = (unsigned)number("--streams", optarg, 65535); break;
		case SEND: o->send = (unsigned)number("--send", optarg, MAX_INDEX); break;
		case EXPECT: o->expect = (unsigned)number("--expect", optarg, MAX_INDEX); break;
		case SIZES: o->out.sizes = (enum sizes)choice("--sizes", optarg, sizes); break;
		case ORDER: o->out.order = (enum order)choice("--order", optarg, orders); break;
		case SEED: o->out.seed = number("--seed", optarg, ~0ul); break;
		case PEER_SEED: o->in.seed = number("--peer-seed", optarg, ~0ul); break;
		case RUN: o->run = (unsigned)number("--run", optarg, MAX_RUN - 1); break;
		case PEER_RUN: o->peer_run = (unsigned)number("--peer-run", optarg, MAX_RUN - 1); break;
		case PARTIAL: o->partial = 1; break;
		case INTERLEAVE: o->interleave = 1; break;
		case ABANDON: o->abandon = (long)number("--abandon", optarg, 1000); break;
		case POLICY: o->policy = (enum policy)choice("--policy", optarg, policies); break;
		case SCHEDULER: o->scheduler = (enum scheduler)choice("--scheduler", optarg, schedulers); break;
		case ADAPTATION: o->adaptation = (long)number("--adaptation", optarg, 0xffffffff); break;
		case END: o->ending = (enum ending)choice("--end", optarg, endings); break;
		case REASON: o->reason = optarg; break;
		case RTO_MIN: o->rto_min = (unsigned)number("--rto-min", optarg, 60000); break;
		case RTO_MAX: o->rto_max = (unsigned)number("--rto-max", optarg, 60000); break;
		case HEARTBEAT: o->heartbeat = (unsigned)number("--heartbeat", optarg, 60000); break;
		case PATH_RETRANS: o->path_retrans = (unsigned)number("--path-retrans", optarg, 100); break;
		case BUFFER: o->buffer = (unsigned)number("--buffer", optarg, 1 << 30); break;
		case COOKIE_LIFE: o->cookie_life = (unsigned)number("--cookie-life", optarg, 60000); break;
		case RESETS: o->resets = optarg; break;
		case TIMEOUT: o->timeout = (unsigned)number("--timeout", optarg, 3600); break;
		default: fail("see the options:", "");
		}
	}
	if (optind != argc)
		fail("unexpected:", argv[optind]);
	if (o->out.streams == 0)
		fail("--streams", "0");
	if (!o->server && o->peers == 0)
		fail("a client needs", "--peer");
	seed = o->in.seed;
	o->in = o->out;
	o->in.seed = seed;
}
