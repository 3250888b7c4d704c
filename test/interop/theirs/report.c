#include "report.h"

#include "resets.h"

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

/* reason_of finds the text of a User-Initiated Abort (RFC 9260 section 3.3.10.12) among error causes. */
static void reason_of(const unsigned char *causes, size_t len, char *text, size_t room)
{
	size_t at = 0;

	*text = 0;
	while (at + 4 <= len) {
		unsigned code = (unsigned)causes[at] << 8 | causes[at + 1], size = (unsigned)causes[at + 2] << 8 | causes[at + 3];
		if (size < 4 || size > len - at)
			return;
		if (code == 12) {
			snprintf(text, room, "%.*s", (int)(size - 4), (const char *)causes + at + 4);
			return;
		}
		snprintf(text, room, "cause %u", code);
		at += (size + 3) & ~3u;
	}
}

static int assoc_change(const struct sctp_assoc_change *c)
{
	const unsigned char *causes;
	size_t len = 0;
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
		causes = abort_causes(c, &len);
		if (causes != NULL) {
			reason_of(causes, len, text, sizeof text);
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

static const char *address_state(int s)
{
	switch (s) {
	case SCTP_ADDR_AVAILABLE: return "available";
	case SCTP_ADDR_UNREACHABLE: return "unreachable";
	case SCTP_ADDR_REMOVED: return "removed";
	case SCTP_ADDR_ADDED: return "added";
	case SCTP_ADDR_MADE_PRIM: return "primary";
	case SCTP_ADDR_CONFIRMED: return "confirmed";
	}
	return "?";
}

int notification(const union sctp_notification *n, size_t len)
{
	char b[INET6_ADDRSTRLEN];

	if (len < sizeof n->sn_header || n->sn_header.sn_length != len)
		return 0;
	switch (n->sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		return assoc_change(&n->sn_assoc_change);
	case SCTP_PEER_ADDR_CHANGE: {
		struct sockaddr_storage peer = n->sn_paddr_change.spc_aaddr; /* aligned, as in the packed structure it is not */
		line("address %s %s", address(&peer, b, sizeof b), address_state((int)n->sn_paddr_change.spc_state));
		break;
	}
	case SCTP_ADAPTATION_INDICATION:
		line("adaptation 0x%08x", n->sn_adaptation_event.sai_adaptation_ind);
		break;
	case SCTP_SHUTDOWN_EVENT:
		line("peer-shutdown");
		break;
	case SCTP_STREAM_RESET_EVENT:
	case SCTP_ASSOC_RESET_EVENT:
	case SCTP_STREAM_CHANGE_EVENT:
		reset_notification(n);
		break;
	case SCTP_REMOTE_ERROR:
		line("peer-error cause=%u", n->sn_remote_error.sre_error);
		break;
	}
	return n->sn_header.sn_type;
}
