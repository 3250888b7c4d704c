/* The socket of libusrsctp. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stack.h"

static struct socket *so;

static void debug(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

int stack_socket(int family, uint16_t udp_port)
{
	usrsctp_init(udp_port, NULL, debug);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	so = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	return so == NULL ? -1 : 0;
}

int stack_set(int level, int name, const void *value, socklen_t len)
{
	return usrsctp_setsockopt(so, level, name, value, len);
}

int stack_bind(union address *a, socklen_t len, int first)
{
	return first ? usrsctp_bind(so, &a->sa, len) : usrsctp_bindx(so, &a->sa, 1, SCTP_BINDX_ADD_ADDR);
}

int stack_listen(void) { return usrsctp_listen(so, 1); }

int stack_accept(void)
{
	so = usrsctp_accept(so, NULL, NULL);
	return so == NULL ? -1 : 0;
}

int stack_connect(void *list, socklen_t len, int addresses)
{
	(void)len;
	return usrsctp_connectx(so, list, addresses, NULL);
}

ssize_t stack_send(const void *data, size_t len, uint16_t stream, uint16_t flags, uint32_t ppid, uint16_t policy, uint32_t value)
{
	struct sctp_sendv_spa info = {.sendv_flags = SCTP_SEND_SNDINFO_VALID,
		.sendv_sndinfo = {.snd_sid = stream, .snd_flags = flags, .snd_ppid = htonl(ppid)}};

	if (policy != 0) {
		info.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		info.sendv_prinfo.pr_policy = policy;
		info.sendv_prinfo.pr_value = value;
	}
	return usrsctp_sendv(so, data, len, NULL, 0, &info, sizeof info, SCTP_SENDV_SPA, 0);
}

ssize_t stack_receive(void *b, size_t room, struct sctp_rcvinfo *info, int *flags)
{
	socklen_t infolen = sizeof *info;
	unsigned type = 0;

	*flags = 0;
	return usrsctp_recvv(so, b, room, NULL, NULL, info, &infolen, &type, flags);
}

int stack_abort(const char *reason) { return stack_send(reason, strlen(reason), 0, SCTP_ABORT, 0, 0, 0) < 0 ? -1 : 0; }

int stack_shutdown(void) { return usrsctp_shutdown(so, SHUT_WR); }

const unsigned char *abort_causes(const struct sctp_assoc_change *c, size_t *len)
{
	size_t info = c->sac_length > sizeof *c ? c->sac_length - sizeof *c : 0;

	if (info < 4 || c->sac_info[0] != SCTP_ABORT_ASSOCIATION)
		return NULL;
	*len = info - 4;
	return c->sac_info + 4;
}

struct counters stack_counters(void)
{
	struct sctpstat s;

	usrsctp_get_stat(&s);
	return (struct counters){s.sctps_senddata, s.sctps_sendretransdata, s.sctps_sendfastretrans, s.sctps_timodata, s.sctps_recvdupdata};
}

void stack_close(void) { usrsctp_close(so); }
