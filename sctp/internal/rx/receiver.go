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
	MaxBuffer  int      // what RecvBuffer may grow to, see WantedBuffer
	MaxMessage int      // octets of the longest message taken; 0 for any; see Reassembly.initBuffer
	// Octets beyond which a message is delivered in pieces; 0: when RecvBuffer does not hold it.
	PartialPoint int
	PMDCS        int // largest DATA chunk of the path, octets, for silly window avoidance
	InStreams    int // incoming streams
	// The peer may give messages up, and say so by FORWARD TSN (RFC 3758). Then a message without
	// its end is no violation where the next begins.
	MayAbandon    bool
	Interleaved   bool // the peer sends I-DATA (RFC 8260)
	SackDelay     time.Duration
	LoneSackDelay time.Duration // SackDelay where no DATA is expected to carry the SACK; 0: the same
	StrictRFC     bool          // a SACK is delayed also where no DATA comes to carry it
	Steps         *uint64       // where steps are counted; nil: by the Receiver for itself
}

// Admission is what becomes of a DATA chunk.
type Admission uint8

const (
	// New: call exactly one of Placed, Queue and LeaveUnacked for it.
	New Admission = iota
	// Duplicate: received before; the next SACK says so.
	Duplicate
	// Dropped: outside the window; a SACK is due.
	Dropped
)

// Receiver is the receiving half of an association. With many associations a packet costs the cache
// lines that it touches. What each packet needs comes first; rarely used fields come last.
type Receiver struct {
	tracker Tracker
	hadGaps bool // TSNs were missing before the packet in processing
	// underPressure: memory is short, and the window is closed, whatever room there is
	underPressure    bool
	initialBuffer    int32 // Config.RecvBuffer before it has grown
	advertisedWindow int   // the a_rwnd last advertised, less what has come in since
	cfg              mutableConfig
	readRate         readRate
	ackPolicy        AckPolicy
	reassembly       Reassembly

	aside         *setAside // DATA that a reset of streams keeps out; usually nil
	evictedChunks uint64
}

// mutableConfig is what may change of a Config.
type mutableConfig struct{ RecvBuffer, MaxBuffer, PartialPoint, PMDCS int }

// NewReceiver returns a receiver that expects cfg.PeerTSN first.
func NewReceiver(cfg Config) *Receiver {
	r := new(Receiver)
	r.Init(cfg)
	return r
}

// Init makes r what NewReceiver returns.
func (r *Receiver) Init(cfg Config) {
	*r = Receiver{}
	r.resetState(cfg)
	r.reassembly.initBuffer(cfg.PeerTSN, cfg.RecvBuffer, cfg.MaxMessage, cfg.InStreams)
	r.reassembly.ext = newExtensions(cfg)
	if r.reassembly.workSteps = cfg.Steps; r.reassembly.workSteps == nil {
		r.reassembly.workSteps = new(uint64)
	}
}

// resetState resets everything but the reassembly.
func (r *Receiver) resetState(cfg Config) {
	*r = Receiver{
		tracker:          *NewTracker(cfg.PeerTSN),
		ackPolicy:        NewAckPolicy(cfg.SackDelay, cfg.LoneSackDelay, cfg.StrictRFC),
		underPressure:    r.underPressure,
		advertisedWindow: cfg.RecvBuffer,
		cfg:              mutableConfig{cfg.RecvBuffer, cfg.MaxBuffer, cfg.PartialPoint, cfg.PMDCS},
		reassembly:       r.reassembly,
		initialBuffer:    int32(cfg.RecvBuffer),
		evictedChunks:    r.evictedChunks,
	}
}

// Admit decides about a DATA chunk by its TSN and the receive window (section 6.2). With the window
// closed it takes a chunk only below the highest TSN received, in place of the highest held for
// reordering. With too many placed messages ahead of their SSN it takes no further one.
func (r *Receiver) Admit(d wire.Data) Admission {
	return r.admit(d.TSN(), d.Stream(), wire.Chunk(d), r.reassembly.isBlockedByMissingSSN(d))
}

// admit is Admit for both kinds of chunk. isBlocked says that it would wait behind too many others.
func (r *Receiver) admit(t wire.TSN, stream wire.StreamID, c wire.Chunk, isBlocked bool) Admission {
	if found := r.tracker.Check(t); found != Fresh {
		return r.refuse(t, found)
	}
	if r.aside != nil && r.aside.keepsOut(t, stream, c) {
		return r.drop()
	}
	if r.underPressure && !(r.tracker.HasGaps() && t == r.tracker.Cum()+1) || isBlocked {
		return r.drop()
	}
	for r.reassembly.Window() == 0 {
		gone, ok := r.reassembly.Evict(t)
		if !ok {
			return r.drop()
		}
		r.tracker.Remove(gone)
		r.evictedChunks++
	}
	return New
}

// refuse is Admit for a TSN that is not fresh.
func (r *Receiver) refuse(t wire.TSN, found Arrival) Admission {
	if found == TooFarAhead {
		return r.drop()
	}
	r.tracker.NoteDuplicate(t)
	r.ackPolicy.NoteLoss()
	r.ackPolicy.NoteDuplicate()
	r.ackPolicy.NoteData(true)
	return Duplicate
}

// drop is Admit for a chunk that is not to be had now.
func (r *Receiver) drop() Admission {
	r.LeaveUnacked()
	return Dropped
}

// Placed counts an admitted chunk as received without holding it: its data was placed, or is
// acknowledged and discarded. It costs no window. The chunk must be a whole message: a fragment
// would be missing from its message.
func (r *Receiver) Placed(d wire.Data) {
	r.tracker.Add(d.TSN())
	r.ackPolicy.NoteData(d.I())
	if r.isFrozen() {
		return // what is held stays as it is
	}
	if !d.U() {
		r.reassembly.MarkDelivered(d.Stream(), d.SSN(), d.TSN())
	}
	if r.isShrinking() {
		r.advertisedWindow = max(r.advertisedWindow-len(d.Payload()), 0)
		r.fitBuffer()
	}
	r.reassembly.Check(r.tracker.Cum()) // PacketDone does it again, for its error
}

// Queue counts an admitted chunk as received and holds it for delivery. d lies in buf, which is
// retained if need be; buf may be nil. After an error, a *ViolationError or ErrMessageTooBig, the
// association is to be aborted.
func (r *Receiver) Queue(d wire.Data, buf *rawio.Buf) error {
	r.tracker.Add(d.TSN())
	r.ackPolicy.NoteData(d.I())
	r.advertisedWindow = max(r.advertisedWindow-len(d.Payload()), 0)
	r.readRate.received += len(d.Payload())
	if r.isFrozen() {
		r.freeze(d.TSN(), wire.Chunk(d), len(d.Payload()))
		return nil
	}
	if err := r.reassembly.Add(d, buf); err != nil {
		return err
	}
	return r.reassembly.Check(r.tracker.Cum())
}

// LeaveUnacked drops an admitted chunk as if it had never been received. A SACK is due.
func (r *Receiver) LeaveUnacked() { r.ackPolicy.NoteData(true) }

// SetPMDCS changes Config.PMDCS.
func (r *Receiver) SetPMDCS(n int) { r.cfg.PMDCS = n }

// PacketDone ends a packet that contained DATA. After an error, a *ViolationError, the association
// is to be aborted.
func (r *Receiver) PacketDone(now rawio.Time) error {
	gaps := r.tracker.HasGaps()
	if gaps {
		r.ackPolicy.NoteLoss()
	}
	r.ackPolicy.PacketDone(now, gaps || r.hadGaps)
	if r.hadGaps = gaps; r.isFrozen() {
		return nil
	}
	if err := r.reassembly.Check(r.tracker.Cum()); err != nil {
		return err
	}
	if r.reassembly.interleaves() {
		r.reassembly.dropRests()
		r.reassembly.deliverPartialInterleaved(r.reservedWindow(), r.cfg.PartialPoint)
		return nil
	}
	return r.reassembly.deliverPartial(r.tracker.Cum(), r.reservedWindow(), r.cfg.PartialPoint)
}

// reservedWindow is how much room to keep beside a message in assembly. With less than two full
// chunks the peer may stop sending: silly window avoidance, on both sides, takes one of them.
func (r *Receiver) reservedWindow() int { return min(2*r.cfg.PMDCS, r.cfg.RecvBuffer/2) }

// SackDue reports whether a SACK has to go now.
func (r *Receiver) SackDue(now rawio.Time) bool { return r.ackPolicy.Due(now) }

// HoldSack holds a SACK that is due only for the number of packets, until DATA carries it, or lets
// it go.
func (r *Receiver) HoldSack(on bool) { r.ackPolicy.Hold(on) }

// SackNow reports whether a SACK is due and should not wait for the rest of a batch of packets.
func (r *Receiver) SackNow() bool { return r.ackPolicy.DueNow() }

// SackPending reports whether a SACK is to be bundled with outgoing DATA (section 6.1).
func (r *Receiver) SackPending() bool { return r.ackPolicy.Pending() }

// NoteDataSent notes that DATA goes to the peer.
func (r *Receiver) NoteDataSent(now rawio.Time) { r.ackPolicy.NoteDataSent(now) }

// Deadline returns when SackDue becomes true by itself, or Never.
func (r *Receiver) Deadline() rawio.Time { return r.ackPolicy.Deadline() }

// AppendSack appends a SACK chunk of at most room octets, room >= 16, and counts it as sent. With
// less room it returns b and changes nothing.
func (r *Receiver) AppendSack(b []byte, room int) []byte {
	if room < wire.SackLen(0, 0) {
		return b
	}
	r.ackPolicy.NoteSackSent()
	return r.tracker.AppendSack(b, uint32(r.updateAdvertised()), room)
}

// updateAdvertised returns the a_rwnd to send. To avoid the silly window syndrome it lets the
// window grow by a worthwhile step only (section 6.2, RFC 1122 section 4.2.3.3).
func (r *Receiver) updateAdvertised() int {
	w := r.Window()
	if step := min(r.cfg.RecvBuffer/2, r.cfg.PMDCS); w < r.advertisedWindow || w-r.advertisedWindow >= step {
		r.advertisedWindow = w
	}
	return r.advertisedWindow
}

// SetSackDelay changes Config.SackDelay and LoneSackDelay, for the next SACK.
func (r *Receiver) SetSackDelay(delay, lone time.Duration) { r.ackPolicy.setDelay(delay, lone) }

// DemandSack makes a SACK due again that was not sent after all.
func (r *Receiver) DemandSack() { r.ackPolicy.Demand() }

// NoteCumAckSent notes that a SHUTDOWN has acknowledged the cumulative TSN (section 9.2).
func (r *Receiver) NoteCumAckSent() { r.ackPolicy.NoteSackSent() }

// CumTSN returns the Cumulative TSN.
func (r *Receiver) CumTSN() wire.TSN { return r.tracker.Cum() }

// HasGaps reports whether a TSN is missing below the highest received.
func (r *Receiver) HasGaps() bool { return r.tracker.HasGaps() }

// HasMissing says whether messages of the peer are incomplete or out of order: a TSN, a fragment or
// an SSN is missing. A TSN that the peer has given up counts as received.
func (r *Receiver) HasMissing() bool {
	if r.isFrozen() { // what is frozen may complete the others
		return r.tracker.HasGaps()
	}
	g := &r.reassembly
	return r.tracker.HasGaps() || g.byLastTSN.firstIncomplete() != nil || g.ext.hasOpen() ||
		g.outOfOrder.count > g.streams.numPlaceholders && len(g.streams.due) == 0
}

// HasDups reports whether duplicates wait to be reported.
func (r *Receiver) HasDups() bool { return r.tracker.HasDups() }

// Window returns the octets of user data that there is room for.
func (r *Receiver) Window() int {
	if r.underPressure {
		return 0
	}
	return r.reassembly.Window()
}

// Buffered returns the octets of user data held.
func (r *Receiver) Buffered() int { return r.reassembly.Used() }

// Held returns the octets of memory that the receiver keeps: messages and their packet buffers,
// tables of streams and of TSNs, and what is kept for reuse.
func (r *Receiver) Held() int {
	return int(unsafe.Sizeof(*r)) + r.tracker.Held() + r.reassembly.Held() + r.aside.memory()
}

// Steps returns how many messages, and links to them, DATA chunks and reads have looked at. That is
// all work whose time varies.
func (r *Receiver) Steps() uint64 { return *r.reassembly.workSteps }

// Stream returns the SSN of the next message of a stream to be delivered, and how many complete
// ones wait for it. known is false if neither the stream nor a near one was used.
func (r *Receiver) Stream(id wire.StreamID) (next wire.SSN, waiting int, known bool) {
	s := r.reassembly.streams.table.At(uint16(id))
	if s == nil {
		return 0, 0, false
	}
	if !s.hasWaiting {
		return s.nextSSN, 0, true
	}
	return s.nextSSN, int(r.reassembly.queueOf(id).count), true
}

// Evicted returns how many DATA chunks were dropped after they had been received, to make room for
// others.
func (r *Receiver) Evicted() uint64 { return r.evictedChunks }

// Receive returns the next message, or piece of one, in delivery order. It counts against the
// window until Release.
func (r *Receiver) Receive() (*Message, bool) { return r.reassembly.Pop() }

// Release gives a message's memory back. A SACK is due when the window can grow by a quarter of the
// receive buffer (section 6.2).
func (r *Receiver) Release(m *Message) {
	r.readRate.read += m.Size
	r.reassembly.Release(m)
	r.noteRoom()
}

// noteRoom notes that less may be held than before.
func (r *Receiver) noteRoom() {
	if r.isShrinking() {
		r.fitBuffer()
	}
	if r.Window()-r.advertisedWindow >= r.cfg.RecvBuffer/4 {
		r.ackPolicy.Demand()
	}
}

// CutOff ends the message that is delivered in pieces, when the association has ended.
func (r *Receiver) CutOff() { r.reassembly.CutOff() }

// Close gives all memory back except what the upper layer has yet to release.
func (r *Receiver) Close() {
	r.closeAside()
	r.reassembly.Close()
}

// Restart begins anew, for a peer that has restarted (section 5.2.4, action A). Everything is
// forgotten but the messages that Receive has returned. They count against the new window until
// they are released, so that restarts cannot make the upper layer hold ever more. cfg.MaxMessage
// must be as before.
func (r *Receiver) Restart(cfg Config) {
	r.closeAside()
	r.reassembly.Restart(cfg.PeerTSN, cfg.InStreams)
	r.reassembly.ext = newExtensions(cfg)
	r.reassembly.dataLimit = cfg.RecvBuffer
	r.resetState(cfg)
}
