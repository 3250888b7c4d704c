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
	flags  uint8
	misses uint8 // miss indications (7.2.4)
	spare  uint8 // retransmissions not yet matched by a reported duplicate
	path   uint8 // index of the path it was last sent to
	state  state
	head   [HeadCap]byte
}

// Flags of a record, beside its state.
const (
	resent  = 1 << iota // sent more than once (Karn)
	fast                // was fast-retransmitted: not a second time
	timeout             // last marked because T3-rtx expired
	queued              // came through Enqueue, not from the Source
	moved               // sent to more than one destination
	large               // last sent in a packet longer than Path.Least
	own                 // its body is the stack's
	copied              // a copy went over another path: nobody knows which of the two has arrived

	vague = resent | copied // nor which transmission
)

// chunkLen returns the octets the chunk counts in cwnd and flight size: header and padding included
// (7.2).
func (r *record) chunkLen() int { return wire.DataHeaderLen + wire.PaddedLen(int(r.size)) }

// headLen returns how many octets of head count.
func (r *record) headLen() int { return int(r.size) - len(r.body[0]) - len(r.body[1]) }

func (g *ledger) rec(t wire.TSN) *record { return &g.recs[int(t)&(len(g.recs)-1)] }

// len returns how many TSNs are not acknowledged cumulatively.
func (g *ledger) len() int { return int(uint32(g.next - g.base)) }

// after returns the next member of one of sets behind t.
func (g *ledger) after(set *tsnset.Set, t wire.TSN) (wire.TSN, bool) {
	t++
	return set.Next(t, int(uint32(g.next-t)))
}

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
	r := s.ledger.rec(t)
	t -= wire.TSN(r.before)
	return t, r.before > 0 && s.isOf(t, r.stream)
}

// isOf says whether t is outstanding, and of that stream: what a table says of long ago may be of another by now.
func (s *Sender) isOf(t wire.TSN, stream wire.StreamID) bool {
	return uint32(t-s.ledger.base) < uint32(s.ledger.len()) && s.ledger.rec(t).stream == stream
}

// push returns the record of the next TSN.
func (g *ledger) push() (wire.TSN, *record) {
	if n := len(g.recs); g.len() == n || n < lastingRecs && g.lasting {
		g.grow()
	}
	t := g.next
	g.next++
	if int(uint32(g.next-g.intact)) > len(g.recs) {
		g.intact = g.next - wire.TSN(len(g.recs))
	}
	return t, g.rec(t)
}

// An association that has few chunks outstanding comes round to the same few records again and again, so that there is the less for the processor's caches to hold where there
// are many associations. What was sent is remembered for longer where the peer may say something of it later: that it has come twice.
const (
	firstRecs   = 1
	lastingRecs = 64
)

func (g *ledger) grow() {
	old, live := *g, g.len()
	n := max(firstRecs, 2*len(old.recs))
	if g.lasting {
		n = max(n, lastingRecs)
	}
	if g.recs = g.own[:]; n > len(g.own) {
		g.recs = make([]record, n)
	}
	for t := g.base; t != g.next; t++ {
		*g.rec(t) = *old.rec(t)
	}
	g.intact = g.base
	if g.octets = 0; n > len(g.own) {
		g.own = [firstRecs]record{}
		g.octets = n * int(unsafe.Sizeof(record{}))
	}
	for _, set := range g.sets() {
		set.Grow(n, g.base, live)
		g.octets += set.Held()
	}
}

func (g *ledger) sets() [5]*tsnset.Set {
	return [...]*tsnset.Set{&g.marked, &g.ripe, &g.gapped, &g.paid, &g.owed}
}

// Trim gives back what an idle association does not need: when all is acknowledged and nothing is queued, the memory of what was.
func (s *Sender) Trim() {
	if g := &s.ledger; g.len() == 0 {
		*g = ledger{base: g.base, next: g.next, intact: g.next, ripeTo: g.ripeTo, rwnd: g.rwnd, fault: g.fault}
		s.last, s.blocks = sparse.Table[wire.TSN]{}, nil
		if s.spans != nil && s.spans.forget(s.heard) == 0 {
			s.spans = nil
		}
		for _, p := range s.paths {
			if p.inflight = (tsnset.Set{}); p.rates != nil {
				p.rates.ring = nil
			}
		}
	}
	if s.queue.n == 0 {
		s.queue = queue{}
	}
}

// sent returns the record of a TSN that was sent, which may be acknowledged already, as long as its
// place was not taken by another.
func (g *ledger) sent(t wire.TSN) *record {
	if uint32(t-g.intact) >= uint32(g.next-g.intact) {
		return nil
	}
	return g.rec(t)
}
