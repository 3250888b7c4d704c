package mmsg

import (
	"encoding/binary"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// Limits of a message of several packets, which the kernel cuts into UDP datagrams (UDP_SEGMENT).
const (
	maxSegments         = 64    // UDP_MAX_SEGMENTS before Linux 6.9, 128 since
	maxSegmentedOctets4 = 65507 // octets: an IPv4 packet without its header and UDP's
	maxSegmentedOctets6 = 65487 // and an IPv6 one
)

// segmentableRun returns how many packets at the front of pkts may go out as one message, at least
// 1, and their octets. All go between the same addresses with the same marks. They have the same
// length, but the last may be shorter. A packet that may be fragmented goes alone.
func segmentableRun(pkts []rawio.Packet, v6 bool) (n, octets int) {
	p := &pkts[0]
	limit := maxSegmentedOctets4
	if v6 {
		limit = maxSegmentedOctets6
	}
	size, pieces := p.Len(), len(p.Vec)
	octets = size
	if size == 0 {
		return 1, 0
	}
	for n = 1; n < len(pkts) && n < maxSegments; n++ {
		q := &pkts[n]
		k := q.Len()
		pieces += len(q.Vec)
		if k > size || k == 0 || octets+k > limit || pieces > maxIovecs ||
			q.Remote != p.Remote || q.Local != p.Local || q.ECN != p.ECN || q.DSCP != p.DSCP ||
			q.FlowLabel != p.FlowLabel {
			return n, octets
		}
		octets += k
		if k < size {
			return n + 1, octets
		}
	}
	return n, octets
}

// setSegmentSize has the kernel cut the message into datagrams of size octets.
func (o *Outgoing) setSegmentSize(size int) {
	b := o.control.appendMessage(&o.controlLen, unix.SOL_UDP, unix.UDP_SEGMENT, 2)
	binary.NativeEndian.PutUint16(b, uint16(size))
}

// isSegmentationErrno reports whether an error may be about the segmentation. EIO means that the
// device cannot compute checksums or that the path is one of IPsec. EINVAL and EMSGSIZE mean a size
// that the kernel does not like.
func isSegmentationErrno(e syscall.Errno) bool {
	return e == syscall.EIO || e == syscall.EINVAL || e == syscall.EMSGSIZE
}

// EnableOffload turns on what the kernel offers of UDP_SEGMENT and UDP_GRO. Call it before the
// socket is in use.
func (s *Socket) EnableOffload() {
	_ = s.Control(func(fd int) error {
		if _, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT); err == nil {
			s.segmenting.Store(true)
		}
		return unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) // a kernel before 5.0 has none
	})
}

// Segmenting reports whether packets leave as larger messages that the kernel segments.
func (s *Socket) Segmenting() bool { return s.segmenting.Load() }
