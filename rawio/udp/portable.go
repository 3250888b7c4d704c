//go:build !linux || rawio_portable

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/route"
)

// fixedMTU is the IP-level MTU in octets where Config names none. Without control of the DF bit
// there is no path MTU discovery (RFC 6951 section 5.6).
const fixedMTU = 1500

const (
	datagramBufSize = 65536 // octets: more than any UDP payload
	maxIdleBufs     = 64    // buffers kept
	maxErrorStreak  = 64    // receive errors in a row before one is the link's
	socketBufOctets = 4 << 20
)

// Link is a rawio.Link over UDP. It also implements rawio.Addresser.
type Link struct {
	cfg    Config
	port   uint16 // the local encapsulation port
	conn   *net.UDPConn
	routes *route.Table
	pool   *rawio.Pool

	rxPackets, rxMalformed, txPackets, txFull, txTooLong, txErrors atomic.Uint64
}

// Open opens a UDP link. A taken port gives an error that matches syscall.EADDRINUSE.
func Open(cfg Config) (*Link, error) {
	if err := cfg.validateAndDefault(); err != nil {
		return nil, err
	}
	if cfg.Mark != (rawio.Mark{}) {
		return nil, fmt.Errorf("udp link: TTL and traffic class cannot be set on this system: %w",
			errors.ErrUnsupported)
	}
	network, addr := "udp", &net.UDPAddr{Port: cfg.Port}
	if a := cfg.Local; a.IsValid() {
		if network = "udp6"; a.Is4() {
			network = "udp4"
		}
		addr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(cfg.Port)))
	}
	conn, err := net.ListenUDP(network, addr)
	if err != nil {
		return nil, openError(cfg, err)
	}
	_ = conn.SetReadBuffer(socketBufOctets) // as far as the system lets us
	_ = conn.SetWriteBuffer(socketBufOctets)
	routes, err := route.Open()
	if err != nil {
		conn.Close()
		return nil, openError(cfg, err)
	}
	return &Link{
		cfg: cfg, conn: conn, routes: routes, pool: rawio.NewPool(datagramBufSize, maxIdleBufs),
		port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
	}, nil
}

// ReadBatch implements rawio.Link, with one packet at a time.
func (l *Link) ReadBatch(pkts []rawio.Packet) (int, error) {
	if len(pkts) == 0 {
		return 0, errors.New("ReadBatch needs room for a packet")
	}
	buf := l.pool.Get()
	for failed := 0; ; {
		n, from, err := l.conn.ReadFromUDPAddrPort(buf.B)
		switch {
		case errors.Is(err, net.ErrClosed):
			buf.Release()
			return 0, net.ErrClosed
		case err != nil: // as a rule an ICMP error about an earlier packet, which this path cannot attribute
			if failed++; failed > maxErrorStreak {
				buf.Release()
				return 0, err
			}
			continue
		case n < commonHeaderLen:
			l.rxMalformed.Add(1)
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		pkts[0] = rawio.Packet{
			Data: buf.B[:n], Buf: buf, Remote: from,
			Local: netip.AddrPortFrom(l.localFor(from.Addr()), l.port),
		}
		l.rxPackets.Add(1)
		return 1, nil
	}
}

// localFor is our address as a peer sees it: the configured one, or else the one the system would
// answer from.
func (l *Link) localFor(remote netip.Addr) netip.Addr {
	if a := l.cfg.Local; a.IsValid() && !a.IsUnspecified() {
		return a
	}
	return l.routes.Lookup(netip.Addr{}, remote).Source
}

// WriteBatch implements rawio.Link, one packet at a time; Packet.Local is not heeded.
func (l *Link) WriteBatch(pkts []rawio.Packet) (int, error) {
	buf := l.pool.Get()
	defer buf.Release()
	for i := range pkts {
		err := l.writeWhole(&pkts[i], buf.B)
		switch {
		case err == nil:
			l.txPackets.Add(1)
			continue
		case errors.Is(err, syscall.EMSGSIZE):
			l.txTooLong.Add(1)
			l.routes.ForgetRoutesTo(withDefaultPort(pkts[i].Remote).Addr())
			err = rawio.ErrTooLong
		case errors.Is(err, syscall.ENOBUFS):
			l.txFull.Add(1)
			err = rawio.ErrFull
		case errors.Is(err, net.ErrClosed):
			err = net.ErrClosed
		default:
			l.txErrors.Add(1)
		}
		return i, err
	}
	return len(pkts), nil
}

func (l *Link) writeWhole(p *rawio.Packet, buf []byte) error {
	to := withDefaultPort(p.Remote)
	if p.Len() > payloadLimit(1<<30, to.Addr().Is6()) {
		return rawio.ErrTooLong
	}
	n := 0
	for _, v := range p.Vec {
		n += copy(buf[n:], v)
	}
	_, err := l.conn.WriteToUDPAddrPort(buf[:n], to)
	var sys *os.SyscallError
	if errors.As(err, &sys) && errors.Is(err, syscall.ECONNREFUSED) { // about an earlier packet
		_, err = l.conn.WriteToUDPAddrPort(buf[:n], to)
	}
	return err
}

// MTU implements rawio.Link.
func (l *Link) MTU(_, remote netip.Addr) int {
	mtu := l.cfg.MTU
	if mtu == 0 {
		mtu = fixedMTU
	}
	return payloadLimit(mtu, remote.Unmap().Is6())
}

// Owns implements rawio.Owner.
func (l *Link) Owns(a netip.Addr) bool { return l.routes.Owns(a) }

// LocalAddrs implements rawio.Addresser. It returns the configured address, or this host's
// addresses with the loopback ones last, each with the local encapsulation port.
func (l *Link) LocalAddrs() []netip.AddrPort {
	if a := l.cfg.Local; a.IsValid() && !a.IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(a, l.port)}
	}
	var out []netip.AddrPort
	for _, a := range l.routes.Addrs() {
		if !l.cfg.Local.IsValid() || l.cfg.Local.Is4() == a.Is4() {
			out = append(out, netip.AddrPortFrom(a, l.port))
		}
	}
	return out
}

// Port returns the local encapsulation port.
func (l *Link) Port() uint16 { return l.port }

// Stats returns the link's counters. This path sees no ICMP messages and no kernel drops.
func (l *Link) Stats() Stats {
	return Stats{
		RxPackets: l.rxPackets.Load(), RxMalformed: l.rxMalformed.Load(), TxPackets: l.txPackets.Load(),
		TxFull: l.txFull.Load(), TxTooLong: l.txTooLong.Load(), TxErrors: l.txErrors.Load(),
	}
}

// Close implements rawio.Link.
func (l *Link) Close() error {
	err := l.conn.Close()
	l.routes.Close()
	return err
}
