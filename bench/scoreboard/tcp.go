package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/internal/cli"
)

const tcpPort = 5001

// tcpStream is a connection of TCP, or of TLS over it.
type tcpStream interface {
	net.Conn
	CloseWrite() error
}

// tcpMessages are messages of one size over a stream: their boundaries cost nothing.
type tcpMessages struct{ tcpStream }

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
	var over tcpStream = c
	if e.Encrypted {
		if over, err = encryptTCP(e, c); err != nil {
			return err
		}
	}
	return playMessages(e, tcpMessages{over}, out, func(*report) {})
}

// encryptTCP puts TLS over a connection, as the flag of ddpbench does.
func encryptTCP(e *end, c net.Conn) (*tls.Conn, error) {
	var f cli.TLSFlags
	fs := cli.NewFlags("scoreboard")
	f.Add(fs)
	if err := fs.Parse([]string{"--insecure-self-signed"}); err != nil {
		return nil, err
	}
	if err := f.Open("scoreboard", false, io.Discard); err != nil {
		return nil, err
	}
	cfg := f.Config("")
	cfg.MinVersion, cfg.ClientAuth = tls.VersionTLS13, tls.RequireAnyClientCert
	over := tls.Client(c, cfg)
	if e.Server {
		over = tls.Server(c, cfg)
	}
	return over, over.Handshake()
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
