package rx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Config is what a Receiver is made with.
type Config struct {
	PeerTSN    wire.TSN // the peer's Initial TSN
	RecvBuffer int      // octets of user data: the a_rwnd of INIT or INIT ACK
	MaxBuffer  int      // what RecvBuffer may grow to, see Wants
	MaxMessage int      // octets of the longest message taken; 0 for any; see Reassembly.begin
	Partial    int      // octets from which on a message is delivered in pieces; 0: when RecvBuffer does not hold it
	PMDCS      int      // largest DATA chunk of the path, octets, for silly window avoidance
	InStreams  int      // incoming streams
	SackDelay  time.Duration
	LoneDelay  time.Duration // SackDelay where no DATA is expected to carry the SACK; 0: the same
	Letter     bool          // a SACK waits for it also where that is in vain
	Steps      *uint64       // where steps are counted; nil: by the Receiver for itself
}

// Admission is what becomes of a DATA chunk.
type Admission uint8

const (
	// New: call exactly one of Placed, Queue and Refuse for it.
	New Admission = iota
	// Duplicate: received before; the next SACK says so.
	Duplicate
	// Dropped: outside the window; a SACK is due.
	Dropped
)

// Receiver is the receiving half of an association. With many associations a packet takes the time of the cache lines that it touches: what each
// needs lies together, from track on; what is rare comes before that and last.
type Receiver struct {
	first   int // Config.RecvBuffer before it has grown
	evicted uint64

	track Tracker
	gaps  bool // TSNs were missing before the packet in processing
	// squeezed: memory is short, and the window closed, whatever there is room for
	squeezed bool
	credit   int // the a_rwnd last advertised, less what has come in since
	cfg      settings
	reading  reading
	ack      AckPolicy
	reasm    Reassembly
}

// settings is what may change of a Config.
type settings struct{ RecvBuffer, MaxBuffer, Partial, PMDCS int }

// NewReceiver returns a receiver that expects cfg.PeerTSN first.
func NewReceiver(cfg Config) *Receiver {
	r := new(Receiver)
	r.Init(cfg)
	return r
}

// Init makes it what NewReceiver returns.
func (r *Receiver) Init(cfg Config) {
	*r = Receiver{}
	r.begin(cfg)
	r.reasm.begin(cfg.PeerTSN, cfg.RecvBuffer, cfg.MaxMessage, cfg.InStreams)
	if r.reasm.steps = cfg.Steps; r.reasm.steps == nil {
		r.reasm.steps = new(uint64)
	}
}

// begin makes all but reasm what it is at first.
func (r *Receiver) begin(cfg Config) {
	*r = Receiver{
		track:    *NewTracker(cfg.PeerTSN),
		ack:      NewAckPolicy(cfg.SackDelay, cfg.LoneDelay, cfg.Letter),
		squeezed: r.squeezed,
		credit:   cfg.RecvBuffer,
		cfg:      settings{cfg.RecvBuffer, cfg.MaxBuffer, cfg.Partial, cfg.PMDCS},
		reasm:    r.reasm,
		first:    cfg.RecvBuffer,
		evicted:  r.evicted,
	}
}

// Admit decides about a DATA chunk by its TSN and the receive window (section 6.2). With the window
// closed it takes a chunk only below the highest TSN received, in place of the highest that is held
// for reordering. With too many placed messages ahead of their SSN it takes none that would be another.
func (r *Receiver) Admit(d wire.Data) Admission {
	t := d.TSN()
	switch r.track.Check(t) {
	case Again:
		r.track.Duplicate(t)
		r.ack.Loss()
		r.ack.Again()
		r.ack.Data(true)
		return Duplicate
	case Beyond:
		r.ack.Data(true)
		return Dropped
	}
	if r.squeezed && !(r.track.Gaps() && t == r.track.Cum()+1) || r.reasm.waitsInVain(d) {
		r.ack.Data(true)
		return Dropped
	}
	for r.reasm.Window() == 0 {
		gone, ok := r.reasm.Evict(t)
		if !ok {
			r.ack.Data(true)
			return Dropped
		}
		r.track.Remove(gone)
		r.evicted++
	}
	return New
}

// Placed counts an admitted chunk as received without holding it: its data is where it belongs, or
// it is acknowledged and discarded. It costs no window. It is to be a whole message: a consumed
// fragment would leave its message without it.
func (r *Receiver) Placed(d wire.Data) {
	r.track.Add(d.TSN())
	r.ack.Data(d.I())
	if !d.U() {
		r.reasm.Skip(d.Stream(), d.SSN(), d.TSN())
	}
	if r.shrinks() {
		r.credit = max(r.credit-len(d.Payload()), 0)
		r.fit()
	}
	r.reasm.Check(r.track.Cum()) // PacketDone does it again, for its error
}

// Queue counts an admitted chunk as received and holds it for delivery. d lies in buf, which is
// retained if need be; buf may be nil. After an error, a *ViolationError or ErrMessageTooBig, the
// association is to be aborted.
func (r *Receiver) Queue(d wire.Data, buf *rawio.Buf) error {
	r.track.Add(d.TSN())
	r.ack.Data(d.I())
	r.credit = max(r.credit-len(d.Payload()), 0)
	r.reading.came += len(d.Payload())
	if err := r.reasm.Add(d, buf); err != nil {
		return err
	}
	return r.reasm.Check(r.track.Cum())
}

// Refuse drops an admitted chunk as if it had never been received. A SACK is due.
func (r *Receiver) Refuse() { r.ack.Data(true) }

// SetPMDCS changes Config.PMDCS.
func (r *Receiver) SetPMDCS(n int) { r.cfg.PMDCS = n }

// PacketDone ends a packet that contained DATA. After an error, a *ViolationError, the association is
// to be aborted.
func (r *Receiver) PacketDone(now rawio.Time) error {
	gaps := r.track.Gaps()
	if gaps {
		r.ack.Loss()
	}
	r.ack.PacketDone(now, gaps || r.gaps)
	r.gaps = gaps
	if err := r.reasm.Check(r.track.Cum()); err != nil {
		return err
	}
	return r.reasm.spill(r.track.Cum(), r.aside(), r.cfg.Partial)
}

// aside is how much room there is to be beside a message in assembly. With less than two full chunks the peer may stop to send: silly window
// avoidance, on both sides, takes one of them.
func (r *Receiver) aside() int { return min(2*r.cfg.PMDCS, r.cfg.RecvBuffer/2) }

// SackDue reports whether a SACK has to go now.
func (r *Receiver) SackDue(now rawio.Time) bool { return r.ack.Due(now) }

// HoldSack has a SACK that is due for the number of packets alone wait for DATA to go with, or lets it go.
func (r *Receiver) HoldSack(on bool) { r.ack.Hold(on) }

// SackNow reports whether a SACK is due and should not wait for the rest of a batch of packets.
func (r *Receiver) SackNow() bool { return r.ack.Now() }

// SackPending reports whether a SACK is to be bundled with outgoing DATA (section 6.1).
func (r *Receiver) SackPending() bool { return r.ack.Pending() }

// Answered notes that DATA goes to the peer.
func (r *Receiver) Answered(now rawio.Time) { r.ack.Answered(now) }

// Deadline returns when SackDue becomes true by itself, or Never.
func (r *Receiver) Deadline() rawio.Time { return r.ack.Deadline() }

// AppendSack appends a SACK chunk of at most room octets, room >= 16, and counts it as sent. With
// less room it returns b and changes nothing.
func (r *Receiver) AppendSack(b []byte, room int) []byte {
	if room < wire.SackLen(0, 0) {
		return b
	}
	r.ack.Sent()
	return r.track.AppendSack(b, uint32(r.advertise()), room)
}

// advertise returns the a_rwnd to send. Avoiding the silly window syndrome (section 6.2, RFC 1122
// section 4.2.3.3) it lets the window grow by a worthwhile step only.
func (r *Receiver) advertise() int {
	w := r.Window()
	if step := min(r.cfg.RecvBuffer/2, r.cfg.PMDCS); w < r.credit || w-r.credit >= step {
		r.credit = w
	}
	return r.credit
}

// SetSackDelay changes Config.SackDelay and LoneDelay, for the next SACK.
func (r *Receiver) SetSackDelay(delay, lone time.Duration) { r.ack.setDelay(delay, lone) }

// DemandSack has a SACK go again that was not sent after all.
func (r *Receiver) DemandSack() { r.ack.Demand() }

// AckSent notes that a SHUTDOWN has acknowledged the cumulative TSN (section 9.2).
func (r *Receiver) AckSent() { r.ack.Sent() }

// CumTSN returns the Cumulative TSN.
func (r *Receiver) CumTSN() wire.TSN { return r.track.Cum() }

// Gaps reports whether a TSN is missing below the highest received.
func (r *Receiver) Gaps() bool { return r.track.Gaps() }

// Missing says whether messages of the peer are incomplete, or wait for others that have not come: a TSN is missing, or a fragment, or
// an SSN. A TSN that the peer has given up (FORWARD TSN, which is not offered yet) counts as received, and is not missing.
func (r *Receiver) Missing() bool {
	g := &r.reasm
	return r.track.Gaps() || g.held.part() != nil || g.waits.n > g.skips && len(g.due) == 0
}

// Dups reports whether duplicates wait to be reported.
func (r *Receiver) Dups() bool { return r.track.Dups() }

// Window returns the octets of user data that there is room for.
func (r *Receiver) Window() int {
	if r.squeezed {
		return 0
	}
	return r.reasm.Window()
}

// Buffered returns the octets of user data held.
func (r *Receiver) Buffered() int { return r.reasm.Used() }

// Held returns the octets of memory that the receiver keeps: messages, packet buffers in which they lie, tables of
// streams and of TSNs, and what is kept for reuse.
func (r *Receiver) Held() int { return int(unsafe.Sizeof(*r)) + r.track.Held() + r.reasm.Held() }

// Steps returns how many messages, and links to them, DATA chunks and reads have looked at: all work that does not
// take the same time for each.
func (r *Receiver) Steps() uint64 { return *r.reasm.steps }

// Stream returns the SSN of the next message of a stream to be delivered, and how many complete ones wait for it; known is false where neither the stream
// nor a near one was used.
func (r *Receiver) Stream(id wire.StreamID) (next wire.SSN, waiting int, known bool) {
	s := r.reasm.streams.At(uint16(id))
	if s == nil {
		return 0, 0, false
	}
	if !s.waits {
		return s.next, 0, true
	}
	return s.next, int(r.reasm.queueOf(id).n), true
}

// Evicted returns how many DATA chunks were dropped after they had been received, to make room for others.
func (r *Receiver) Evicted() uint64 { return r.evicted }

// Receive returns the next message, or piece of one, in delivery order. It counts against the window until Release.
func (r *Receiver) Receive() (*Message, bool) { return r.reasm.Pop() }

// Release gives a message's memory back. When the window can grow by a quarter of the receive buffer
// a SACK that says so is due (section 6.2).
func (r *Receiver) Release(m *Message) {
	r.reading.read += m.Size
	r.reasm.Release(m)
	if r.shrinks() {
		r.fit()
	}
	if r.Window()-r.credit >= r.cfg.RecvBuffer/4 {
		r.ack.Demand()
	}
}

// CutOff ends the message that is delivered in pieces, when the association has ended.
func (r *Receiver) CutOff() { r.reasm.CutOff() }

// Close gives all memory back except what the upper layer has yet to release.
func (r *Receiver) Close() { r.reasm.Close() }

// Restart begins anew, for a peer that has restarted (section 5.2.4, action A). Everything is forgotten
// but the messages that Receive has returned: they count against the new window too until they are
// released, so that restarts cannot make the upper layer hold ever more. Of cfg, MaxMessage is as before.
func (r *Receiver) Restart(cfg Config) {
	r.reasm.Restart(cfg.PeerTSN, cfg.InStreams)
	r.reasm.limit = cfg.RecvBuffer
	r.begin(cfg)
}
