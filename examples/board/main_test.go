package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
)

// A client too many is refused, and ends nothing: when another has left there is room again. What a
// note has in it is shown and not obeyed.
func TestBoardOutlivesTooManyClients(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	ready, said := io.Pipe()
	go func() { served <- serve(ctx, a, said) }()
	_, _ = ready.Read(make([]byte, 100)) // it listens
	dev := must.Get(rdma.NewDevice(b, nil))(t)
	defer dev.Close()
	server, pd := netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), rdma.DefaultPort), dev.AllocPD()
	var held []*rdma.QP
	connect := func() error {
		qp, _, err := newQP(dev, pd, 1)
		must.OK(t, err)
		held = append(held, qp)
		_, err = qp.Connect(ctx, server, nil)
		return err
	}
	for range clients {
		must.OK(t, connect())
	}
	var rejected *llp.RejectedError
	must.That(t, errors.As(connect(), &rejected), "a client too many is not refused")
	must.OK(t, held[0].Disconnect(ctx))
	var out bytes.Buffer
	err := add(ctx, dev, server, "\x1b[2J", &out)
	for errors.As(err, &rejected) { // until the server has seen that the other has left
		err = add(ctx, dev, server, "\x1b[2J", &out)
	}
	check.That(t, err == nil && out.String() == "1. \"\\x1b[2J\"\n", "%q, %v", out.String(), err)
	stop()
	check.Error(t, "the server", <-served, context.Canceled)
}

// Over TCP nothing is different but the link, of which there is none.
func TestBoardOverTCP(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	ready, said := io.Pipe()
	go func() { served <- serve(ctx, must.Get(openLink(true, udp.Config{}))(t), said) }()
	_, _ = ready.Read(make([]byte, 100)) // it listens
	dev := must.Get(rdma.NewDevice(nil, nil))(t)
	defer dev.Close()
	var out bytes.Buffer
	must.OK(t, add(ctx, dev, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), rdma.DefaultPort), "buy milk", &out))
	check.Equal(t, "the board", out.String(), "1. \"buy milk\"\n")
	stop()
	check.Error(t, "the server", <-served, context.Canceled)
}

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
	// 1. "buy milk"
	// 1. "buy milk"
	// 2. "and bread"
}
