package main

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// runBench runs the command and returns what it says.
func runBench(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runProgram(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

// lab is a service and a client's device, joined by memory.
type lab struct {
	dev    *rdma.Device
	server *service
	to     netip.AddrPort
	out    *buffer // what the server prints
}

// buffer is what several goroutines print to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newLab(t *testing.T, cfg ...*rdma.Config) *lab {
	t.Helper()
	cfg = append(cfg, nil, nil) // the client's, the server's
	a, b := mempair.New(t, mem.Options{})
	to := netip.AddrPortFrom(b.LocalAddrs()[0].Addr(), rdma.DefaultPort)
	dev := must.Get(rdma.NewDevice(a, cfg[0]))(t)
	serving := must.Get(rdma.NewDevice(b, cfg[1]))(t)
	l := must.Get(serving.Listen(rdma.DefaultPort))(t)
	x := &lab{dev: dev, to: to, out: &buffer{}}
	x.server = newService(serving, newReporter(&options{}, x.out, "mem"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { x.server.acceptRequests(ctx, l); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
		dev.Close()
		serving.Close()
	})
	return x
}

// newClient is a client with the command line given.
func (x *lab) newClient(t *testing.T, args ...string) *client {
	t.Helper()
	o := must.Get(parseArgs(append(args, "10.0.0.1"), io.Discard))(t)
	return &client{options: o, dev: x.dev, serverAddr: x.to, reporter: newReporter(o, io.Discard, "mem")}
}

// connectedClient returns a client and its engine, whose QPs are connected.
func (x *lab) connectedClient(t *testing.T, args ...string) (*client, *engine) {
	t.Helper()
	c := x.newClient(t, args...)
	c.params.seed = 1
	e := must.Get(newEngine(c.dev, c.params, true))(t)
	t.Cleanup(e.close)
	must.OK(t, e.openNotesRegion())
	must.OK(t, c.connectLanes(t.Context(), e, randomSeed()))
	return c, e
}

// waitUntil waits for what another goroutine is about to bring about.
func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		must.That(t, !time.Now().After(limit), "never: %s", what)
	}
}
