package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxOutstanding bounds the TSNs from the cumulative TSN to the highest sent: a gap block cannot
// name more, and it keeps the send window under 2^31 TSNs and 65535 messages of a stream (6.1).
const maxOutstanding = tsnset.MaxWindow - 1

// record is one DATA chunk that has a TSN: what is needed to send it, and send it again.
type record struct {
	body   [2][]byte // the user's memory, or the stack's after Detach
	token  uint64
	ppid   uint32
	stamp  uint32 // when it was last sent, in microseconds that wrap
	stream wire.StreamID
	ssn    wire.SSN
	before uint16 // how many TSNs ago the chunk before it on its stream was sent; 0: none, or long ago
	size   uint16 // octets of user data
	wire   uint8  // flags of the chunk
	state  uint8
	misses uint8 // miss indications (7.2.4)
	spare  uint8 // retransmissions not yet matched by a reported duplicate
	path   uint8 // index of the path it was last sent to
	n      uint8 // octets of head
	head   [HeadCap]byte
}

// States of a record.
const (
	resent  = 1 << iota // sent more than once (Karn)
	fast                // was fast-retransmitted: not a second time
	timeout             // last marked because T3-rtx expired
	queued              // came through Enqueue, not from the Source
	moved               // sent to more than one destination
	large               // last sent in a packet longer than Path.Least
	own                 // its body is the stack's
	copied              // a copy went over another path: nobody knows which of the two has arrived
)

// chunkLen returns the octets the chunk counts in cwnd and flight size: header and padding included
// (7.2).
func (r *record) chunkLen() int { return wire.DataHeaderLen + wire.PaddedLen(int(r.size)) }

// ring holds the records from the cumulative TSN Ack Point on. Every TSN in it is exactly one of: in
// flight, which its path knows, marked for retransmission, acknowledged by a gap block. And it is one of: paid,
// owed, acknowledged by a gap block.
type ring struct {
	recs   []record // a power of two; TSN t is at t mod len
	base   wire.TSN // the earliest TSN not acknowledged cumulatively
	next   wire.TSN // the first TSN not sent yet
	octets int      // of memory that records and sets take
	intact wire.TSN // records from here on are still in place, also those before base

	marked  tsnset.Set // to be sent again
	ripe    tsnset.Set // takes miss indications, see ripen
	gapped  tsnset.Set // acknowledged by a gap block only: may be reneged
	paid    tsnset.Set // not acknowledged since it was last sent, which pays for the work that takes
	owed    tsnset.Set // acknowledged and taken back since: what that takes again is to be paid
	nmarked int
	ngapped int
	nowed   int
}

func (r *ring) rec(t wire.TSN) *record { return &r.recs[int(t)&(len(r.recs)-1)] }

// len returns how many TSNs are not acknowledged cumulatively.
func (r *ring) len() int { return int(uint32(r.next - r.base)) }

// chain notes that chunk t is the last of its stream, so that the others are found from there.
func (s *Sender) chain(t wire.TSN, r *record) {
	last := s.last.Use(uint16(r.stream))
	if r.before = 0; uint32(t-*last) <= maxOutstanding {
		r.before = uint16(t - *last)
	}
	*last = t
}

// lastOf returns the last chunk of a stream that is outstanding, and prior the one before another.
func (s *Sender) lastOf(stream wire.StreamID) (t wire.TSN, ok bool) {
	last := s.last.At(uint16(stream))
	if last == nil {
		return 0, false
	}
	return *last, s.isOf(*last, stream)
}

func (s *Sender) prior(t wire.TSN) (wire.TSN, bool) {
	r := s.ring.rec(t)
	t -= wire.TSN(r.before)
	return t, r.before > 0 && s.isOf(t, r.stream)
}

// isOf says whether t is outstanding, and of that stream: what a table says of long ago may be of another by now.
func (s *Sender) isOf(t wire.TSN, stream wire.StreamID) bool {
	return uint32(t-s.ring.base) < uint32(s.ring.len()) && s.ring.rec(t).stream == stream
}

// push returns the record of the next TSN.
func (r *ring) push() (wire.TSN, *record) {
	if r.len() == len(r.recs) {
		r.grow()
	}
	t := r.next
	r.next++
	if int(uint32(r.next-r.intact)) > len(r.recs) {
		r.intact = r.next - wire.TSN(len(r.recs))
	}
	return t, r.rec(t)
}

func (r *ring) grow() {
	old, live := *r, r.len()
	n := max(64, 2*len(old.recs))
	r.recs = make([]record, n)
	for t := r.base; t != r.next; t++ {
		*r.rec(t) = *old.rec(t)
	}
	r.intact = r.base
	r.octets = n * int(unsafe.Sizeof(record{}))
	for _, set := range r.sets() {
		set.Grow(n, r.base, live)
		r.octets += set.Held()
	}
}

func (r *ring) sets() [5]*tsnset.Set {
	return [...]*tsnset.Set{&r.marked, &r.ripe, &r.gapped, &r.paid, &r.owed}
}

// Trim gives back what an idle association does not need: when all is acknowledged and nothing is queued, the memory of what was.
func (s *Sender) Trim() {
	if s.ring.len() == 0 {
		s.ring = ring{base: s.ring.base, next: s.ring.next, intact: s.ring.next}
		s.again, s.last = again{}, sparse.Table[wire.TSN]{}
		for _, p := range s.paths {
			p.inflight = tsnset.Set{}
		}
	}
	if s.queue.n == 0 {
		s.queue = queue{}
	}
}

// sent returns the record of a TSN that was sent, which may be acknowledged already, as long as its
// place was not taken by another.
func (r *ring) sent(t wire.TSN) *record {
	if uint32(t-r.intact) >= uint32(r.next-r.intact) {
		return nil
	}
	return r.rec(t)
}
