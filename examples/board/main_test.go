package main

import (
	"context"
	"io"
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

func Example() {
	a, b, _ := mem.Pair(mem.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ready, said := io.Pipe()
	go func() { _ = serve(ctx, a, said) }()
	_, _ = ready.Read(make([]byte, 100)) // it listens
	dev, _ := rdma.NewDevice(b, nil)
	defer dev.Close()
	server := netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), rdma.DefaultPort)
	_ = add(ctx, dev, server, "buy milk", os.Stdout)
	_ = add(ctx, dev, server, "and bread", os.Stdout)
	// Output:
	// 1. buy milk
	// 1. buy milk
	// 2. and bread
}
