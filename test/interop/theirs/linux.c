/* The socket of the Linux kernel, by its own interface: a one-to-one style socket, with RFC 6458's control
 * messages. It needs no library, so that the program runs where nothing else is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stack.h"

static int fd = -1;

int stack_socket(int family, uint16_t udp_port)
{
	(void)udp_port; /* net.sctp.udp_port says where the kernel takes packets */
	fd = socket(family, SOCK_STREAM, IPPROTO_SCTP);
	return fd;
}

int stack_set(int level, int name, const void *value, socklen_t len) { return setsockopt(fd, level, name, value, len); }

int stack_bind(union address *a, socklen_t len, int first)
{
	return first ? bind(fd, &a->sa, len) : setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, a, len);
}

int stack_listen(void) { return listen(fd, 1); }

int stack_accept(void)
{
	int accepted = accept(fd, NULL, NULL);

	if (accepted < 0)
		return -1;
	close(fd);
	fd = accepted;
	return 0;
}

int stack_connect(void *list, socklen_t len, int addresses)
{
	(void)addresses;
	return setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, list, len) < 0 ? -1 : 0;
}

ssize_t stack_send(const void *data, size_t len, uint16_t stream, uint16_t flags, uint32_t ppid, uint16_t policy, uint32_t value)
{
	struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = flags, .snd_ppid = htonl(ppid)};
	struct sctp_prinfo given_up = {.pr_policy = policy, .pr_value = value};
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof info) + CMSG_SPACE(sizeof given_up)]; } control = {.h = {
		.cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO, .cmsg_len = CMSG_LEN(sizeof info)}};
	struct iovec part = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	struct cmsghdr *next = CMSG_NXTHDR(&m, &control.h);

	memcpy(CMSG_DATA(&control.h), &info, sizeof info);
	if (policy != 0) {
		next->cmsg_level = IPPROTO_SCTP;
		next->cmsg_type = SCTP_PRINFO;
		next->cmsg_len = CMSG_LEN(sizeof given_up);
		memcpy(CMSG_DATA(next), &given_up, sizeof given_up);
	} else {
		m.msg_controllen = CMSG_SPACE(sizeof info);
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

ssize_t stack_receive(void *b, size_t room, struct sctp_rcvinfo *info, int *flags)
{
	union { struct cmsghdr h; char room[512]; } control;
	struct iovec part = {.iov_base = b, .iov_len = room};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(fd, &m, 0);

	*flags = m.msg_flags;
	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(info, CMSG_DATA(c), sizeof *info);
	return n;
}

/* stack_abort has close do it, so a thread that reads must not be waiting: the socket would stay open. */
int stack_abort(const char *reason)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int old = fd;

	(void)reason;
	if (setsockopt(old, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0)
		return -1;
	fd = -1;
	return close(old);
}

int stack_shutdown(void) { return shutdown(fd, SHUT_WR); }

const unsigned char *abort_causes(const struct sctp_assoc_change *c, size_t *len)
{
	*len = c->sac_length > sizeof *c ? c->sac_length - sizeof *c : 0;
	return *len >= 4 ? c->sac_info : NULL; /* the kernel leaves the header of the chunk out */
}

/* stack_counters reads those of the whole host, on which this is the only program that speaks SCTP. */
struct counters stack_counters(void)
{
	struct counters n = {0};
	char name[64];
	unsigned value;
	FILE *f = fopen("/proc/net/sctp/snmp", "r");

	while (f != NULL && fscanf(f, "%63s %u", name, &value) == 2) {
		if (strcmp(name, "SctpT3Retransmits") == 0 || strcmp(name, "SctpFastRetransmits") == 0)
			n.retransmitted += value;
		if (strcmp(name, "SctpFastRetransmits") == 0)
			n.fast = value;
		if (strcmp(name, "SctpT3RtxExpireds") == 0)
			n.timeouts = value;
		if (strcmp(name, "SctpOutOrderChunks") == 0)
			n.chunks_out += value;
		if (strcmp(name, "SctpOutUnorderChunks") == 0)
			n.chunks_out += value;
	}
	if (f != NULL)
		fclose(f);
	return n;
}

void stack_close(void) { close(fd); }
