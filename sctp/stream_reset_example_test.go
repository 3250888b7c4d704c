package sctp_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// A stream is used for one file after the other, and begins anew for each. The peer's program sees
// that by the event.
func ExampleConn_ResetStreams() {
	a, b, err := mem.Pair(mem.Options{})
	check(err)
	server, err := sctp.NewTransport(a, nil)
	check(err)
	defer server.Close()
	client, err := sctp.NewTransport(b, nil)
	check(err)
	defer client.Close()

	ctx := context.Background()
	l, err := server.Listen(7, &sctp.Config{StreamReset: sctp.AllowStreamReset, Events: 16})
	check(err)
	c, err := client.Dial(ctx, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), 7),
		&sctp.Config{StreamReset: sctp.OfferStreamReset})
	check(err)
	s, err := l.Accept(ctx)
	check(err)

	for _, file := range []string{"a", "b"} {
		_, err = c.WriteMsg([]byte("file "+file), sctp.SendInfo{Stream: 3})
		check(err)
		check(c.ResetStreams(ctx, sctp.Outgoing, 3))
		buf := make([]byte, 100)
		n, info, err := s.ReadMsg(buf)
		check(err)
		fmt.Printf("%s on stream %d\n", buf[:n], info.Stream)
		for ev, err := s.NextEvent(ctx); ; ev, err = s.NextEvent(ctx) {
			check(err)
			if ev.Kind == sctp.EventStreamsReset {
				fmt.Println("reset:", ev.Change.Streams)
				break
			}
		}
	}
	// Output:
	// file a on stream 3
	// reset: [3]
	// file b on stream 3
	// reset: [3]
}
