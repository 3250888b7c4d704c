package rdma

import (
	"fmt"

	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Limits bound what one program, and its peers, can make a Device hold (RFC 5042 section 6). The
// zero value selects the defaults. A PD stands for one local user: no user takes more than its
// share, whatever the others do.
type Limits struct {
	MaxCQE     int // completions in one CQ; default 1 << 20
	MaxWR      int // work requests in one queue; default 1 << 16
	MaxSGE     int // pieces of one scatter/gather list; default 64
	MaxReads   int // RDMA Reads and atomics outstanding on one QP, each way; default 256
	MaxPDReads int // RDMA Reads and atomics that peers may have outstanding on all QPs of one PD; default 1 << 20
	MaxQPs     int // QPs of one PD; default 1 << 16
	MaxRegions int // registered regions and windows of one PD; default 1 << 20
	MaxPending int // session requests of one association waiting for Accept or Reject; default 64
	// MaxRequests is how many requests, of all associations, wait for Listener.Accept. Half of them
	// may be from one address, of IPv6 one /64. More are ended. As many TCP connections may be
	// there that have not asked for anything yet, for each Listener. Default 1024.
	MaxRequests int
	// MaxEarly is how many octets of segments that come before Accept are kept for one session, and
	// sixteen times that for an association. A session with more is ended. Default 65536.
	MaxEarly int
	// MaxOutOfOrder is how many messages of one association may wait for an earlier one, about 650
	// octets each at worst. More are left to be sent again. A message in fragments is acknowledged
	// by then, so its session ends; fragments come where no packet carries 516 octets. Default and
	// maximum 65535.
	MaxOutOfOrder int
	MaxStreams    int // streams, and so sessions, of one association, 65535 at most; default 1024
	MaxEvents     int // events kept for NextEvent; default 128
}

func (l *Limits) applyDefaults() error {
	for _, d := range []struct {
		what     string
		v        *int
		def, max int
	}{
		{"MaxCQE", &l.MaxCQE, 1 << 20, 1 << 30}, {"MaxWR", &l.MaxWR, 1 << 16, 1 << 20}, {"MaxSGE", &l.MaxSGE, 64, 1024},
		{"MaxReads", &l.MaxReads, 256, rdmap.MaxReads}, {"MaxPDReads", &l.MaxPDReads, 1 << 20, 1 << 30},
		{"MaxQPs", &l.MaxQPs, 1 << 16, 1 << 30}, {"MaxRegions", &l.MaxRegions, 1 << 20, 1 << 30},
		{"MaxPending", &l.MaxPending, 64, 65535}, {"MaxStreams", &l.MaxStreams, defaultStreams, 65535},
		{"MaxRequests", &l.MaxRequests, 1024, 1 << 20}, {"MaxEarly", &l.MaxEarly, 65536, 1 << 30},
		{"MaxOutOfOrder", &l.MaxOutOfOrder, 65535, 65535},
		{"MaxEvents", &l.MaxEvents, 128, 1 << 20},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < 1 || *d.v > d.max {
			return &LimitError{"Limits." + d.what, *d.v, d.max}
		}
	}
	return nil
}

// LimitError reports an argument outside what the Device allows.
type LimitError struct {
	What     string
	Got, Max int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("rdma: %s is %d; it must be 1 to %d", e.What, e.Got, e.Max)
}

// CQSizeError refuses a QP whose queues do not fit the CQ. Together with those attached before,
// they can have more completions outstanding than it has room for (RFC 5042 section 6.4.3.2).
type CQSizeError struct {
	Depth int // of the CQ
	Need  int // the sum of the depths of all send, receive and shared receive queues
}

func (e *CQSizeError) Error() string {
	return fmt.Sprintf("rdma: the CQ has room for %d completions and its queues for %d requests; make it "+
		"deeper, or QPConfig.MaxSend and MaxRecv smaller",
		e.Depth, e.Need)
}

// admitQP counts a QP among those of its PD, or refuses it.
func (d *Device) admitQP(q *QP, reads int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch lim := &d.limits; {
	case q.pd.destroyed, q.srq != nil && q.srq.destroyed:
		return ErrDestroyed
	case q.pd.numQPs >= lim.MaxQPs:
		return &LimitError{"number of QPs of the PD", q.pd.numQPs + 1, lim.MaxQPs}
	case q.pd.numReads > lim.MaxPDReads-reads:
		return &LimitError{"sum of IRD of the PD", q.pd.numReads + reads, lim.MaxPDReads}
	}
	q.pd.numQPs++
	q.pd.numReads += reads
	if q.srq != nil {
		q.srq.numQPs++
	}
	q.countedReads = reads
	d.qps[q] = struct{}{}
	return nil
}

// dropQP forgets the QP, once.
func (d *Device) dropQP(q *QP) {
	d.mu.Lock()
	_, ok := d.qps[q]
	if ok {
		delete(d.qps, q)
		q.pd.numQPs--
		q.pd.numReads -= q.countedReads
		if q.srq != nil {
			q.srq.numQPs--
		}
	}
	d.mu.Unlock()
	if ok {
		q.sendCQ.detachQP(q)
		q.recvCQ.detachQP(q)
		d.dropWindows(q)
	}
}
