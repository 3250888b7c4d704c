package mmsg

import (
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// Origins of an entry in the error queue that are ICMP messages (linux/errqueue.h).
const (
	originICMP  = 2
	originICMP6 = 3
)

// errControl is larger than an error's control messages: the error itself with the offender's
// address, packet info and traffic class.
type errControl [32]uint64

// errorReader takes ICMP errors off a socket's queue.
type errorReader struct {
	msg         [1]mmsghdr // for recvmmsg: linux/386 and s390x have no recvmsg system call of their own
	iov         unix.Iovec
	destination sockaddr
	control     errControl
	buf         *rawio.Buf
	report      ICMPError
}

// readReports fills pkts with the ICMP reports that are waiting on fd, and throws away what SCTP
// ignores.
func (q *errorReader) readReports(fd uintptr, s *Socket, pool *rawio.Pool, pkts []rawio.Packet, st *Stats) int {
	got := 0
	for got < len(pkts) {
		if q.buf == nil {
			q.buf = pool.Get()
		}
		q.iov.Base = &q.buf.B[0]
		q.iov.SetLen(len(q.buf.B))
		h := &q.msg[0].hdr
		*h = unix.Msghdr{Name: (*byte)(pointerTo(&q.destination)), Namelen: unix.SizeofSockaddrInet6, Iov: &q.iov}
		h.Control = (*byte)(pointerTo(&q.control))
		h.SetIovlen(1)
		h.SetControllen(len(q.control.asBytes()))
		if _, errno := recvmmsg(fd, q.msg[:], unix.MSG_ERRQUEUE); errno != 0 {
			return got // EAGAIN: empty. Anything else shows again in recvmmsg.
		}
		if q.decodeReport(int(q.msg[0].n), s, &pkts[got]) {
			st.RxPackets.Add(1)
			st.RxICMP.Add(1)
			got++
		} else {
			st.RxIgnored.Add(1)
		}
	}
	return got
}

func (q *errorReader) decodeReport(n int, s *Socket, p *rawio.Packet) bool {
	ctl, e := parseControl(q.control.asBytes()[:q.msg[0].hdr.Controllen])
	if e.origin != originICMP && e.origin != originICMP6 {
		return false // our own EMSGSIZE, which WriteBatch has reported
	}
	q.report = ICMPError{
		V6: e.origin == originICMP6, Type: e.typ, Code: e.code, Info: e.info,
		To: q.destination.toAddrPort(), Data: q.buf.B[:min(n, len(q.buf.B))], Control: ctl,
	}
	*p = rawio.Packet{}
	if !s.codec.DecodeError(&q.report, p) {
		return false
	}
	p.Buf, q.buf = q.buf, nil
	return true
}

func (q *errorReader) releaseBuf() {
	if q.buf != nil {
		q.buf.Release()
		q.buf = nil
	}
}
