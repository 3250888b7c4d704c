package main

import (
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rawio"
)

// openLink opens the link.
func (o *options) openLink() (rawio.Link, error) {
	f := cli.LinkFlags{Kind: "raw"}
	if len(o.local) == 1 {
		f.Local = o.local[0]
	}
	if o.udp {
		f.Kind, f.UDPPort = "udp", o.udpPort
	}
	return f.Open(o.server)
}
