package main

import (
	"io"
	"net"
	"net/netip"
)

const tcpPort = 5001

// tcpMessages are messages of one size over a stream: their boundaries cost nothing.
type tcpMessages struct{ *net.TCPConn }

func (m tcpMessages) send(b []byte) error {
	_, err := m.Write(b)
	return err
}

func (m tcpMessages) receive(b []byte) (int, error) { return io.ReadFull(m, b) }

func (m tcpMessages) finish() error { return m.CloseWrite() }

// playTCP measures Go's net package.
func playTCP(e *end, out io.Writer) error {
	c, err := dialTCP(e, out)
	if err != nil {
		return err
	}
	return playMessages(e, tcpMessages{c}, out, func(*report) {})
}

func dialTCP(e *end, out io.Writer) (*net.TCPConn, error) {
	if !e.Server {
		return net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.Remote, tcpPort)))
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.Local, tcpPort)))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if err := sayReady(out); err != nil {
		return nil, err
	}
	return l.AcceptTCP()
}
