// Noddp accepts SCTP associations without announcing the adaptation layer of RFC 5043, as a server
// of something else does. The tools have to notice (test/netns.sh).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "noddp:", err)
		os.Exit(2)
	}
}

func serve() error {
	link, err := raw.Open(raw.Config{})
	if err != nil {
		return err
	}
	t, err := sctp.NewTransport(link, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	l, err := t.Listen(rdma.DefaultPort, nil)
	if err != nil {
		return err
	}
	fmt.Println("noddp: serving")
	for {
		if _, err := l.Accept(context.Background()); err != nil {
			return err
		}
	}
}
