package main

import (
	"context"
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/rawio/mem"
)

func Example() {
	a, b, _ := mem.Pair(mem.Options{})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- serve(ctx, a) }()
	_ = call(ctx, b, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), os.Stdout)
	stop()
	<-served
	// Unordered output:
	// stream 0: ordered
	// stream 1: within
	// stream 0: a
	// stream 1: stream
}
