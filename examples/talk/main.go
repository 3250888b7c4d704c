// Talk is the least there is to SCTP: a server that sends a message back, and a client, over
// whatever link there is.
//
//	go run ./examples/talk -l :5000
//	go run ./examples/talk host.example:5000
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rddp-go/rddp/sctp"
)

func main() {
	server := flag.Bool("l", false, "serve")
	flag.Parse()
	var err error
	if address := flag.Arg(0); *server {
		if err = listen(address); err == nil {
			select {}
		}
	} else {
		err = call(context.Background(), address, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1)
	}
}

func listen(address string) error {
	l, err := sctp.Listen("sctp", address)
	if err != nil {
		return err
	}
	go serve(l) // c, err := l.Accept(ctx)
	return nil
}

func serve(l *sctp.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go answer(c)
	}
}

func answer(c *sctp.Conn) {
	defer c.Close()
	buf := make([]byte, 1500)
	for {
		n, info, err := c.ReadMsg(buf)
		if err != nil {
			return
		}
		on := info.Stream % uint16(c.Stats().OutStreams) // as the client may accept fewer streams than it opens
		if _, err := c.WriteMsg(buf[:n], sctp.SendInfo{Stream: on}); err != nil {
			return
		}
	}
}

func call(ctx context.Context, address string, out io.Writer) error {
	c, err := sctp.Dial(ctx, "sctp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.WriteMsg([]byte("hello"), sctp.SendInfo{Stream: 3}); err != nil {
		return err
	}
	buf := make([]byte, 1500)
	n, info, err := c.ReadMsg(buf)
	if err != nil {
		return err
	}
	// %q, as a terminal obeys what the peer may have sent
	_, err = fmt.Fprintf(out, "%q on stream %d\n", buf[:n], info.Stream)
	return err
}
