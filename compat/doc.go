// Package compat is the kernel's SCTP socket of the one-to-one style (RFC 6458 section 4) over this
// stack: with its calls, its options and notifications octet by octet, and its bare errnos. It is
// what the modules in compat/ishidawataru and compat/free5gc have in common, which stand for
// github.com/ishidawataru/sctp and github.com/free5gc/sctp; a program may import it by name for
// what their names do not reach: [Use], [NewSocket], [Find]. New programs are better served by
// package sctp.
//
// Where it differs from Linux:
//
//   - Close waits up to a second, or for as long as SO_LINGER says, for the peer to have everything: this stack ends with the process.
//     Sockets that are closed together, or one after the other, have that second once, and each four round trips at least.
//   - The port of a listener can be listened on again when it is closed, with SO_REUSEADDR or without.
//   - Deadlines work.
//   - SCTP_EOF on an empty message begins a shutdown, under the name's own value in both packages (16) as well as under Linux's (0x200).
//   - sinfo_cumtsn is the cumulative TSN at the time of the read, for ordered messages too (RFC 6458 section 5.3.2).
//   - SCTP_RECVRCVINFO and SCTP_RECVNXTINFO fail by ENOPROTOOPT: what a read tells is an [SndRcvInfo].
//   - SO_RCVBUF and SO_SNDBUF begin at 1 MiB and grow with the path if they are not set.
//   - The descriptor of a socket is that of a UDP socket which carries its options at level SOL_SOCKET, and nothing else: it cannot be
//     polled or read, and a system call that sets an option at level SOL_SCTP fails; Setsockopt here does not.
package compat

import (
	"fmt"
	"os"
)

// Use leaves one kind of link, "raw", "udp" or "tun" (with the addresses in RDDP_TUN), to what is
// opened from now on, as the environment variable RDDP_LINK does; "" leaves raw and udp. Without it
// a listener serves both where it may, and who dials tries both, UDP first to a program of this
// host that listens by it.
func Use(link string) error {
	switch link {
	case "", "raw", "udp", "tun":
		return os.Setenv("RDDP_LINK", link)
	}
	return fmt.Errorf("compat: the link is %q; it may be raw, udp or tun", link)
}
