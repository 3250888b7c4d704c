package tx

import (
	"cmp"
	"slices"

	"github.com/rddp-go/rddp/internal/count"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Config is what a Sender is made with.
type Config struct {
	TSN         wire.TSN      // the Initial TSN
	Letter      bool          // of RFC 9260: Max.Burst bounds what leaves at once, not the pace
	NoDelay     bool          // nothing waits for more to go with it
	NoFragments bool          // no message that fits a chunk is cut
	SendBuffer  int           // octets of user data that Enqueue takes and that are not acknowledged yet; 0: see Sender.SendBuffer
	MaxBurst    int           // packets in one transmission opportunity (Max.Burst), 0 means no limit
	MaxSegment  int           // octets of user data of a DATA chunk, 0 means no limit
	Trips       *count.Small  // gets each measurement of a round trip time; may be nil
	Draw        func() uint32 // a number by chance, that the peer cannot guess; nil: nothing is withheld
	Steps       *uint64       // where steps are counted; nil: by the Sender for itself
}

// Sender is the sending half of an association.
type Sender struct {
	// What is rare.
	leftAt       rawio.Time                 // when a path was last left
	resentOctets uint64                     // of user data, of those in stats.Octets
	resent       *[latelyResent]resentChunk // what was taken for lost of late, by TSN; nil: nothing ever was
	spans        *spans                     // nil while the peer's window is not narrow
	blocks       *sparse.Table[wire.TSN]    // of each stream, see ssnBlock; nil before one has ended

	// What acknowledgements look at; the end of ledger is for them too.
	sink    Sink
	maxRwnd int      // largest a_rwnd seen
	copied  int      // octets that Detach has copied
	exit    wire.TSN // where Fast Recovery ends
	latest  sending  // the last of what has arrived, of all that was sent
	until   uint64   // how far steps may go at once
	credit  int      // steps that SACKs have paid for and not taken
	later   later    // see More

	// From here on, and at the end of later, it is what sending a message looks at, see FetchToSend.
	marking PathSet // where T3-rtx has more to mark
	steps   *uint64 // see Steps

	cfg        Config
	src        Source
	outStreams int32
	primary    int32 // of paths

	paths []*Path
	one   [1]*Path // paths, if it is but one

	unsent   int              // octets in queue
	expiry   rawio.Time       // no message in queue or slot expires earlier
	held     int              // octets that came through Enqueue and are not acknowledged
	slot     slot             // the message being cut
	fault    *invariant.Error // the Source has broken its word: it is asked no more
	copiedTo wire.TSN         // up to which TSN what Detach has copied is kept, for Held
	sackNow  bool

	burst  int        // packets left in this transmission opportunity
	acked  int        // octets of chunks acknowledged since it began
	saved  int        // packets that earlier ones have left to this one
	waits  wait       // what is not sent in it
	fed    bool       // a message was queued since an opportunity that a SACK brought about
	more   bool       // see Expect
	moreAt rawio.Time // until when what is queued waits for more, or Never

	recovery   bool // in Fast Recovery (7.2.4)
	urgent     bool // the packet that ignores cwnd on entering it is still to be sent
	ecn        bool // the peer echoes congestion marks
	echoed     bool // it has done so since the last SACK
	probing    bool // the only TSN outstanding is a zero window probe
	probeHeard bool // a SACK has come since it was last sent
	shortening bool // probeAt is of a chunk that is cut to the peer's window
	shorten    bool // the next chunk is

	heard    rawio.Time // when something has arrived last
	rackAt   rawio.Time // when what is missing may be lost, or Never
	paceAt   rawio.Time // when the packet that Poll held back may go, or Never
	probeAt  rawio.Time // when a zero window probe may go, or a shorter chunk, see opens; or Never
	withheld withholding
	tail     tail
	stats    usual

	queue  queue
	ssn    sparse.Table[wire.SSN] // next SSN of each stream
	last   sparse.Table[wire.TSN] // the last chunk of each stream, see chain
	ledger ledger
}

// slot holds the message that is being cut into chunks, or that waits for room.
type slot struct {
	msg    Message
	off    int // octets already sent
	ssn    wire.SSN
	full   bool
	queued bool // came through Enqueue
}

// take begins with msg.
func (l *slot) take(queued bool) { l.full, l.off, l.queued = true, 0, queued }

// Stats are counters since the start.
type Stats struct {
	Chunks          uint64 // DATA chunks sent, each transmission counted
	Octets          uint64 // of user data in them
	Retransmits     uint64 // DATA chunks sent again
	FastRetransmits uint64 // entries into Fast Recovery
	Timeouts        uint64 // T3-rtx expiries
	TailProbes      uint64 // tail-loss probes (RFC 8985 section 7)
	Probes          uint64 // zero window probes, each transmission counted
	Reneged         uint64 // TSNs that the peer acknowledged in a gap block and then no more
	DupsReported    uint64 // duplicate TSNs that the peer listed
	Spurious        uint64 // chunks that were taken for lost and were not
	PathsSuspected  uint64 // times that new data has left a silent path
	Echoes          uint64 // reductions of cwnd because the peer echoed a congestion mark
}

// usual are those of the Stats that are not rare; most associations have no others.
type usual struct {
	Chunks, Octets, Retransmits uint64
	others                      *Stats // nil until there are any
}

// rare returns the Stats that are not among the usual ones.
func (s *Sender) rare() *Stats {
	if s.stats.others == nil {
		s.stats.others = new(Stats)
	}
	return s.stats.others
}

// NewSender returns a sender without paths.
func NewSender(cfg Config) *Sender {
	s := new(Sender)
	s.Init(cfg)
	return s
}

// Init makes it what NewSender returns.
func (s *Sender) Init(cfg Config) {
	*s = Sender{cfg: cfg, probeAt: rawio.Never, moreAt: rawio.Never, paceAt: rawio.Never, rackAt: rawio.Never, expiry: rawio.Never, leftAt: rawio.Time(-leaveRest), burst: cfg.MaxBurst,
		withheld: withholding{until: rawio.Never}, steps: cfg.Steps}
	if s.steps == nil {
		s.steps = new(uint64)
	}
	s.ledger.begin(cfg.TSN)
}

// SetPeer takes the peer's a_rwnd and the number of outgoing streams from INIT or INIT ACK.
func (s *Sender) SetPeer(arwnd uint32, outStreams int) {
	s.outStreams = int32(outStreams)
	s.setRwnd(arwnd)
}

// SetUpper sets who supplies messages and who hears of those given to Enqueue. Either may be nil.
func (s *Sender) SetUpper(src Source, sink Sink) { s.src, s.sink = src, sink }

// Copy returns another Sender like this one, which may be made anew then.
func (s *Sender) Copy() *Sender {
	c := *s
	c.paths = slices.Clone(s.paths)
	if len(s.ledger.recs) == firstRecs {
		c.ledger.recs = c.ledger.own[:]
	}
	return &c
}

// AddPath adds a destination address. The first is the primary.
func (s *Sender) AddPath(p *Path) error {
	if len(s.paths) >= MaxPaths {
		return ErrPaths
	}
	p.index = uint8(len(s.paths))
	p.est.trips = s.cfg.Trips
	if s.paths == nil {
		s.paths = s.one[:0]
	}
	s.paths = append(s.paths, p)
	return nil
}

// Paths returns the destination addresses in the order they were added.
func (s *Sender) Paths() []*Path { return s.paths }

// SetPrimary makes path i the primary path.
func (s *Sender) SetPrimary(i int) { s.primary = int32(i) }

// Primary returns the primary path.
func (s *Sender) Primary() *Path { return s.paths[s.primary] }

// MaxPayload returns the octets of user data that one DATA chunk carries: what fits a packet with a
// SACK on every path that may carry DATA (AMDCS, sections 6.9 and 7.3). An address that the peer has
// listed, but that never answers, is not to make chunks small. Config.MaxSegment may make them shorter.
func (s *Sender) MaxPayload() int {
	n := maxPMDCS
	for _, p := range s.paths {
		if p.State != Unconfirmed {
			n = min(n, p.pmdcs)
		}
	}
	n -= wire.SackLen(0, 0) + wire.DataHeaderLen
	if s.cfg.MaxSegment > 0 {
		n = min(n, s.cfg.MaxSegment)
	}
	return n
}

// Reconfigure changes Config.SendBuffer, MaxBurst, NoDelay, NoFragments and MaxSegment.
func (s *Sender) Reconfigure(sendBuffer, maxBurst int, noDelay, noFragments bool, maxSegment int) {
	c := &s.cfg
	c.SendBuffer, c.MaxBurst, c.NoDelay, c.NoFragments, c.MaxSegment = sendBuffer, maxBurst, noDelay, noFragments, maxSegment
}

// SetSackNow makes every DATA chunk carry the I bit, for SHUTDOWN-PENDING (section 6.1).
func (s *Sender) SetSackNow(on bool) { s.sackNow = on }

// Enqueue copies m, but not its Body, to the end of the send queue.
func (s *Sender) Enqueue(m *Message) error {
	n := m.Len()
	switch {
	case m.HeadLen > HeadCap:
		return ErrHeadLen
	case n == 0:
		return ErrEmptyMessage
	case int32(m.Stream) >= s.outStreams:
		return ErrStream
	case int(m.Path) > len(s.paths):
		return ErrPath
	case n > cmp.Or(s.cfg.SendBuffer, FirstBuffer):
		return ErrMessageTooBig
	case n > s.SendBuffer()-s.held:
		return ErrSendBufferFull
	}
	if m.Expires != 0 {
		s.expiry = min(s.expiry, m.Expires)
	}
	if s.fed, s.held = true, s.held+n; s.queue.n == 0 && !s.slot.full {
		s.slot.msg = *m // it is next: to queue it would look at memory that is needed for nothing else
		s.slot.take(true)
	} else {
		s.queue.push(m)
		s.unsent += n
	}
	return nil
}

// CumTSN returns the Cumulative TSN Ack Point.
func (s *Sender) CumTSN() wire.TSN { return s.ledger.base - 1 }

// NextTSN returns the TSN that the next new DATA chunk will have.
func (s *Sender) NextTSN() wire.TSN { return s.ledger.next }

// Outstanding returns how many DATA chunks are not acknowledged cumulatively.
func (s *Sender) Outstanding() int { return s.ledger.len() }

// Flight returns the octets of DATA chunks in flight over all paths, with header and padding.
func (s *Sender) Flight() int { return s.ledger.flight }

// DataInFlight returns the octets of user data in flight.
func (s *Sender) DataInFlight() int { return s.ledger.data }

// Rwnd returns the octets of user data that the peer still takes.
func (s *Sender) Rwnd() int { return max(s.ledger.rwnd, 0) }

// Queued returns the octets of user data given to Enqueue and not sent yet.
func (s *Sender) Queued() int {
	n := s.unsent
	if s.slot.full && s.slot.queued {
		n += s.slot.msg.Len() - s.slot.off
	}
	return n
}

// Fault returns what the Source has done that it must not, or how this package has contradicted itself, nil as long as neither is so: the
// association is to be aborted.
func (s *Sender) Fault() *invariant.Error {
	if s.fault != nil {
		return s.fault
	}
	return s.ledger.fault
}

// Steps returns how many chunks, gap blocks and paths acknowledgements and timers have looked at: all work that
// does not take the same time for each packet.
func (s *Sender) Steps() uint64 { return *s.steps }

// Stats returns the counters.
func (s *Sender) Stats() Stats { return s.stats.all() }

// all is the Stats.
func (u *usual) all() (all Stats) {
	if u.others != nil {
		all = *u.others
	}
	all.Chunks, all.Octets, all.Retransmits = u.Chunks, u.Octets, u.Retransmits
	return all
}

// fresh is how many chunks were sent, each counted once.
func (u *usual) fresh() uint64 { return u.Chunks - u.Retransmits }

// Idle reports that there is nothing to wait for before a shutdown: nothing outstanding, queued, or
// to be had from the Source (section 9.2).
func (s *Sender) Idle(now rawio.Time) bool {
	return s.ledger.len() == 0 && !s.load(now, s.MaxPayload())
}

// NextTimeout returns when HandleTimeout, Expire or Poll has something to do.
func (s *Sender) NextTimeout() rawio.Time {
	t := min(s.expiry, s.rackAt, s.withheld.until)
	if s.slot.full || s.queue.n > 0 {
		if s.paceAt == rawio.Never { // else it waits for that, whatever it has waited for before
			t = min(t, s.probeAt, s.moreAt)
		}
		t = min(t, s.paceAt)
	} else if s.ledger.nmarked > 0 {
		t = min(t, s.paceAt)
	}
	for _, p := range s.paths {
		t = min(t, p.t3, p.pto)
	}
	return t
}

func (s *Sender) setRwnd(arwnd uint32) {
	s.ledger.rwnd = max(int(arwnd)-s.ledger.data, 0)
	s.maxRwnd = max(s.maxRwnd, int(arwnd))
}
