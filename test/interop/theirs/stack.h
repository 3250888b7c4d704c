/* One socket of an SCTP that is not ours: libusrsctp's (usrsctp.c), or the Linux kernel's (linux.c).
 * Each call returns what the socket call of the same name does, and sets errno. */
#ifndef STACK_H
#define STACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <netinet/in.h>
#ifdef LINUX_SCTP
#include <linux/sctp.h>
#define STACK_SCHEDULER SCTP_STREAM_SCHEDULER
#define STACK_SCHEDULER_VALUE SCTP_STREAM_SCHEDULER_VALUE
#define STACK_SCHEDULERS {SCTP_SS_DEFAULT, SCTP_SS_FCFS, SCTP_SS_RR, SCTP_SS_PRIO} /* by enum scheduler */
#define STACK_POLICIES {SCTP_PR_SCTP_RTX, SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_PRIO}     /* by enum policy */
#else
#include <usrsctp.h>
#define SCTP_INTERLEAVING_SUPPORTED 0x1206 /* which the header of 0.9.5.0 lacks */
#define STACK_SCHEDULER SCTP_PLUGGABLE_SS
#define STACK_SCHEDULER_VALUE SCTP_SS_VALUE
#define STACK_SCHEDULERS {SCTP_SS_DEFAULT, SCTP_SS_FIRST_COME, SCTP_SS_ROUND_ROBIN, SCTP_SS_PRIORITY}
#define STACK_POLICIES {SCTP_PR_SCTP_RTX, SCTP_PR_SCTP_TTL, SCTP_PR_SCTP_BUF}
#endif

#include "options.h"

struct counters {
	unsigned chunks_out, retransmitted, fast, timeouts, duplicates;
};

/* stack_socket makes the socket. In UDP it takes packets at udp_port, 0 for none. */
int stack_socket(int family, uint16_t udp_port);
int stack_set(int level, int name, const void *value, socklen_t len);
int stack_bind(union address *a, socklen_t len, int first); /* not first: one address more */
int stack_listen(void);
int stack_accept(void); /* the socket is then the accepted one */
int stack_connect(void *list, socklen_t len, int addresses);

/* stack_send sends a message, which may be given up: policy is of STACK_POLICIES, 0 for none. */
ssize_t stack_send(const void *data, size_t len, uint16_t stream, uint16_t flags, uint32_t ppid, uint16_t policy, uint32_t value);

/* stack_receive reads a message, a part of one (no MSG_EOR in flags) or a notification. */
ssize_t stack_receive(void *b, size_t room, struct sctp_rcvinfo *info, int *flags);
int stack_shutdown(void);

/* stack_abort ends the association by ABORT. Linux has no call for a reason of a one-to-one style socket. */
int stack_abort(const char *reason);

/* abort_causes returns the error causes of the peer's ABORT that a change of an association brings,
 * NULL when there was none. */
const unsigned char *abort_causes(const struct sctp_assoc_change *c, size_t *len);
struct counters stack_counters(void);
void stack_close(void);

#endif
