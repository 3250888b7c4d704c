// Package sctp is SCTP (RFC 9260) in userspace, for programs on systems whose kernel has none.
//
//   - In: messages of a program ([Conn.WriteMsg]), and packets of a link (package rawio).
//   - Out: messages with their boundaries, over numbered streams ([Conn.ReadMsg]), and packets.
//   - Invariant: the goroutine that reads the link never waits for an association.
//   - Read first: [Dial], [Listen], [Conn]. Of the code: receive.go, conn.go, transport.go.
//
// # Dial and Listen
//
// They are as those of package net, over links that they open themselves.
//
//	l, err := sctp.Listen("sctp", ":5000")
//	c, err := sctp.Dial(ctx, "sctp", "host.example:5000")
//
// Programs that want to say more about the link use a [Transport]. It runs associations over one
// link of package rawio: raw IP, UDP encapsulation, TUN, or memory. [Transport.Listen] and
// [Transport.Dial] give a [Conn], one association. Its messages keep their boundaries and go over
// numbered streams, each ordered in itself.
//
//	link, err := udp.Open(udp.Config{})
//	t, err := sctp.NewTransport(link, nil)
//	c, err := t.Dial(ctx, netip.MustParseAddrPort("192.0.2.1:5000"), nil)
//	_, err = c.WriteMsg([]byte("hello"), sctp.SendInfo{Stream: 3})
//	n, info, err := c.ReadMsg(buf)
//
// [Conn.StreamConn] gives an association as a net.Conn that carries a stream of octets, as TCP
// does. [Conn.MessageConn] gives one that carries a message a call. [Listener.StreamListener] and
// [Listener.MessageListener] accept them. [Conn.Stream] gives one of several streams as a net.Conn.
// A message that is longer than buf, or than the receive buffer, is read in pieces. [SendInfo] may
// limit for how long a message is worth sending.
//
// With several addresses in Config.LocalAddrs, or of the peer, an association outlives the failure
// of a network. Data moves to another path, and returns to the primary one when that recovers.
// [Conn.Paths] shows the paths. [Conn.NextEvent] reports what happens to them and to the
// association.
//
// [Transport.OpenSocket] gives the one-to-many style: one port, messages to and from any number of
// peers.
//
// # What differs from package net
//
// SCTP has no half-open state (RFC 9260 section 1.5.1), so there is no CloseWrite. [Conn.Close]
// ends both directions: it delivers what was written and drops what was not read. Close waits until
// the peer agrees, because the stack ends with the process. Reads return io.EOF after a graceful
// end by the peer, and the reason after any other. Reasons are [ErrShutdown] and those below it, an
// [AbortError] and its like, and for Dial a [DialError]. Deadlines, net.ErrClosed and
// os.ErrDeadlineExceeded are as in package net. [Listener.Accept] takes a context and returns a
// *Conn. The forms that are a net.Conn return errors in a *net.OpError. Every error matches, by
// errors.Is, what package net would return over TCP. That includes ECONNREFUSED, ECONNRESET,
// ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRINUSE and EPIPE of package syscall. There is no
// SyscallConn: no file descriptor belongs to an association.
//
// The protocol itself is in the sans-IO packages assoc and endpoint, whose names a program need not
// know. This package drives them with one receive goroutine and one timer per Transport, and the
// callers' own goroutines. A protocol above that wants each DATA chunk at arrival, such as DDP,
// implements the interfaces of package upper, which programs have no use for.
package sctp
