package main

import (
	"context"
	"io"
	"net/netip"

	"github.com/rddp-go/rddp/sctp"
)

// sctpBuffer is the length in octets of the buffers of an association, ours and pion's: room for a
// message of 1 MiB while others are on their way.
const sctpBuffer = 4 << 20

const sctpPort = 5001

// playSCTP measures ordinary messages through sctp.Conn.
func playSCTP(e *end, out io.Writer) error {
	link, err := e.openLink()
	if err != nil {
		return err
	}
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	c, err := sctpConn(e, t, out)
	if err != nil {
		return err
	}
	m := markedConn{
		read:  func(b []byte) (int, error) { n, _, err := c.ReadMsg(b); return n, err },
		write: func(b []byte) (int, error) { return c.WriteMsg(b, sctp.SendInfo{}) },
	}
	return playMessages(e, m, out, func(r *report) { countCalls(link, r) })
}

func sctpConn(e *end, t *sctp.Transport, out io.Writer) (*sctp.Conn, error) {
	cfg := &sctp.Config{SendBuffer: sctpBuffer, RecvBuffer: sctpBuffer}
	if !e.Server {
		return t.Dial(context.Background(), netip.AddrPortFrom(e.Remote, sctpPort), cfg)
	}
	l, err := t.Listen(sctpPort, cfg)
	if err != nil {
		return nil, err
	}
	if err := sayReady(out); err != nil {
		return nil, err
	}
	return l.Accept(context.Background())
}
