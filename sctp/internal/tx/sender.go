package tx

import (
	"slices"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/invariant"
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

// Sender is the sending half of an association. Each group has its methods in the file of its
// topic. What a message on its way out looks at comes first, up to the records of outstanding, see
// PrefetchSend.
type Sender struct {
	cfg          Config
	paths        []*Path
	onePath      [1]*Path // paths, if it is but one
	primaryIndex int32    // of paths
	sackNow      bool     // every chunk asks for its SACK
	ecn          ecnEcho  // congestion marks

	upper   upperLayer // what supplies messages, and hears of them
	queue   sendQueue  // what waits to be sent
	streams outStreams
	burst   burst      // what may leave at once, and what waits for more
	window  peerWindow // what the peer has room for

	sack      sackInProgress
	recovery  lossRecovery // what is lost, and the reaction to it
	tailProbe tailProbe
	withheld  withheldChunk
	delivered lastDelivered // how far the order of sending is known to have arrived

	stats commonStats
	work  workBudget // how much is done at once

	outstanding outstanding // what was sent, and is not acknowledged for good

	detached detachedOctets // memory that users' data was copied to
}

// NewSender returns a sender without paths.
func NewSender(cfg Config) *Sender {
	s := new(Sender)
	s.Init(cfg)
	return s
}

// Init makes it what NewSender returns.
func (s *Sender) Init(cfg Config) {
	*s = Sender{cfg: cfg, work: workBudget{steps: cfg.Steps}}
	s.queue.earliestExpiryAt, s.window.probeAt, s.withheld.sendAt = rawio.Never, rawio.Never, rawio.Never
	s.burst = burst{left: cfg.MaxBurst, coalesceEndAt: rawio.Never, paceAt: rawio.Never}
	s.recovery.rackAt, s.recovery.pathSuspectedAt = rawio.Never, rawio.Time(-suspectInterval)
	if s.work.steps == nil {
		s.work.steps = new(uint64)
	}
	s.outstanding.initTSN(cfg.TSN)
}

// SetPeer takes the peer's a_rwnd and the number of outgoing streams from INIT or INIT ACK.
func (s *Sender) SetPeer(arwnd uint32, outStreams int) {
	s.streams.count = int32(outStreams)
	s.setRwnd(arwnd)
}

// SetUpper sets the supplier of messages, and what hears of those given to Enqueue. Either may be
// nil.
func (s *Sender) SetUpper(src Source, sink Sink) { s.upper.source, s.upper.sink = src, sink }

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

// RenewPath has path i, over which nothing is in flight, be another: its owner has made it anew.
func (s *Sender) RenewPath(i int) {
	p := s.paths[i]
	p.index, p.rttEst.rttSamples = uint8(i), s.cfg.RTTs
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
			n = min(n, p.longestNewChunk())
		}
	}
	n -= wire.SackLen(0, 0) + s.dataHeaderLen()
	if s.cfg.MaxSegment > 0 {
		n = min(n, s.cfg.MaxSegment)
	}
	return n
}

// dataHeaderLen is what a chunk has before its user data.
func (s *Sender) dataHeaderLen() int {
	if s.Interleaves() {
		return wire.IDataHeaderLen
	}
	return wire.DataHeaderLen
}

// Reconfigure changes Config.SendBuffer, MaxBurst, NoDelay, NoFragments and MaxSegment.
func (s *Sender) Reconfigure(sendBuffer, maxBurst int, noDelay, noFragments bool, maxSegment int) {
	c := &s.cfg
	c.SendBuffer, c.MaxBurst, c.NoDelay, c.NoFragments, c.MaxSegment = sendBuffer, maxBurst, noDelay, noFragments,
		maxSegment
}

// SetSackNow makes every DATA chunk carry the I bit, for SHUTDOWN-PENDING (section 6.1).
func (s *Sender) SetSackNow(on bool) { s.sackNow = on }

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

// Fault returns a broken rule of the Source, or a contradiction of this package in itself, or nil.
// With a fault the association is to be aborted.
func (s *Sender) Fault() *invariant.Error {
	if s.upper.fault != nil {
		return s.upper.fault
	}
	if y := s.queue.streams; y != nil && y.fault != nil {
		return y.fault
	}
	return s.outstanding.fault
}

// Steps returns how many chunks, gap blocks and paths acknowledgements and timers have looked at.
// That is all work that does not take the same time for each packet.
func (s *Sender) Steps() uint64 { return *s.work.steps }

// Stats returns the counters.
func (s *Sender) Stats() Stats { return s.stats.toStats() }

// Idle reports that there is nothing to wait for before a shutdown (section 9.2). Nothing is
// outstanding, queued, or to be had from the Source.
func (s *Sender) Idle(now rawio.Time) bool {
	return s.outstanding.len() == 0 && s.queue.numHeld() == 0 && !s.loadMessage(now, s.MaxPayload())
}

// NextTimeout returns when HandleTimeout, Expire or Poll has something to do.
func (s *Sender) NextTimeout() rawio.Time {
	t := min(s.queue.earliestExpiryAt, s.recovery.rackAt, s.withheld.sendAt)
	if !s.queue.isEmpty() {
		if s.burst.paceAt == rawio.Never { // else it waits for that, whatever it has waited for before
			t = min(t, s.window.probeAt, s.burst.coalesceEndAt)
		}
		t = min(t, s.burst.paceAt)
	} else if s.outstanding.numToRetransmit > 0 {
		t = min(t, s.burst.paceAt)
	}
	if s.partial() != nil {
		t = min(t, s.partial().forward.againAt)
	}
	for _, p := range s.paths {
		t = min(t, p.timers.t3At, p.timers.ptoAt)
	}
	return t
}
