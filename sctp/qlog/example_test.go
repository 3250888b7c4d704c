package qlog_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/qlog"
)

// A client traces its association into a file, which is then read.
func Example() {
	dir, err := os.MkdirTemp("", "qlog")
	check(err)
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "trace.sqlog")
	trace, err := qlog.Create(name, &qlog.Options{Vantage: "client"})
	check(err)

	a, b, err := mem.Pair(mem.Options{})
	check(err)
	server, err := sctp.NewTransport(a, nil)
	check(err)
	defer server.Close()
	_, err = server.Listen(7, nil)
	check(err)
	client, err := sctp.NewTransport(b, &sctp.TransportConfig{Tracer: trace.Tracer("client")})
	check(err)
	defer client.Close()
	c, err := client.Dial(context.Background(), netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), 7), nil)
	check(err)
	check(c.Close())
	check(trace.Close())

	f, err := os.Open(name)
	check(err)
	defer f.Close()
	head, _, err := qlog.Read(f, func(e *qlog.Record) error {
		if e.Name == qlog.NameStarted || e.Name == qlog.NameClosed {
			fmt.Println(e.Name)
		}
		return nil
	})
	check(err)
	fmt.Println(head.Trace.Vantage.Type)
	// Output:
	// sctp:association_started
	// sctp:association_closed
	// client
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
