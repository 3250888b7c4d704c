/* One end of a measurement of libusrsctp. The client sends messages for a time, or plays ping-pong;
 * a message of one octet is the last. Each end prints what it saw as a line of JSON, the server first,
 * and answers the last message with one of its own.
 *
 *   end server|client raw|udp ADDRESS MTU BUFFER OCTETS SECONDS bulk|pingpong
 *
 * ADDRESS is the server's, MTU the IP-level path MTU to force, 0 for the library's own, BUFFER the
 * length in octets of the send and the receive buffer, 0 for the library's own. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { SERVER_UDP = 9899, CLIENT_UDP = 9900, PORT = 5001, MAX_TRIPS = 1 << 20 };

static struct socket *so;
static int server, udp, mtu, buffer, pingpong;
static struct in_addr address; /* of the server */
static size_t size;
static double seconds;
static unsigned char *msg;
static unsigned messages; /* that were timed */
static double took;
static float trip[MAX_TRIPS]; /* us */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "usrsctp %s: %s: %s\n", server ? "server" : "client", what, strerror(errno));
	exit(1);
}

static void set(struct socket *s, int level, int name, const void *value, socklen_t len, const char *what)
{
	if (usrsctp_setsockopt(s, level, name, value, len) != 0)
		die(what);
}

/* force_mtu works on the association of s, or, before there is one, on those to come. */
static void force_mtu(struct socket *s)
{
	struct sctp_paddrparams p = {.spp_pathmtu = (uint32_t)mtu, .spp_flags = SPP_PMTUD_DISABLE};
	struct sockaddr_in any = {.sin_family = AF_INET};

	if (mtu == 0)
		return;
	memcpy(&p.spp_address, &any, sizeof any);
	set(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &p, sizeof p, "SCTP_PEER_ADDR_PARAMS");
}

static void configure(void)
{
	struct sctp_udpencaps encaps = {.sue_port = htons(server ? CLIENT_UDP : SERVER_UDP)};
	int on = 1;

	encaps.sue_address.ss_family = AF_INET;
	set(so, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
	if (buffer > 0) {
		set(so, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer, "SO_SNDBUF");
		set(so, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer, "SO_RCVBUF");
	}
	if (udp)
		set(so, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof encaps, "SCTP_REMOTE_UDP_ENCAPS_PORT");
	force_mtu(so);
}

static void set_up(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = address};

	usrsctp_init(udp ? (server ? SERVER_UDP : CLIENT_UDP) : 0, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0); /* as on any other link */
	if (buffer > 0) {
		usrsctp_sysctl_set_sctp_sendspace((uint32_t)buffer);
		usrsctp_sysctl_set_sctp_recvspace((uint32_t)buffer);
	}
	if ((so = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL)) == NULL)
		die("socket");
	configure();
	if (!server) {
		if (usrsctp_connect(so, (struct sockaddr *)&a, sizeof a) != 0)
			die("connect");
	} else {
		if (usrsctp_bind(so, (struct sockaddr *)&a, sizeof a) != 0 || usrsctp_listen(so, 1) != 0)
			die("listen");
		puts("ready");
		fflush(stdout);
		if ((so = usrsctp_accept(so, NULL, NULL)) == NULL)
			die("accept");
	}
	force_mtu(so);
}

static void send_message(size_t len)
{
	struct sctp_sndinfo info = {0};

	if (usrsctp_sendv(so, msg, len, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) != (ssize_t)len)
		die("send");
}

/* receive_message returns the length of a whole message. */
static size_t receive_message(void)
{
	size_t have = 0;

	for (;;) {
		unsigned type;
		socklen_t infolen = 0;
		int flags = 0;
		ssize_t n = usrsctp_recvv(so, msg + have, size - have, NULL, NULL, NULL, &infolen, &type, &flags);

		if (n <= 0)
			die("receive");
		have += (size_t)n;
		if (have == size || (flags & MSG_EOR))
			return have;
	}
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void report(void)
{
	struct sctpstat stat;

	usrsctp_get_stat(&stat);
	printf("{\"messages\":%u,\"octets\":%zu,\"seconds\":%.9f", messages, messages * size, took);
	if (pingpong && !server && messages > 0) {
		unsigned n = messages < MAX_TRIPS ? messages : MAX_TRIPS;

		qsort(trip, n, sizeof *trip, ascending);
		printf(",\"p50_us\":%.3f,\"p99_us\":%.3f", (double)trip[n / 2], (double)trip[n - 1 - n / 100]);
	}
	printf(",\"packets_out\":%u,\"packets_in\":%u,\"retransmitted_chunks\":%u}\n", stat.sctps_sendpackets,
	       stat.sctps_recvpackets, stat.sctps_sendretransdata);
	fflush(stdout);
}

static void serve(void)
{
	double start = 0;

	for (;;) {
		if (receive_message() == 1 && size > 1)
			break;
		if (pingpong)
			send_message(size);
		if (start == 0)
			start = now(); /* the first message only starts the clock */
		else
			messages++;
	}
	took = now() - start;
	report();
	send_message(1);
	pause();
}

static void measure(void)
{
	double start = now(), last = start;

	while (last - start < seconds) {
		double before = last;

		send_message(size);
		if (pingpong)
			receive_message();
		last = now();
		if (messages < MAX_TRIPS)
			trip[messages] = (float)(1e6 * (last - before));
		messages++;
	}
	took = last - start;
	send_message(1);
	if (receive_message() != 1)
		die("the answer to the last message");
	report();
}

int main(int argc, char **argv)
{
	if (argc != 9 || inet_pton(AF_INET, argv[3], &address) != 1) {
		fprintf(stderr, "usage: %s server|client raw|udp ADDRESS MTU BUFFER OCTETS SECONDS bulk|pingpong\n", argv[0]);
		return 2;
	}
	server = strcmp(argv[1], "server") == 0;
	udp = strcmp(argv[2], "udp") == 0;
	mtu = atoi(argv[4]);
	buffer = atoi(argv[5]);
	size = strtoul(argv[6], NULL, 10);
	seconds = atof(argv[7]);
	pingpong = strcmp(argv[8], "pingpong") == 0;
	if ((msg = calloc(1, size)) == NULL)
		die("memory");
	set_up();
	if (server)
		serve();
	else
		measure();
	_exit(0);
}
