package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/pion/logging"
	pion "github.com/pion/sctp"
	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/sched"
)

// stack makes the connections of a kind. Flow i is between the i-th addresses.
type stack interface {
	listen(flow int) (accept func() (conn, error), err error)
	dial(flow int) (conn, error)
	about() string // what is to be known of it, once it has run
}

// stackNames are all stacks, peers first; ours over either link with each controller.
var stackNames = func() []string {
	list := []string{"tcp-cubic", "tcp-bbr", "quic-go", "pion"}
	for _, link := range []string{"udp-", "raw-"} {
		for _, c := range slices.Sorted(maps.Keys(simulated.Controllers)) {
			list = append(list, link+c)
		}
	}
	return list
}()

// isOurs says whether a stack is this project's.
func isOurs(name string) bool {
	return strings.HasPrefix(name, "udp-") || strings.HasPrefix(name, "raw-")
}

func stackOf(e *end) (stack, error) {
	kind, control, _ := strings.Cut(e.Stack, "-")
	switch {
	case !slices.Contains(stackNames, e.Stack):
	case kind == "tcp":
		return &tcpStack{control: control}, nil
	case kind == "quic":
		return newQUIC()
	case kind == "pion":
		return pionStack{}, nil
	default:
		return &ourStack{link: kind, factory: simulated.Controllers[control]}, nil
	}
	return nil, fmt.Errorf("no stack %q; there are %s", e.Stack, strings.Join(stackNames, ", "))
}

const port = 5001

// Streams of octets.
type stream struct {
	net.Conn
	count func() int64
}

func (s stream) write(b []byte) error {
	_, err := s.Write(b)
	return err
}
func (s stream) read(b []byte) (int, error) { return s.Read(b) }
func (s stream) resent() int64              { return s.count() }

// noControl begins what is said where the kernel lacks a congestion control.
const noControl = "this kernel has no"

type tcpStack struct {
	control string
	version string
}

// setControl sets the congestion control of a socket.
func (s *tcpStack) setControl(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, s.control)
	}); e != nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("%s %s for TCP: %w", noControl, s.control, err)
	}
	return nil
}

func (s *tcpStack) listen(flow int) (func() (conn, error), error) {
	cfg := net.ListenConfig{Control: s.setControl}
	cfg.SetMultipathTCP(false)
	l, err := cfg.Listen(context.Background(), "tcp4", netip.AddrPortFrom(relay.Server(flow), port).String())
	if err != nil {
		return nil, err
	}
	return func() (conn, error) {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		return stream{c, func() int64 { return s.resent(c.(*net.TCPConn)) }}, nil
	}, nil
}

func (s *tcpStack) dial(flow int) (conn, error) {
	d := net.Dialer{Control: s.setControl,
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(relay.Client(flow), 0))}
	c, err := d.Dial("tcp4", netip.AddrPortFrom(relay.Server(flow), port).String())
	return stream{c, nil}, err
}

// resent reads how many segments the kernel has sent again, and which BBR it has: the one of 2016
// tells five words about itself, later ones more.
func (s *tcpStack) resent(c *net.TCPConn) (n int64) {
	n = -1
	raw, err := c.SyscallConn()
	if err != nil {
		return n
	}
	raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int64(info.Total_retrans)
		}
		if s.control != "bbr" {
			return
		}
		var info [64]uint32
		size := uint32(unsafe.Sizeof(info))
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_CC_INFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case e != 0:
			s.version = "a BBR that tells nothing of itself"
		case size <= 20:
			s.version = "BBR v1 (tells 5 words of itself, as mainline's)"
		default:
			s.version = fmt.Sprintf("a BBR later than v1 (tells %d words of itself)", size/4)
		}
	})
	return n
}

func (s *tcpStack) about() string { return s.version }

// QUIC.
type quicStack struct{ tls *tls.Config }

func newQUIC() (*quicStack, error) {
	os.Setenv("QUIC_GO_DISABLE_GSO", "true") // as for all here
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &quicStack{&tls.Config{NextProtos: []string{"bench"}, InsecureSkipVerify: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}, nil
}

type quicConn struct {
	c *quic.Conn
	*quic.Stream
}

func (q quicConn) write(b []byte) error {
	_, err := q.Write(b)
	return err
}
func (q quicConn) read(b []byte) (int, error) { return q.Read(b) }
func (q quicConn) resent() int64              { return int64(q.c.ConnectionStats().PacketsLost) }

func (s *quicStack) openSocket(a netip.Addr) (*net.UDPConn, error) {
	return net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port)))
}

func (s *quicStack) listen(flow int) (func() (conn, error), error) {
	sock, err := s.openSocket(relay.Server(flow))
	if err != nil {
		return nil, err
	}
	l, err := quic.Listen(sock, s.tls, nil)
	if err != nil {
		return nil, err
	}
	return func() (conn, error) {
		c, err := l.Accept(context.Background())
		if err != nil {
			return nil, err
		}
		st, err := c.AcceptStream(context.Background())
		return quicConn{c, st}, err
	}, nil
}

func (s *quicStack) dial(flow int) (conn, error) {
	sock, err := s.openSocket(relay.Client(flow))
	if err != nil {
		return nil, err
	}
	c, err := quic.Dial(context.Background(), sock,
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(relay.Server(flow), port)), s.tls, nil)
	if err != nil {
		return nil, err
	}
	st, err := c.OpenStreamSync(context.Background())
	return quicConn{c, st}, err
}

func (s *quicStack) about() string { return "" }

// pion/sctp over a connected UDP socket. It does not say what it has sent again.
type pionStack struct{}

type pionConn struct{ *pion.Stream }

func (p pionConn) write(b []byte) error {
	_, err := p.Write(b)
	return err
}
func (p pionConn) read(b []byte) (int, error) { return p.Read(b) }
func (p pionConn) resent() int64              { return -1 }

// pionMTU is the longest SCTP packet in UDP that the road takes.
const pionMTU = relay.MTU - 20 - 8

func (pionStack) newConfig(own, peer netip.Addr) (cfg pion.Config, err error) {
	sock, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, port)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, port)))
	return pion.Config{NetConn: sock, LoggerFactory: logging.NewDefaultLoggerFactory(), BlockWrite: true,
		MTU: pionMTU, MaxMessageSize: longestAnswer}, err
}

// listenAssoc and dialAssoc make an association of either end.
func (s pionStack) listenAssoc(flow int) (func() (*pion.Association, error), error) {
	cfg, err := s.newConfig(relay.Server(flow), relay.Client(flow))
	return func() (*pion.Association, error) { return pion.ServerWithOptions(cfg) }, err
}

func (s pionStack) dialAssoc(flow int) (*pion.Association, error) {
	cfg, err := s.newConfig(relay.Client(flow), relay.Server(flow))
	if err != nil {
		return nil, err
	}
	return pion.ClientWithOptions(cfg)
}

func (s pionStack) listen(flow int) (func() (conn, error), error) {
	accept, err := s.listenAssoc(flow)
	return func() (conn, error) {
		a, err := accept()
		if err != nil {
			return nil, err
		}
		st, err := a.AcceptStream()
		return pionConn{st}, err
	}, err
}

func (s pionStack) dial(flow int) (conn, error) {
	a, err := s.dialAssoc(flow)
	if err != nil {
		return nil, err
	}
	st, err := a.OpenStream(0, pion.PayloadTypeWebRTCBinary)
	return pionConn{st}, err
}

func (pionStack) about() string { return "" }

// pionStreams are two streams of an association. Messages of both come by one channel.
type pionStreams struct {
	streams [besideStreams]*pion.Stream
	arrived chan pionMessage
}

type pionMessage struct {
	stream int
	octets []byte
	err    error
}

func newPionStreams(open func() (*pion.Stream, error)) (streamsConn, error) {
	p := &pionStreams{arrived: make(chan pionMessage, 64)}
	for range p.streams {
		s, err := open()
		if err != nil {
			return nil, err
		}
		p.streams[s.StreamIdentifier()] = s
	}
	return p, nil
}

func (p *pionStreams) writeTo(stream int, b []byte) error {
	_, err := p.streams[stream].WriteSCTP(b, pion.PayloadTypeWebRTCBinary)
	return err
}

func (p *pionStreams) readAny(b []byte) (stream, n int, err error) {
	m := <-p.arrived
	return m.stream, copy(b, m.octets), m.err
}

// readStream brings what arrives on a stream.
func (p *pionStreams) readStream(id int) {
	b := make([]byte, longestAnswer)
	for {
		n, err := p.streams[id].Read(b)
		p.arrived <- pionMessage{id, bytes.Clone(b[:n]), err}
		if err != nil {
			return
		}
	}
}

func (s pionStack) listenStreams(flow int) (func() (streamsConn, error), error) {
	accept, err := s.listenAssoc(flow)
	return func() (streamsConn, error) {
		a, err := accept()
		if err != nil {
			return nil, err
		}
		return newPionStreams(a.AcceptStream)
	}, err
}

func (s pionStack) dialStreams(flow int) (streamsConn, error) {
	a, err := s.dialAssoc(flow)
	if err != nil {
		return nil, err
	}
	next := uint16(0)
	c, err := newPionStreams(func() (*pion.Stream, error) {
		s, err := a.OpenStream(next, pion.PayloadTypeWebRTCBinary)
		if err == nil {
			_, err = s.Write([]byte{0}) // so that the server hears of it
		}
		next++
		return s, err
	})
	if err != nil {
		return nil, err
	}
	for id := range besideStreams {
		go c.(*pionStreams).readStream(id)
	}
	return c, nil
}

// Ours, over UDP or raw, with the defaults.
type ourStack struct {
	link    string
	factory cc.Factory
}

// ourPort is another for each flow: raw sockets claim ports for the whole host.
func ourPort(flow int) uint16 { return port + uint16(flow) }

type ourConn struct{ *sctp.Conn }

func (c ourConn) write(b []byte) error {
	_, err := c.WriteMsg(b, sctp.SendInfo{})
	return err
}
func (c ourConn) read(b []byte) (int, error) {
	n, _, err := c.ReadMsg(b)
	return n, err
}
func (c ourConn) resent() int64 { return int64(c.Stats().Retransmits) }

func (s *ourStack) newTransport(a netip.Addr) (t *sctp.Transport, cfg *sctp.Config, err error) {
	var link rawio.Link
	if s.link == "udp" {
		link, err = udp.Open(udp.Config{Local: a, NoOffload: true})
	} else {
		link, err = raw.Open(raw.Config{Local: a})
	}
	if err != nil {
		return nil, nil, err
	}
	t, err = sctp.NewTransport(link, nil)
	return t, &sctp.Config{NewController: s.factory}, err
}

func (s *ourStack) listen(flow int) (func() (conn, error), error) {
	t, cfg, err := s.newTransport(relay.Server(flow))
	if err != nil {
		return nil, err
	}
	l, err := t.Listen(ourPort(flow), cfg)
	if err != nil {
		return nil, err
	}
	return func() (conn, error) {
		c, err := l.Accept(context.Background())
		return ourConn{c}, err
	}, nil
}

func (s *ourStack) dial(flow int) (conn, error) {
	t, cfg, err := s.newTransport(relay.Client(flow))
	if err != nil {
		return nil, err
	}
	c, err := t.Dial(context.Background(), netip.AddrPortFrom(relay.Server(flow), ourPort(flow)), cfg)
	return ourConn{c}, err
}

func (s *ourStack) about() string { return "" }

// ourStreams are the streams of an association. Short messages are the more important ones.
type ourStreams struct{ *sctp.Conn }

func newOurStreams(c conn) (streamsConn, error) {
	of := ourStreams{c.(ourConn).Conn}
	return of, errors.Join(of.SetScheduler(sched.Priority()), of.SetStreamValue(bulkStream, 1),
		of.Reconfigure(func(c *sctp.Config) { c.NoDelay = true }))
}

func (c ourStreams) writeTo(stream int, b []byte) error {
	_, err := c.WriteMsg(b, sctp.SendInfo{Stream: uint16(stream)})
	return err
}

func (c ourStreams) readAny(b []byte) (stream, n int, err error) {
	n, info, err := c.ReadMsg(b)
	return int(info.Stream), n, err
}

func (s *ourStack) listenStreams(flow int) (func() (streamsConn, error), error) {
	accept, err := s.listen(flow)
	if err != nil {
		return nil, err
	}
	return func() (streamsConn, error) {
		c, err := accept()
		if err != nil {
			return nil, err
		}
		return newOurStreams(c)
	}, nil
}

func (s *ourStack) dialStreams(flow int) (streamsConn, error) {
	c, err := s.dial(flow)
	if err != nil {
		return nil, err
	}
	return newOurStreams(c)
}
