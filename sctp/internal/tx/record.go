package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxOutstanding bounds the TSNs from the cumulative TSN to the highest sent: a gap block cannot
// name more. It keeps the send window under 2^31 TSNs and 65535 messages of a stream (6.1).
const maxOutstanding = tsnset.MaxWindow - 1

// chunkRecord is one DATA chunk that has a TSN. It has what is needed to send it, and send it
// again.
type chunkRecord struct {
	body           [2][]byte // the user's memory, or the stack's after Detach
	token          uint64
	ppid           uint32
	sentStamp      uint32 // when it was last sent, in microseconds that wrap
	stream         wire.StreamID
	ssn            wire.SSN
	prevDistance   uint16 // how many TSNs ago the chunk before it on its stream was sent; 0: none, or long ago
	size           uint16 // octets of user data
	wireFlags      uint8  // flags of the chunk
	flags          uint8
	missCount      uint8 // miss indications (7.2.4)
	unreportedDups uint8 // retransmissions not yet matched by a reported duplicate
	path           uint8 // index of the path it was last sent to
	state          chunkState
	head           [HeadCap]byte
}

// Flags of a record, beside its state.
const (
	flagResent            = 1 << iota // sent more than once (Karn)
	flagFastRetransmitted             // was fast-retransmitted: not a second time
	flagTimedOut                      // last marked because T3-rtx expired
	flagEnqueued                      // came through Enqueue, not from the Source
	flagMultiPath                     // sent to more than one destination
	flagLongPacket                    // last sent in a packet longer than Path.BasePMTU
	flagDetached                      // its body is the stack's
	flagProbeCopied                   // a copy went over another path: it is not known which of the two has arrived

	flagAmbiguous = flagResent | flagProbeCopied // nor which transmission
)

// flagIData, in wireFlags, says that the chunk goes as I-DATA.
const flagIData = 1 << 7

// chunkLen returns the octets the chunk counts in cwnd and flight size: header and padding included
// (7.2).
func (r *chunkRecord) chunkLen() int {
	const longer = wire.IDataHeaderLen - wire.DataHeaderLen
	return wire.DataHeaderLen + wire.PaddedLen(int(r.size)) + int(r.wireFlags/flagIData)*longer
}

// headLen returns how many octets of head count.
func (r *chunkRecord) headLen() int { return int(r.size) - len(r.body[0]) - len(r.body[1]) }

func (g *outstanding) recordOf(t wire.TSN) *chunkRecord {
	return &g.chunkRing[int(t)&(len(g.chunkRing)-1)]
}

// len returns how many TSNs are not acknowledged cumulatively.
func (g *outstanding) len() int { return int(uint32(g.nextTSN - g.firstUnacked)) }

// nextInSet returns the next member of one of sets behind t.
func (g *outstanding) nextInSet(set *tsnset.Set, t wire.TSN) (wire.TSN, bool) {
	t++
	return set.Next(t, int(uint32(g.nextTSN-t)))
}

// isOutstandingOn says whether t is outstanding, and of that stream. An old entry of a table may be
// of another stream by now.
func (g *outstanding) isOutstandingOn(t wire.TSN, stream wire.StreamID) bool {
	return uint32(t-g.firstUnacked) < uint32(g.len()) && g.recordOf(t).stream == stream
}

// prevInStream returns the chunk before t on its stream, if that is outstanding.
func (g *outstanding) prevInStream(t wire.TSN) (wire.TSN, bool) {
	r := g.recordOf(t)
	t -= wire.TSN(r.prevDistance)
	return t, r.prevDistance > 0 && g.isOutstandingOn(t, r.stream)
}

// isSinglePacket reports whether all that is in flight to p is one packet, whose SACK may be
// delayed.
func (g *outstanding) isSinglePacket(p *Path) bool {
	return p.flight.octets <= p.pmdcs && stampOf(p.lastSentAt) == g.recordOf(p.flight.first).sentStamp
}

// appendRecord returns the record of the next TSN.
func (g *outstanding) appendRecord() (wire.TSN, *chunkRecord) {
	if n := len(g.chunkRing); g.len() == n || n < minHistoryRecords && g.keepHistory {
		g.growRing()
	}
	t := g.nextTSN
	g.nextTSN++
	if int(uint32(g.nextTSN-g.firstIntact)) > len(g.chunkRing) {
		g.firstIntact = g.nextTSN - wire.TSN(len(g.chunkRing))
	}
	return t, g.recordOf(t)
}

// An association that has few chunks outstanding uses the same few records again and again. So with
// many associations the processor's caches have less to hold. What was sent is remembered for
// longer where the peer may still report that it has come twice.
const (
	initialRecords    = 1
	minHistoryRecords = 64
)

func (g *outstanding) growRing() {
	old, live := *g, g.len()
	n := max(initialRecords, 2*len(old.chunkRing))
	if g.keepHistory {
		n = max(n, minHistoryRecords)
	}
	if g.chunkRing = g.inlineRecords[:]; n > len(g.inlineRecords) {
		g.chunkRing = make([]chunkRecord, n)
	}
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		*g.recordOf(t) = *old.recordOf(t)
	}
	g.firstIntact = g.firstUnacked
	if g.extras != nil {
		g.extras.grow(g.firstUnacked, g.nextTSN, n)
	}
	if g.memoryOctets = 0; n > len(g.inlineRecords) {
		g.inlineRecords = [initialRecords]chunkRecord{}
		g.memoryOctets = n * int(unsafe.Sizeof(chunkRecord{}))
	}
	for _, set := range g.allSets() {
		set.Grow(n, g.firstUnacked, live)
		g.memoryOctets += set.Held()
	}
}

func (g *outstanding) allSets() [5]*tsnset.Set {
	return [...]*tsnset.Set{&g.toRetransmit, &g.lossEligible, &g.gapAcked, &g.unacked, &g.reneged}
}

// Trim gives back what an idle association does not need. When all is acknowledged and nothing is
// queued, that is the memory of earlier chunks.
func (s *Sender) Trim() {
	if g := &s.outstanding; g.len() == 0 {
		*g = outstanding{firstUnacked: g.firstUnacked, nextTSN: g.nextTSN, firstIntact: g.nextTSN,
			lossEligibleTo: g.lossEligibleTo, rwnd: g.rwnd, fault: g.fault, extras: g.extras}
		g.extras.trim()
		s.streams.clear()
		if s.window.sentSpans != nil && s.window.sentSpans.dropElapsed(s.delivered.at) == 0 {
			s.window.sentSpans = nil
		}
		for _, p := range s.paths {
			if p.flight.tsns = (tsnset.Set{}); p.rateSampler != nil {
				p.rateSampler.packetStates = nil
			}
		}
	}
	if s.queue.waiting.length == 0 {
		s.queue.waiting = messageQueue{}
	}
	s.queue.streams.trim()
}

// sentRecord returns the record of a TSN that was sent. It may be acknowledged already, as long as
// its place was not taken by another.
func (g *outstanding) sentRecord(t wire.TSN) *chunkRecord {
	if uint32(t-g.firstIntact) >= uint32(g.nextTSN-g.firstIntact) {
		return nil
	}
	return g.recordOf(t)
}
