// Echo is plain SCTP in a hundred lines: a server that sends each message back on the stream that
// it came by, and a client. docs/guide.md goes through it.
//
//	go run ./examples/echo -l
//	go run ./examples/echo 127.0.0.1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

const port = 7

func main() {
	listen := flag.Bool("l", false, "serve")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, flag.Arg(0)); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen bool, host string) error {
	if listen {
		link, err := udp.Open(udp.Config{}) // SCTP in UDP: no privilege needed
		if err != nil {
			return err
		}
		return serve(ctx, link, os.Stdout)
	}
	peer, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	link, err := udp.Open(udp.Config{Port: udp.AnyPort}) // the server may be on this host
	if err != nil {
		return err
	}
	return call(ctx, link, netip.AddrPortFrom(peer, port), os.Stdout)
}

func serve(ctx context.Context, link rawio.Link, out io.Writer) error {
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	l, err := t.Listen(port, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on port", port)
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go echo(c)
	}
}

// echo serves one association until it ends.
func echo(c *sctp.Conn) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	for {
		n, info, err := c.ReadMsg(buf)
		if errors.Is(err, io.EOF) {
			return // the peer has closed
		}
		if err == nil {
			_, err = c.WriteMsg(buf[:n], sctp.SendInfo{Stream: answerOn(c, info.Stream), PPID: info.PPID})
		}
		if err != nil {
			slog.Warn("client", "address", c.RemoteAddr(), "error", err)
			return
		}
	}
}

// answerOn returns the stream of an answer: that of the question, which a listener opens by
// default. A client that accepts fewer streams than it opens leaves some without a counterpart:
// those share what there are.
func answerOn(c *sctp.Conn, asked uint16) uint16 {
	return asked % uint16(c.Stats().OutStreams)
}

func call(ctx context.Context, link rawio.Link, server netip.AddrPort, out io.Writer) error {
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	c, err := t.Dial(ctx, server, nil)
	if err != nil {
		return err
	}
	words := []string{"ordered", "within", "a", "stream"}
	for i, w := range words {
		if _, err := c.WriteMsg([]byte(w), sctp.SendInfo{Stream: uint16(i % 2)}); err != nil {
			return err
		}
	}
	buf := make([]byte, 1500)
	for range words {
		n, info, err := c.ReadMsg(buf)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "stream %d: %q\n", info.Stream, buf[:n]) // %q, as a terminal obeys what the peer may have sent
	}
	return c.Close()
}
