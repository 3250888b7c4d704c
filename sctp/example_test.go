package sctp_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// An echo over one association.
func Example() {
	a, b, err := mem.Pair(mem.Options{})
	check(err)
	server, err := sctp.NewTransport(a, nil)
	check(err)
	defer server.Close()
	client, err := sctp.NewTransport(b, nil)
	check(err)
	defer client.Close()

	ctx := context.Background()
	l, err := server.Listen(7, nil)
	check(err)
	go func() {
		c, err := l.Accept(ctx)
		check(err)
		buf := make([]byte, 1500)
		n, info, err := c.ReadMsg(buf)
		check(err)
		_, err = c.WriteMsg(buf[:n], sctp.SendInfo{Stream: info.Stream, PPID: info.PPID})
		check(err)
	}()

	c, err := client.Dial(ctx, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), 7), nil)
	check(err)
	_, err = c.WriteMsg([]byte("hello"), sctp.SendInfo{Stream: 3})
	check(err)
	buf := make([]byte, 1500)
	n, info, err := c.ReadMsg(buf)
	check(err)
	fmt.Printf("%s on stream %d\n", buf[:n], info.Stream)
	check(c.Close())
	// Output: hello on stream 3
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
