package main

import (
	"net/netip"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rawio"
)

// open opens the link. A client's transport picks its SCTP port itself; where the options name one,
// every other port is called taken.
func (o *options) open() (rawio.Link, error) {
	f := cli.LinkFlags{Kind: "raw", Local: o.local}
	if o.udp {
		f.Kind, f.UDPPort = "udp", o.udpPort
	}
	link, err := f.Open(o.server)
	if err != nil || o.server || o.localPort == 0 {
		return link, err
	}
	return &onePort{link, o.localPort}, nil
}

// onePort is a link on which only one SCTP port is free.
type onePort struct {
	rawio.Link
	port uint16
}

func (l *onePort) BindPort(port uint16) error {
	if port != l.port {
		return rawio.ErrPortInUse
	}
	if b, ok := l.Link.(rawio.PortBinder); ok {
		return b.BindPort(port)
	}
	return nil
}

func (l *onePort) UnbindPort(port uint16) {
	if b, ok := l.Link.(rawio.PortBinder); ok {
		b.UnbindPort(port)
	}
}

func (l *onePort) LocalAddrs() []netip.AddrPort { return l.Link.(rawio.Addresser).LocalAddrs() }
