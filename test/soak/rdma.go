//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// What one request of an RDMA session does. All but opRead and opAtomic are answered by the
// server's program.
const (
	opSend     = iota // Send, with Solicited Event at times
	opWrite           // RDMA Write, and a Send that tells of it
	opWriteImm        // RDMA Write with Immediate Data
	opImm             // Immediate Data alone
	opPull            // the server RDMA Reads from a window, and ends it by Send with Invalidate
	opPush            // the server RDMA Writes to a window, and ends it by Send with Invalidate
	opRead            // RDMA Read
	opAtomic          // FetchAdd or CmpSwap
	opBye             // Send with Invalidate of the server's region; the last request
)

const (
	rdmaWindow = 8 // requests outstanding
	msgSize    = 4 << 10
	dataSize   = 64 << 10
	recvs      = rdmaWindow + 2
	outs       = 4 * rdmaWindow
	arenaSize  = rdmaWindow*dataSize + (recvs+outs)*msgSize
	queueDepth = 128
)

// What the ID of a work request says.
const (
	wrRecv  = iota + 1
	wrSend  // completes the message seq
	wrRead  // of slot
	wrAdd   // atomic
	wrQuiet // nobody looks at it
)

func wrID(what, slot, seq int) uint64 { return uint64(what)<<56 | uint64(slot)<<40 | uint64(seq) }
func wrParts(id uint64) (w, slot, s int) {
	return int(id >> 56), int(id >> 40 & 0xffff), int(id & 0xffffffff)
}

// packImmediate packs what a request without octets of its own says: op, slot, seq (or turn), n.
func packImmediate(op, slot, seq, n int) uint64 {
	return uint64(op)<<56 | uint64(slot)<<48 | uint64(seq)<<32 | uint64(n)
}
func immParts(v uint64) (op, slot, seq, n int) {
	return int(v >> 56), int(v >> 48 & 0xff), int(v >> 32 & 0xffff), int(v & 0xffffffff)
}

// privateTerms is the private data of either side.
type privateTerms struct {
	id                       uint64
	target, source, counters rdma.STag // of the server: written to, read from, operated on
	counter                  uint64    // address
}

func (t *privateTerms) encodeTerms() []byte {
	b := binary.BigEndian.AppendUint64(nil, t.id)
	for _, s := range []rdma.STag{t.target, t.source, t.counters} {
		b = binary.BigEndian.AppendUint32(b, uint32(s))
	}
	return binary.BigEndian.AppendUint64(b, t.counter)
}

func (t *privateTerms) decodeFrom(b []byte) bool {
	if len(b) != 28 {
		return false
	}
	t.id = binary.BigEndian.Uint64(b)
	for i, s := range []*rdma.STag{&t.target, &t.source, &t.counters} {
		*s = rdma.STag(binary.BigEndian.Uint32(b[8+4*i:]))
	}
	t.counter = binary.BigEndian.Uint64(b[20:])
	return true
}

// side is what both ends of an RDMA session have.
type side struct {
	*child
	e   *entry
	dev *rdma.Device
	pd  *rdma.PD
	cq  *rdma.CQ
	qp  *rdma.QP

	arena   []byte
	mr      *rdma.MR   // the arena, for ourselves
	source  *rdma.MR   // the pattern
	regions []*rdma.MR // all there are
	free    []int      // message buffers to send from
	order   byte       // of what is sent, in the ledger
	open    int        // signaled requests without completion
	over    bool       // all that was to do is done: receives that are flushed are no failure
	broken  bool
	cause   string
	wcs     [16]rdma.WC
}

func (c *child) newSide(dev *rdma.Device, e *entry, own bool) (*side, error) {
	s := &side{child: c, e: e, dev: dev, pd: dev.AllocPD(), arena: c.newArena(arenaSize)}
	var err error
	if s.mr, err = s.registerMemory(s.arena, rdma.LocalWrite, nil); err != nil {
		return nil, err
	}
	access := rdma.Access(0)
	if c.Server {
		access = rdma.RemoteRead
	}
	if s.source, err = s.registerMemory(pattern, access, nil); err != nil {
		return nil, err
	}
	if s.cq, err = dev.CreateCQ(2 * queueDepth); err != nil {
		return nil, err
	}
	s.qp, err = dev.CreateQP(&rdma.QPConfig{
		PD: s.pd, SendCQ: s.cq, RecvCQ: s.cq, MaxSend: queueDepth, MaxRecv: recvs, OwnAssociation: own, Negotiate: own,
	})
	if err != nil {
		return nil, err
	}
	for i := range outs {
		s.free = append(s.free, i)
	}
	for i := range recvs {
		if err := s.postRecv(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *side) registerMemory(b []byte, access rdma.Access, opts *rdma.RegionOptions) (*rdma.MR, error) {
	mr, err := s.pd.Register(b, access, opts)
	if err == nil {
		s.regions = append(s.regions, mr)
	}
	return mr, err
}

// dataAt, inAt and outAt return where in the arena the memory of a slot, a receive, a message to
// send is.
func dataAt(slot int) int { return slot * dataSize }
func inAt(i int) int      { return rdmaWindow*dataSize + i*msgSize }
func outAt(i int) int     { return inAt(recvs + i) }

func (s *side) slotData(slot int) []byte { return s.arena[dataAt(slot):][:dataSize] }

func (s *side) postRecv(i int) error {
	return s.qp.PostRecv(&rdma.RecvWR{ID: wrID(wrRecv, i, 0), SGL: []rdma.SGE{s.mr.SGE(inAt(i), msgSize)}})
}

// contentSGE names a content as the source of a message.
func (s *side) contentSGE(seq, use, n int) rdma.SGE {
	return s.source.SGE(pieceAt(s.e.id, seq, use, n), n)
}

// newMessage returns a request to send h, with n octets of content behind it from the pattern;
// there has to be a free buffer.
func (s *side) newMessage(h *head, use, n int) rdma.SendWR {
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	h.encodeTo(s.arena[outAt(i):])
	wr := rdma.SendWR{ID: wrID(wrSend, i+1, int(h.seq)), Op: rdma.OpSend, SGL: []rdma.SGE{s.mr.SGE(outAt(i), headLen)}}
	if n > 0 {
		wr.SGL = append(wr.SGL, s.contentSGE(int(h.seq), use, n))
	}
	return wr
}

// postRequests posts requests, the last of which completes the message seq, if that is not
// negative, and notes it.
func (s *side) postRequests(seq int, wrs ...rdma.SendWR) {
	if s.broken {
		return
	}
	if seq >= 0 {
		s.e.notePosted(seq, s.order)
	}
	n, err := s.qp.PostSendList(wrs)
	for _, wr := range wrs[:n] {
		if wr.Flags&rdma.Unsignaled == 0 {
			s.open++
		}
	}
	if err == nil {
		return
	}
	s.breakBy("post: %v", err)
	if seq >= 0 {
		s.e.undoPost(seq)
	}
}

// handleCommon handles what both sides do with a completion. It returns false for one of a failed
// request.
func (s *side) handleCommon(wc *rdma.WC) bool {
	what, slot, seq := wrParts(wc.ID)
	if what != wrRecv && what != wrQuiet {
		s.open--
	}
	how := byte(completed)
	if wc.Status != rdmap.StatusSuccess {
		if what != wrRecv || !s.over {
			s.breakBy("%v: %v", wc.Opcode, wc.Status)
		}
		how = failed
	}
	if what == wrSend {
		s.e.noteOutcome(seq, how)
		if slot > 0 {
			s.free = append(s.free, slot-1)
		}
	}
	return how == completed
}

// forEachCompletion calls f for the completions there are, after waiting for one for no longer than
// until. It returns how many there were.
func (s *side) forEachCompletion(until time.Time, f func(*rdma.WC)) int {
	for first := true; ; first = false {
		n, err := s.cq.Poll(s.wcs[:])
		if err != nil {
			s.e.stuck++
			s.breakBy("completion queue: %v", err)
			return 0
		}
		for i := range n {
			f(&s.wcs[i])
		}
		if n > 0 || !first || until.IsZero() {
			return n
		}
		ctx, cancel := context.WithDeadline(s.ctx, until)
		err = s.cq.Wait(ctx)
		cancel()
		if err != nil {
			return 0
		}
	}
}

// leaveSession ends the session on this side and notes how. f takes what has yet to complete.
func (s *side) leaveSession(state uint32, f func(*rdma.WC)) {
	if state == stateGraceful && !s.broken {
		ctx, cancel := context.WithTimeout(s.ctx, stuckFor)
		if err := s.qp.Disconnect(ctx); err != nil {
			s.breakBy("disconnect: %v", err)
		}
		if ctx.Err() != nil {
			s.e.stuck++
			s.logFault(s.e, "does not disconnect")
		}
		cancel()
	}
	why := s.qp.Err()
	s.qp.Close()
	select {
	case <-s.qp.Done():
	case <-time.After(stuckFor):
		s.e.stuck++
		s.logFault(s.e, "the QP does not end: %v", why)
	}
	for s.forEachCompletion(time.Time{}, f) > 0 {
	}
	if state == stateGraceful && s.broken {
		state = stateFailed
		s.e.noteReason("%s; %v", s.cause, why)
	}
	s.deregisterAll()
	s.book.endEntry(s.e, state)
}

// deregisterAll gives the memory back. From the end of Deregister on nobody writes there.
func (s *side) deregisterAll() {
	for _, mr := range s.regions {
		if err := mr.Deregister(); err != nil {
			s.e.wrong++
			s.logFault(s.e, "deregister: %v", err)
		}
	}
	s.putArena(s.arena)
}

// breakBy notes that the session has failed, and by what first.
func (s *side) breakBy(format string, args ...any) {
	if !s.broken {
		s.broken, s.cause = true, fmt.Sprintf(format, args...)
	}
}

func (s *side) countWrong(format string, args ...any) {
	s.e.wrong++
	s.logFault(s.e, format, args...)
}
