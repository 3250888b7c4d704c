#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>

#include "stack.h"

/* line prints one line of the report, at once. */
void line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* notification prints what a notification says and returns its type, or for a change of the
 * association the negative of its state. */
int notification(const union sctp_notification *n, size_t len);

#endif
