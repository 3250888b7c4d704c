package main

import (
	"context"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// A client is answered on the stream that it asks by, however many it has opened, and one that
// accepts fewer than it opens on one that there is.
func TestEachStreamIsAnswered(t *testing.T) {
	for _, row := range []struct {
		name        string
		cfg         *sctp.Config
		ask, answer uint16
	}{
		{"the last by default", nil, 9, 9},
		{"the eleventh", &sctp.Config{OutStreams: 64}, 10, 10},
		{"the last of many", &sctp.Config{OutStreams: 5000}, 4999, 4999},
		{"one without a counterpart", &sctp.Config{OutStreams: 64, InStreams: 7}, 15, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := must.Two(mem.Pair(mem.Options{}))(t)
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			ready, said := io.Pipe()
			go func() { served <- serve(ctx, a, nil, said) }()
			_, _ = ready.Read(make([]byte, 100)) // it listens
			tr := must.Get(sctp.NewTransport(b, nil))(t)
			defer tr.Close()
			c := must.Get(tr.Dial(ctx, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), row.cfg))(t)
			must.Get(c.WriteMsg([]byte("question"), sctp.SendInfo{Stream: row.ask}))(t)
			buf := make([]byte, 100)
			n, info, err := c.ReadMsg(buf)
			check.That(t, err == nil && info.Stream == row.answer && strings.HasPrefix(string(buf[:n]), "question"),
				"asked on %d, answered on %d: %q, %v", row.ask, info.Stream, buf[:n], err)
			stop()
			<-served
		})
	}
}

func Example() {
	a, b, _ := mem.Pair(mem.Options{})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	ready, said := io.Pipe()
	go func() { served <- serve(ctx, a, nil, said) }()
	_, _ = ready.Read(make([]byte, 100)) // it listens
	_ = call(ctx, b, netip.AddrPortFrom(a.LocalAddrs()[0].Addr(), port), nil, os.Stdout)
	stop()
	<-served
	// Unordered output:
	// stream 0: "ordered"
	// stream 1: "within"
	// stream 0: "a"
	// stream 1: "stream"
}
