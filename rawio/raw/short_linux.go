package raw

import (
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/sys/unix"
)

// maxShortLen is the longest short packet in octets. A longer one does better with a header of
// ours. When the kernel makes the header, it computes an internet checksum over the payload and
// copies it in pieces.
const maxShortLen = 2 << 10

// shortCodec is the codec of a socket by which short IPv4 packets leave, with a header that the
// kernel makes. For a packet with its own header Linux makes a route and frees it in a softirq,
// unless the route goes by a router (FLOWI_FLAG_KNOWN_NH). Each of the two takes 0.15 microseconds.
type shortCodec struct{ link *Link }

// openShort opens that socket. It receives nothing, since it is connected to an address that no
// program sends from. Where there is no such socket, packets leave by the other one.
func (l *Link) openShort() *mmsg.Socket {
	fd, err := mmsg.OpenSocket(false, unix.SOCK_RAW, iphdr.ProtoSCTP)
	if err != nil {
		return nil
	}
	if l.setupShort(fd) != nil {
		unix.Close(fd)
		return nil
	}
	s, err := mmsg.NewSocket(fd, false, &shortCodec{l})
	if err != nil {
		return nil
	}
	return s
}

// unusedAddr is an address of this host, so that there is a route to it. No program uses it.
var unusedAddr = netip.AddrFrom4([4]byte{127, 255, 255, 254})

func (l *Link) setupShort(fd int) error {
	if err := attachFilter(fd, dropFilter); err != nil {
		return err
	}
	ttl := int(l.cfg.Mark.TTL)
	if ttl == 0 {
		ttl = iphdr.HopLimit
	}
	if err := mmsg.SetOptions(fd, mmsg.Option{Level: unix.IPPROTO_IP, Name: unix.IP_TTL, Value: ttl},
		mmsg.Option{Level: unix.IPPROTO_IP, Name: unix.IP_TOS, Value: int(iphdr.DefaultClass(l.cfg.Mark))},
		mmsg.Option{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_PROBE}); err != nil {
		return err
	}
	if l.cfg.Local.Is4() && !l.cfg.Local.IsUnspecified() {
		if err := unix.Bind(fd, sockaddrOf(l.cfg.Local)); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	err := unix.Connect(fd, sockaddrOf(unusedAddr))
	for _, own := range l.LocalAddrs() {
		if err == nil {
			break
		}
		if own.Addr().Is4() { // the loopback device was never up, so the host does not send to itself
			err = unix.Connect(fd, sockaddrOf(own.Addr()))
		}
	}
	return err
}

// isShort says which packets leave by that socket. Packets without a known IPv4 source, or that may
// be cut, leave by the other one.
func (l *Link) isShort(p *rawio.Packet) bool {
	return p.Remote.Addr().Unmap().Is4() && p.Fragment == 0 && p.Len() <= maxShortLen &&
		l.sourceFor(p.Local.Addr().Unmap()).Is4()
}

// Encode implements mmsg.Codec.
func (c *shortCodec) Encode(p *rawio.Packet, o *mmsg.Outgoing) error {
	l := c.link
	if src := l.sourceFor(p.Local.Addr().Unmap()); src != l.cfg.Local {
		o.SetSource(src)
	}
	if class := iphdr.ClassOf(p, l.cfg.Mark) | p.ECN&3; class != iphdr.DefaultClass(l.cfg.Mark) {
		o.SetClass(class, false)
	}
	o.SetDestination(p.Remote.Addr().Unmap(), 0)
	return nil
}

// Decode implements mmsg.Codec.
func (*shortCodec) Decode(*mmsg.Message, *rawio.Packet) bool { return false }

// DecodeError implements mmsg.Codec.
func (*shortCodec) DecodeError(*mmsg.ICMPError, *rawio.Packet) bool { return false }
