package main

import (
	"net"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
)

// openLink opens the link.
func (o *options) openLink() (rawio.Link, error) {
	if o.connected {
		return o.openConnected()
	}
	f := cli.LinkFlags{Kind: "raw"}
	if len(o.local) == 1 {
		f.Local = o.local[0]
	}
	if o.udp {
		f.Kind, f.UDPPort = "udp", o.udpPort
	}
	return f.Open(o.server)
}

// openConnected opens a link over a connected UDP socket. For a checksum of 0 it claims what DTLS does
// about errors, so that such packets can be captured.
func (o *options) openConnected() (rawio.Link, error) {
	c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(o.local[0]), Port: o.udpPort},
		&net.UDPAddr{IP: net.ParseIP(o.peer[0]), Port: int(o.encapPort)})
	if err != nil {
		return nil, err
	}
	o.local, o.peer = nil, []string{netconn.PeerAddr.String()}
	var cfg netconn.Config
	if o.zeroChecksum {
		cfg.ErrorDetection = rawio.DTLSErrorDetection
	}
	return netconn.New(c, &cfg)
}
