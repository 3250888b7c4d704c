// Package compat is the kernel's SCTP socket of the one-to-one style (RFC 6458 section 4) over this
// stack. New programs are better served by package sctp.
//
//   - In: the kernel's calls and options, octet by octet.
//   - Out: the kernel's notifications, octet by octet, and bare errnos.
//   - Invariant: a program that works on Linux's SCTP works here, but for the list below.
//   - Read first: [NewSocket]; [Use] and [Find] are for what no socket call says.
//
// The modules in compat/ishidawataru and compat/free5gc share it. They replace
// github.com/ishidawataru/sctp and github.com/free5gc/sctp.
//
// # Where it differs from Linux
//
//   - Close waits for the peer to have everything, because this stack ends with the process. It
//     waits up to a second, or for as long as SO_LINGER says. Sockets that are closed together, or
//     one after the other, share that second. Each has four round trips at least.
//   - The port of a listener can be listened on again when it is closed, with SO_REUSEADDR or
//     without.
//   - Deadlines work.
//   - SCTP_EOF on an empty message begins a shutdown. It has the name's own value in both packages
//     (16), and Linux's (0x200) works too.
//   - sinfo_cumtsn is the cumulative TSN at the time of the read, for ordered messages too (RFC
//     6458 section 5.3.2).
//   - SCTP_RECVRCVINFO and SCTP_RECVNXTINFO fail with ENOPROTOOPT: what a read tells is an
//     [SndRcvInfo].
//   - SCTP_RESET_STREAMS and SCTP_RESET_ASSOC wait for messages that are queued, where Linux's fail
//     with EAGAIN.
//   - SO_RCVBUF and SO_SNDBUF begin at 1 MiB and grow with the path if they are not set.
//   - The descriptor of a socket is that of a UDP socket. It carries the socket's options at level
//     SOL_SOCKET, and nothing else: it cannot be polled or read. A system call that sets an option
//     at level SOL_SCTP fails; Setsockopt here does not.
package compat

import (
	"fmt"
	"os"
)

// Use restricts sockets that are opened from now on to one kind of link. The link is "raw", "udp"
// or "tun" (with the addresses in RDDP_TUN), as in the environment variable RDDP_LINK. "" allows
// raw and udp. Without it a listener serves both where it may. A dialer tries both, UDP first for a
// program of this host that listens by UDP.
func Use(link string) error {
	switch link {
	case "", "raw", "udp", "tun":
		return os.Setenv("RDDP_LINK", link)
	}
	return fmt.Errorf("compat: the link is %q; it may be raw, udp or tun", link)
}
