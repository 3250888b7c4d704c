package random

import (
	"bytes"

	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// incarnation is what one side says from the time when its association is set up, or the peer has
// restarted, to the end or the next restart. Its messages carry its number and their own in the
// PPID.
type incarnation struct {
	id      uint32
	e       *end
	tag     uint32 // of the own side
	said    []message
	open    int // messages neither acknowledged nor reported as failed
	over    bool
	crashed bool           // nobody knows what became of its messages
	heard   []*receivedLog // more than one where old packets have brought the association about again

	ordered      map[wire.StreamID]int // ordered messages said, by stream
	renumberings []renumbering
}

// message is what is known of a message.
type message struct {
	size      int
	stream    wire.StreamID
	unordered bool
	mortal    bool // it may expire
	policy    assoc.AbandonPolicy
	acked     bool
	failed    bool
	unsent    bool
	ordinal   int    // ordered messages of the stream before it
	own       []byte // memory that changes when it is the user's again; nil: it lies in the text
}

// receivedLog is what one side has heard of a life of the other.
type receivedLog struct {
	from  *incarnation
	got   []bool
	last  map[wire.StreamID]int // number of the last ordered message of each stream
	parts map[int]int           // messages that are delivered in pieces, and how much of each was
	over  bool
	lossy bool // something may have got lost between the stack and its user
}

// A PPID is the life's number and the message's. On the wire it has one bit more: no small one, which
// may be the association's own.
const (
	numberBits = 20
	wireBit    = 1 << 31
)

func (l *incarnation) ppidOf(n int) uint32 { return l.id<<numberBits | uint32(n) }

// text is what messages consist of, and where in it the one with that PPID begins.
var text = func() []byte {
	b := make([]byte, 1<<18)
	simnet.NewRand(1).Read(b)
	return b
}()

const maxMessage = 100_000

func textOf(l *incarnation, n, size int) []byte {
	at := mixSeed(l.e.t.r.s.Seed, uint64(l.e.t.id), uint64(l.ppidOf(n))) % (1<<18 - maxMessage)
	return text[at : at+uint64(size)]
}

// makeMessage makes message n of the life.
func (l *incarnation) makeMessage(m message, private bool) []byte {
	b := textOf(l, len(l.said), m.size)
	if private {
		b = bytes.Clone(b)
		m.own = b
	}
	if !m.unordered {
		if l.ordered == nil {
			l.ordered = make(map[wire.StreamID]int)
		}
		m.ordinal = l.ordered[m.stream]
		l.ordered[m.stream]++
	}
	l.said = append(l.said, m)
	l.open++
	return b
}

// takeBackLast takes the last message back, which was refused.
func (l *incarnation) takeBackLast() {
	if m := l.said[len(l.said)-1]; !m.unordered {
		l.ordered[m.stream]--
	}
	l.said = l.said[:len(l.said)-1]
	l.open--
}

// messageSettled takes the end of a message: its memory is the user's, who uses it at once.
func (l *incarnation) messageSettled(token uint64, acked, unsent bool) {
	r := l.e.t.r
	id, n := uint32(token>>numberBits), int(token&(1<<numberBits-1))
	if id != l.id || n >= len(l.said) {
		r.recordViolation(Twice, l.e.h.node.Name, "life %d hears of message %d of life %d", l.id, n, id)
		return
	}
	m := &l.said[n]
	if m.acked || m.failed {
		r.recordViolation(Twice, l.e.h.node.Name, "message %d is settled twice, acknowledged %v, then %v", n, m.acked,
			acked)
		return
	}
	m.acked, m.failed, m.unsent = acked, !acked, unsent
	l.open--
	clear(m.own)
	m.own = nil
	if !acked {
		r.tally.Failed++
	}
	if !acked && m.policy != assoc.AbandonNever && !l.over {
		r.tally.GivenUp++
	}
	if !acked && unsent && l.wasDelivered(n) {
		r.recordViolation(Twice, l.e.h.node.Name, "message %d was delivered, and is reported as never sent", n)
	}
}

// checkPiece judges a message, or a piece of one, that a side has received.
func (h *receivedLog) checkPiece(by *assocSide, m *assoc.Received, scratch []byte) {
	e := by.e
	r, name := e.t.r, e.h.node.Name
	l, n := h.from, int(m.PPID&(1<<numberBits-1))
	id := m.PPID &^ wireBit >> numberBits
	if m.Cut {
		off, hasBegun := h.parts[n]
		switch {
		case id != l.id: // what the peer had begun to say before it restarted
			clear(h.parts)
		case by.a.State() != assoc.Closed && (n >= len(l.said) || l.said[n].policy == assoc.AbandonNever):
			r.recordViolation(Lost, name, "message %d ends in the middle", n)
		case !hasBegun || off != m.Offset:
			r.recordViolation(Order, name, "message %d is cut off at octet %d, of %v", n, m.Offset, h.parts)
		}
		delete(h.parts, n)
		return
	}
	if id != l.id || n >= len(l.said) {
		r.recordViolation(Twice, name, "message %d of life %d is delivered in life %d, which has %d", n, id, l.id,
			len(l.said))
		return
	}
	said := &l.said[n]
	off, hasBegun := h.parts[n]
	if m.Offset != off || !hasBegun && len(h.parts) > 0 && !by.a.Extensions().Has(assoc.Interleaving) {
		r.recordViolation(Order, name, "octet %d of message %d, after those of %v", m.Offset, n, h.parts)
		return
	}
	if n < len(h.got) && h.got[n] {
		r.recordViolation(Twice, name, "message %d of life %d", n, l.id)
		return
	}
	end := m.Offset + m.Size
	if end > said.size || !m.More && end != said.size || m.Stream != said.stream || m.Unordered != said.unordered {
		r.recordViolation(Octets, name, "message %d has %d octets on stream %d, unordered %v, of %+v", n, end, m.Stream,
			m.Unordered, said)
		return
	}
	b := scratch[:m.Size]
	if k := m.CopyTo(b, 0); k != m.Size || !bytes.Equal(b, textOf(l, n, said.size)[m.Offset:end]) {
		r.recordViolation(Octets, name, "message %d of life %d, octets %d to %d, differ from what was said", n, l.id,
			m.Offset,
			end)
		return
	}
	if !hasBegun && len(h.parts) > 0 {
		r.tally.Between++
	}
	if delete(h.parts, n); m.More {
		h.parts[n] = end
		r.tally.Pieces++
		return
	}
	if most := l.highestSSN(said); !said.unordered && int(m.SSN) > most && (l.e.t.spec.Keys == 0 || m.Stream != keyStream) {
		r.recordViolation(Order, name, "message %d of stream %d has SSN %d, and no more than %d were sent before it "+
			"since the stream was reset", n, m.Stream, m.SSN, most)
		return
	}
	h.checkWhole(e, n, said)
}

// checkWhole takes the end of a message.
func (h *receivedLog) checkWhole(e *end, n int, said *message) {
	h.got = append(h.got, make([]bool, max(0, n+1-len(h.got)))...)
	h.got[n] = true
	if !said.unordered {
		if last, ok := h.last[said.stream]; ok && last > n {
			e.t.r.recordViolation(Order, e.h.node.Name, "stream %d: message %d after %d", said.stream, n, last)
		}
		h.last[said.stream] = n
	}
	e.t.r.tally.Heard++
	e.t.r.tally.Octets += said.size
	e.t.r.noteTraffic()
}

// judgeMessages looks at a life that is over on both sides: every message has had one end, what was
// acknowledged was delivered.
func (l *incarnation) judgeMessages() {
	if !l.over || l.crashed || l.said == nil {
		return
	}
	r, name := l.e.t.r, l.e.h.node.Name
	if l.open > 0 {
		r.recordViolation(Lost, name, "%d messages have no end", l.open)
	}
	if len(l.heard) == 0 && !r.over {
		return // the peer may hear of it yet
	}
	for _, h := range l.heard {
		if !h.over || h.lossy {
			return
		}
	}
	for n, m := range l.said {
		if m.acked && !l.wasDelivered(n) {
			r.recordViolation(Lost, name, "message %d of life %d is acknowledged, and was never delivered: %+v", n,
				l.id, m)
			break
		}
	}
	if r.over {
		l.said = nil
	}
}

// wasDelivered reports whether a message was delivered.
func (l *incarnation) wasDelivered(n int) bool {
	for _, h := range l.heard {
		if n < len(h.got) && h.got[n] {
			return true
		}
	}
	return false
}
