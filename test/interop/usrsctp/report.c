#include "report.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void line(const char *format, ...)
{
	char b[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(b, sizeof b, format, args);
	va_end(args);
	printf("%s\n", b);
	fflush(stdout);
}

/* reason_of finds the text of a User-Initiated Abort (RFC 9260 section 3.3.10.12) in an ABORT chunk. */
static void reason_of(const unsigned char *chunk, size_t len, char *text, size_t room)
{
	size_t at = 4;

	*text = 0;
	while (at + 4 <= len) {
		unsigned code = (unsigned)chunk[at] << 8 | chunk[at + 1], size = (unsigned)chunk[at + 2] << 8 | chunk[at + 3];
		if (size < 4 || size > len - at)
			return;
		if (code == 12) {
			snprintf(text, room, "%.*s", (int)(size - 4), (const char *)chunk + at + 4);
			return;
		}
		snprintf(text, room, "cause %u", code);
		at += (size + 3) & ~3u;
	}
}

static int assoc_change(const struct sctp_assoc_change *c)
{
	size_t info = c->sac_length > sizeof *c ? c->sac_length - sizeof *c : 0;
	char text[256];

	switch (c->sac_state) {
	case SCTP_COMM_UP:
		line("up in=%u out=%u", c->sac_inbound_streams, c->sac_outbound_streams);
		break;
	case SCTP_RESTART:
		line("restart in=%u out=%u", c->sac_inbound_streams, c->sac_outbound_streams);
		break;
	case SCTP_SHUTDOWN_COMP:
		line("end shutdown");
		break;
	case SCTP_COMM_LOST:
		if (info >= 4 && c->sac_info[0] == SCTP_ABORT_ASSOCIATION) {
			reason_of(c->sac_info, info, text, sizeof text);
			line("end abort by=peer reason=\"%s\"", text);
		} else {
			line("end lost error=%u", c->sac_error);
		}
		break;
	case SCTP_CANT_STR_ASSOC:
		line("end refused error=%u", c->sac_error);
		break;
	}
	return -(int)c->sac_state;
}

static const char *address(const struct sockaddr_storage *a, char *b, socklen_t room)
{
	const void *at = a->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)a)->sin_addr
	                                         : (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;
	const char *s = inet_ntop(a->ss_family, at, b, room);

	return s != NULL ? s : "?";
}

int notification(const union sctp_notification *n, size_t len)
{
	static const char *const states[] = {"?", "available", "unreachable", "removed", "added", "primary", "confirmed"};
	char b[INET6_ADDRSTRLEN];

	if (len < sizeof n->sn_header || n->sn_header.sn_length != len)
		return 0;
	switch (n->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		return assoc_change(&n->sn_assoc_change);
	case SCTP_PEER_ADDR_CHANGE: {
		uint32_t s = n->sn_paddr_change.spc_state;
		line("address %s %s", address(&n->sn_paddr_change.spc_aaddr, b, sizeof b), states[s < 7 ? s : 0]);
		break;
	}
	case SCTP_ADAPTATION_INDICATION:
		line("adaptation 0x%08x", n->sn_adaptation_event.sai_adaptation_ind);
		break;
	case SCTP_SHUTDOWN_EVENT:
		line("peer-shutdown");
		break;
	case SCTP_REMOTE_ERROR:
		line("peer-error cause=%u", n->sn_remote_error.sre_error);
		break;
	}
	return n->sn_header.sn_type;
}
