package tx

import (
	"cmp"
	"slices"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Config is what a Sender is made with.
type Config struct {
	TSN         wire.TSN                   // the Initial TSN
	StrictRFC   bool                       // of RFC 9260: Max.Burst bounds what leaves at once, not the pace
	NoDelay     bool                       // nothing waits for more to go with it
	NoFragments bool                       // no message that fits a chunk is cut
	SendBuffer  int                        // octets of user data that Enqueue takes unacknowledged; 0: see SendBuffer
	MaxBurst    int                        // packets in one transmission opportunity (Max.Burst), 0 means no limit
	MaxSegment  int                        // octets of user data of a DATA chunk, 0 means no limit
	RTTs        *counters.CompactHistogram // gets each measurement of a round trip time; may be nil
	Rand        func() uint32              // a random number that the peer cannot guess; nil: nothing is withheld
	Steps       *uint64                    // where steps are counted; nil: by the Sender for itself
}

// Sender is the sending half of an association.
type Sender struct {
	// What is rare.
	pathSuspectedAt     rawio.Time                   // when a path was last left
	retransmittedOctets uint64                       // of user data, of those in stats.Octets
	recentLosses        *[maxRecentLosses]recentLoss // what was taken for lost recently, by TSN; nil: nothing ever was
	sentSpans           *sentSpans                   // nil while the peer's window is not narrow
	ssnBlockEnds        *sparse.Table[wire.TSN]      // of each stream, see ssnBlock; nil before one has ended

	// What acknowledgements look at; the end of outstanding is for them too.
	sink            Sink
	maxRwnd         int       // largest a_rwnd seen
	detachedOctets  int       // octets that Detach has copied
	recoveryExit    wire.TSN  // where Fast Recovery ends
	latestDelivered sendOrder // the last of what has arrived, of all that was sent
	ackCredit       int       // steps that SACKs have paid for and not taken
	sack            sackInProgress

	// From here on, and at the end of sack, are the fields that sending a message looks at,
	// see PrefetchSend.
	pathsToMark PathSet // where T3-rtx has more to mark
	work        workBudget

	cfg          Config
	source       Source
	outStreams   int32
	primaryIndex int32 // of paths

	paths   []*Path
	onePath [1]*Path // paths, if it is but one

	queuedOctets     int              // octets in queue
	earliestExpiryAt rawio.Time       // no message in queue or slot expires earlier
	bufferedOctets   int              // octets that came through Enqueue and are not acknowledged
	current          currentMessage   // the message being cut
	fault            *invariant.Error // the Source has broken its word: it is asked no more
	detachedUpTo     wire.TSN         // up to which TSN what Detach has copied is kept, for Held
	sackNow          bool

	burstLeft         int        // packets left in this transmission opportunity
	ackedOctets       int        // octets of chunks acknowledged since it began
	burstCredit       int        // packets that earlier ones have left to this one
	deferral          deferral   // what is not sent in it
	enqueuedSinceSack bool       // a message was queued since an opportunity that a SACK brought about
	moreExpected      bool       // see Expect
	coalesceEndAt     rawio.Time // until when what is queued waits for more, or Never

	inRecovery        bool // in Fast Recovery (7.2.4)
	bypassCwnd        bool // the packet that ignores cwnd on entering it is still to be sent
	ecnEnabled        bool // the peer echoes congestion marks
	ecnEchoed         bool // it has done so since the last SACK
	zeroWindowProbing bool // the only TSN outstanding is a zero window probe
	probeAnswered     bool // a SACK has come since it was last sent
	probeCutsToWindow bool // probeAt is of a chunk that is cut to the peer's window
	cutToWindow       bool // the next chunk is

	lastAckedAt rawio.Time // when something has arrived last
	rackAt      rawio.Time // when what is missing may be lost, or Never
	paceAt      rawio.Time // when the packet that Poll held back may go, or Never
	probeAt     rawio.Time // when a zero window probe may go, or a shorter chunk, see mayProbeWindow; or Never
	withheld    withheldChunk
	tailProbe   tailProbe
	stats       commonStats

	queue        messageQueue
	nextSSN      sparse.Table[wire.SSN] // next SSN of each stream
	lastOfStream sparse.Table[wire.TSN] // the last chunk of each stream, see linkInStream
	outstanding  outstanding
}

// currentMessage holds the message that is being cut into chunks, or that waits for room.
type currentMessage struct {
	msg       Message
	offset    int // octets already sent
	ssn       wire.SSN
	loaded    bool
	fromQueue bool // came through Enqueue
}

// beginMessage begins with msg.
func (l *currentMessage) beginMessage(queued bool) { l.loaded, l.offset, l.fromQueue = true, 0, queued }

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

// commonStats are those of the Stats that are not rare; most associations have no others.
type commonStats struct {
	Chunks, Octets, Retransmits uint64
	rareCounters                *Stats // nil until there are any
}

// rareStats returns the Stats that are not among the usual ones.
func (s *Sender) rareStats() *Stats {
	if s.stats.rareCounters == nil {
		s.stats.rareCounters = new(Stats)
	}
	return s.stats.rareCounters
}

// NewSender returns a sender without paths.
func NewSender(cfg Config) *Sender {
	s := new(Sender)
	s.Init(cfg)
	return s
}

// Init makes it what NewSender returns.
func (s *Sender) Init(cfg Config) {
	*s = Sender{cfg: cfg, probeAt: rawio.Never, coalesceEndAt: rawio.Never, paceAt: rawio.Never, rackAt: rawio.Never,
		earliestExpiryAt: rawio.Never, pathSuspectedAt: rawio.Time(-suspectInterval), burstLeft: cfg.MaxBurst,
		withheld: withheldChunk{sendAt: rawio.Never}, work: workBudget{steps: cfg.Steps}}
	if s.work.steps == nil {
		s.work.steps = new(uint64)
	}
	s.outstanding.initTSN(cfg.TSN)
}

// SetPeer takes the peer's a_rwnd and the number of outgoing streams from INIT or INIT ACK.
func (s *Sender) SetPeer(arwnd uint32, outStreams int) {
	s.outStreams = int32(outStreams)
	s.setRwnd(arwnd)
}

// SetUpper sets the supplier of messages, and what hears of those given to Enqueue. Either may be
// nil.
func (s *Sender) SetUpper(src Source, sink Sink) { s.source, s.sink = src, sink }

// Copy returns another Sender like this one, which may be made anew then.
func (s *Sender) Copy() *Sender {
	c := *s
	c.paths = slices.Clone(s.paths)
	if len(s.outstanding.chunkRing) == initialRecords {
		c.outstanding.chunkRing = c.outstanding.inlineRecords[:]
	}
	return &c
}

// AddPath adds a destination address. The first is the primary.
func (s *Sender) AddPath(p *Path) error {
	if len(s.paths) >= MaxPaths {
		return ErrPaths
	}
	p.index = uint8(len(s.paths))
	p.rttEst.rttSamples = s.cfg.RTTs
	if s.paths == nil {
		s.paths = s.onePath[:0]
	}
	s.paths = append(s.paths, p)
	return nil
}

// Paths returns the destination addresses in the order they were added.
func (s *Sender) Paths() []*Path { return s.paths }

// SetPrimary makes path i the primary path.
func (s *Sender) SetPrimary(i int) { s.primaryIndex = int32(i) }

// Primary returns the primary path.
func (s *Sender) Primary() *Path { return s.paths[s.primaryIndex] }

// MaxPayload returns the octets of user data that one DATA chunk carries. It fits a packet with a
// SACK on every path that may carry DATA (AMDCS, sections 6.9 and 7.3). An address that the peer
// has listed, but that never answers, does not make chunks small. Config.MaxSegment may make them
// shorter.
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
	c.SendBuffer, c.MaxBurst, c.NoDelay, c.NoFragments, c.MaxSegment = sendBuffer, maxBurst, noDelay, noFragments,
		maxSegment
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
	case n > s.SendBuffer()-s.bufferedOctets:
		return ErrSendBufferFull
	}
	if m.Expires != 0 {
		s.earliestExpiryAt = min(s.earliestExpiryAt, m.Expires)
	}
	if s.enqueuedSinceSack, s.bufferedOctets = true, s.bufferedOctets+n; s.queue.length == 0 && !s.current.loaded {
		s.current.msg = *m // it is next: to queue it would look at memory that is needed for nothing else
		s.current.beginMessage(true)
	} else {
		s.queue.push(m)
		s.queuedOctets += n
	}
	return nil
}

// CumTSN returns the Cumulative TSN Ack Point.
func (s *Sender) CumTSN() wire.TSN { return s.outstanding.firstUnacked - 1 }

// NextTSN returns the TSN that the next new DATA chunk will have.
func (s *Sender) NextTSN() wire.TSN { return s.outstanding.nextTSN }

// Outstanding returns how many DATA chunks are not acknowledged cumulatively.
func (s *Sender) Outstanding() int { return s.outstanding.len() }

// Flight returns the octets of DATA chunks in flight over all paths, with header and padding.
func (s *Sender) Flight() int { return s.outstanding.flightSize }

// DataInFlight returns the octets of user data in flight.
func (s *Sender) DataInFlight() int { return s.outstanding.dataInFlight }

// Rwnd returns the octets of user data that the peer still takes.
func (s *Sender) Rwnd() int { return max(s.outstanding.rwnd, 0) }

// Queued returns the octets of user data given to Enqueue and not sent yet.
func (s *Sender) Queued() int {
	n := s.queuedOctets
	if s.current.loaded && s.current.fromQueue {
		n += s.current.msg.Len() - s.current.offset
	}
	return n
}

// Fault returns a broken rule of the Source, or a contradiction of this package in itself, or nil.
// With a fault the association is to be aborted.
func (s *Sender) Fault() *invariant.Error {
	if s.fault != nil {
		return s.fault
	}
	return s.outstanding.fault
}

// Steps returns how many chunks, gap blocks and paths acknowledgements and timers have looked at.
// That is all work that does not take the same time for each packet.
func (s *Sender) Steps() uint64 { return *s.work.steps }

// Stats returns the counters.
func (s *Sender) Stats() Stats { return s.stats.toStats() }

// toStats is the Stats.
func (u *commonStats) toStats() (all Stats) {
	if u.rareCounters != nil {
		all = *u.rareCounters
	}
	all.Chunks, all.Octets, all.Retransmits = u.Chunks, u.Octets, u.Retransmits
	return all
}

// newChunkCount is how many chunks were sent, each counted once.
func (u *commonStats) newChunkCount() uint64 { return u.Chunks - u.Retransmits }

// Idle reports that there is nothing to wait for before a shutdown (section 9.2). Nothing is
// outstanding, queued, or to be had from the Source.
func (s *Sender) Idle(now rawio.Time) bool {
	return s.outstanding.len() == 0 && !s.loadMessage(now, s.MaxPayload())
}

// NextTimeout returns when HandleTimeout, Expire or Poll has something to do.
func (s *Sender) NextTimeout() rawio.Time {
	t := min(s.earliestExpiryAt, s.rackAt, s.withheld.sendAt)
	if s.current.loaded || s.queue.length > 0 {
		if s.paceAt == rawio.Never { // else it waits for that, whatever it has waited for before
			t = min(t, s.probeAt, s.coalesceEndAt)
		}
		t = min(t, s.paceAt)
	} else if s.outstanding.numToRetransmit > 0 {
		t = min(t, s.paceAt)
	}
	for _, p := range s.paths {
		t = min(t, p.t3At, p.ptoAt)
	}
	return t
}

func (s *Sender) setRwnd(arwnd uint32) {
	s.outstanding.rwnd = max(int(arwnd)-s.outstanding.dataInFlight, 0)
	s.maxRwnd = max(s.maxRwnd, int(arwnd))
}
