// Echo is plain SCTP in few lines: a server that sends each message back on the stream that
// it came by, and a client. docs/guide.md goes through it.
//
//	go run ./examples/echo -l
//	go run ./examples/echo 127.0.0.1
//
// It takes the flags of ddpping that encrypt.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

const port = 7

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, pflag.ErrHelp) && ctx.Err() == nil {
		cli.PrintError(os.Stderr, "echo", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var encryption cli.TLSFlags
	flags := cli.NewFlags("echo")
	listen := flags.BoolP("listen", "l", false, "serve")
	encryption.Add(flags)
	if err := cli.Parse(flags, args, os.Stdout, "Usage: echo -l | ADDRESS"); err != nil {
		return err
	}
	if err := encryption.Open("echo", false, os.Stderr); err != nil {
		return err
	}
	if *listen {
		link, err := udp.Open(udp.Config{}) // SCTP in UDP: no privilege needed
		if err != nil {
			return err
		}
		return serve(ctx, link, &sctp.Config{TLS: encryption.Config("")}, os.Stdout)
	}
	peer, err := netip.ParseAddr(flags.Arg(0))
	if err != nil {
		return err
	}
	link, err := udp.Open(udp.Config{Port: udp.AnyPort}) // the server may be on this host
	if err != nil {
		return err
	}
	return call(ctx, link, netip.AddrPortFrom(peer, port), &sctp.Config{TLS: encryption.Config(peer.String())}, os.Stdout)
}

func serve(ctx context.Context, link rawio.Link, cfg *sctp.Config, out io.Writer) error {
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	l, err := t.Listen(port, cfg)
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

func call(ctx context.Context, link rawio.Link, server netip.AddrPort, cfg *sctp.Config, out io.Writer) error {
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	c, err := t.Dial(ctx, server, cfg)
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
