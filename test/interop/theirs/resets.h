/* Requests to reset and add streams (RFC 6525), and what the stack says of them. */
#ifndef RESETS_H
#define RESETS_H

#include "stack.h"

/* enable_resets offers them, and allows the peer all. */
void enable_resets(void);

/* ask_if_due asks the peer for what --resets names, one after the other at even distances among the
 * messages, before message i is sent. It waits for the answer. */
void ask_if_due(const struct options *o, unsigned i);

/* reset_notification prints a notification about streams. */
void reset_notification(const union sctp_notification *n);

#endif
