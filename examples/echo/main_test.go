package main

import (
	"context"
	"io"
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/rawio/mem"
)

func Example() {
	a, b, _ := mem.Pair(mem.Options{})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	ready, said := io.Pipe()
	go func() { served <- serve(ctx, a, said) }()
	_, _ = ready.Read(make([]byte, 100)) // it listens
	_ = call(ctx, b, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), os.Stdout)
	stop()
	<-served
	// Unordered output:
	// stream 0: ordered
	// stream 1: within
	// stream 0: a
	// stream 1: stream
}
