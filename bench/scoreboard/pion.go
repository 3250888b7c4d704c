package main

import (
	"io"
	"net"
	"net/netip"

	"github.com/pion/logging"
	pion "github.com/pion/sctp"
)

// pionMTU is the longest SCTP packet in UDP that an IP MTU of 1500 octets takes.
const pionMTU = 1500 - 20 - 8

// markedConn is an SCTP association whose messages end with one of a single octet.
type markedConn struct {
	read  func([]byte) (int, error)
	write func([]byte) (int, error)
}

func (m markedConn) send(b []byte) error {
	_, err := m.write(b)
	return err
}

func (m markedConn) receive(b []byte) (int, error) {
	n, err := m.read(b)
	if err == nil && n == 1 {
		err = io.EOF
	}
	return n, err
}

func (m markedConn) finish() error { return m.send([]byte{0}) }

// playPion measures pion/sctp over a connected UDP socket.
func playPion(e *end, out io.Writer) error {
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.Local, e.localUDP())),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.Remote, e.remoteUDP())))
	if err != nil {
		return err
	}
	for _, set := range []func(int) error{conn.SetReadBuffer, conn.SetWriteBuffer} {
		if err := set(sctpBuffer); err != nil {
			return err
		}
	}
	cfg := pion.Config{
		NetConn: conn, LoggerFactory: logging.NewDefaultLoggerFactory(), BlockWrite: true, MTU: pionMTU,
		MaxReceiveBufferSize: sctpBuffer, MaxMessageSize: sctpBuffer,
	}
	s, err := pionStream(e, cfg, out)
	if err != nil {
		return err
	}
	return playMessages(e, markedConn{s.Read, s.Write}, out, func(*report) {})
}

func pionStream(e *end, cfg pion.Config, out io.Writer) (*pion.Stream, error) {
	if e.Server {
		if err := sayReady(out); err != nil {
			return nil, err
		}
		a, err := pion.ServerWithOptions(cfg)
		if err != nil {
			return nil, err
		}
		return a.AcceptStream()
	}
	a, err := pion.ClientWithOptions(cfg)
	if err != nil {
		return nil, err
	}
	return a.OpenStream(0, pion.PayloadTypeWebRTCBinary)
}
