package tx

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// MaxPaths is the most destination addresses of one association.
const MaxPaths = 64

// PathSet is a set of paths by their index.
type PathSet uint64

// Has reports whether path i is in the set.
func (s PathSet) Has(i int) bool { return s>>uint(i)&1 != 0 }

func (s *PathSet) add(i int) { *s |= 1 << uint(i) }

// PathState is the reachability of a destination address (RFC 9260 sections 5.4 and 8.2, RFC 7829).
type PathState uint8

const (
	// Unconfirmed: no HEARTBEAT has been acknowledged yet, no DATA goes there.
	Unconfirmed PathState = iota
	// Active: usable.
	Active
	// PotentiallyFailed: did not answer recently. It carries DATA only while no path is active.
	PotentiallyFailed
	// Inactive: its error counter has exceeded Path.Max.Retrans.
	Inactive
)

func (s PathState) String() string {
	switch s {
	case Unconfirmed:
		return "unconfirmed"
	case Active:
		return "active"
	case PotentiallyFailed:
		return "potentially failed"
	}
	return "inactive"
}

// minPacket is the smallest SCTP packet in octets that a path is taken to carry, whatever is said
// of it. IPv6 guarantees more, and IPv4 hosts take 576 octets.
const minPacket = 512

// maxPMDCS keeps the padded chunk length within its 16-bit field.
const maxPMDCS = 65532

// Path is one destination address of the peer with what RFC 9260 keeps for each. That is PMTU, RTO,
// congestion control, T3-rtx, flight size and error counter.
type Path struct {
	// What is rare.

	tsnsSentAtReduction uint64 // TSNs that had been sent when cwnd was last reduced
	reordering          reordering

	// What acknowledgements look at.

	// Errors is the owner's error counter of section 8.2.
	Errors          int
	cwndFull        sendOrder // what was sent before that was in flight when cwnd was full, see cwnd_limited.go
	latestDelivered sendOrder // the last of what has arrived, of all that was sent here
	renegedOctets   int       // were taken back: of what is acknowledged next so many open no window
	sack            pathSack
	spuriousTimeout spuriousTimeout

	// What sending a message looks at, too: first the round trip.

	rttEst     rttEstimator
	timing     timedChunk
	provedRTT  time.Duration // the shortest round trip that the peer could not shorten, 0 before the first
	sackDelays sackDelays

	ackedTooSoon    bool // SACKs came sooner than proved, see narrow_window.go
	noRTTSinceProbe bool // no round trip was since the last probe for a lost tail
	onePacketOnly   bool // T3-rtx has expired: one packet in flight until an acknowledgement (7.2.3)

	// Where it leads, and whether it does.

	index uint8
	// State is set by the owner; it decides where DATA goes.
	State PathState
	// HeartbeatsOnSuspicion is set by an owner that sends a HEARTBEAT to the path when it is
	// suspected.
	HeartbeatsOnSuspicion bool
	// Local and Remote are the transport addresses. An invalid Local lets the link choose.
	Local, Remote netip.AddrPort
	suspicion     suspicion

	// How long packets may be.

	// BasePMTU is set by an owner that probes the path MTU. Packets of at most so many octets pass
	// in any case. So the loss of longer ones may be a black hole (RFC 8899 section 4.3). 0: no
	// packet is suspected.
	BasePMTU int
	// CutFrom is set by the owner. Packets of at least so many octets, where they are longer than
	// the MTU, are sent as IP fragments. 0: all of them; less: none.
	CutFrom int32
	// SafePMTU is set by an owner whose link makes no fragments at all. Packets of so many octets
	// pass in any case, and no chunk is cut that needs a longer one. 0: chunks fill packets.
	SafePMTU          uint16
	blackHoleTimeouts uint16 // T3-rtx expiries for packets above BasePMTU, with none acknowledged since
	mtu               int
	pmdcs             int
	fragmentAgainAt   rawio.Time // no other packet for the sake of its length earlier, see oversized.go

	// What is in flight, and how much may be.

	flight      pathFlight
	cc          cc.Controller
	pacer       cc.Pacer     // cc, if it asks for pacing
	rateSampler *rateSampler // if it asks for delivery-rate samples, or nil
	pacing      pacing
	timers      pathTimers
	lastSentAt  rawio.Time // the last transmission of DATA, or Never
	idleSince   rawio.Time // since when the destination is idle, or Never before its first DATA
}

// pathFlight is what is in flight to a path.
type pathFlight struct {
	octets int        // of DATA chunks, with header and padding
	tsns   tsnset.Set // them
	first  wire.TSN   // the earliest; meaningful while octets > 0
}

// add counts a chunk as in flight.
func (f *pathFlight) add(t wire.TSN, octets int) {
	f.tsns.Add(t)
	if f.octets == 0 || t.Less(f.first) {
		f.first = t
	}
	f.octets += octets
}

// pathSack is what the SACK in processing says about one path.
type pathSack struct {
	priorFlight       int           // flight size before it
	priorDelivered    sendOrder     // the path's before it
	ackedFirst        bool          // the earliest outstanding TSN is acknowledged
	sackNowAsked      bool          // some of what was sent once was to be acknowledged at once
	ackedOctets       int           // octets newly acknowledged
	cwndLimitedOctets int           // those of them that were in flight when cwnd was full
	dupOctets         int           // octets of duplicates
	rtt               time.Duration // a measurement, or 0
	minRTT            time.Duration // the shortest of what was sent once, or 0
}

// NewPath returns a path in state Unconfirmed. mtu is the largest SCTP packet in octets, common
// header included; f nil means cc.NewCubic.
func NewPath(local, remote netip.AddrPort, mtu int, rto RTOConfig, f cc.Factory) *Path {
	if f == nil {
		f = cc.NewCubic
	}
	p := &Path{Local: local, Remote: remote, rttEst: newRTTEstimator(rto), lastSentAt: rawio.Never,
		idleSince: rawio.Never}
	p.timers.stop()
	p.setMTU(mtu)
	p.cc = f(p.pmdcs, remote.Addr().Is6() && !remote.Addr().Is4In6())
	p.pacer, _ = p.cc.(cc.Pacer)
	if m, ok := p.cc.(cc.Modeler); ok {
		p.rateSampler = &rateSampler{cc: m}
	}
	return p
}

func (p *Path) setMTU(mtu int) {
	p.mtu = max(mtu, minPacket)
	p.pmdcs = min((p.mtu-wire.CommonHeaderLen)&^3, maxPMDCS)
}

// SetMTU changes the path MTU: the largest SCTP packet in octets. Chunks that were sent before and
// are larger are retransmitted as they are, for IP to fragment (section 6.9). cwnd stays, whichever
// way the MTU changes (RFC 8899 section 3, item 7). Before DATA has been sent cwnd begins anew: the
// initial one is of the MTU with which transmission begins (section 7.2.1).
func (p *Path) SetMTU(mtu int) {
	p.setMTU(mtu)
	p.cc.SetPMDCS(p.pmdcs)
	if p.lastSentAt == rawio.Never {
		p.cc.Reset()
	}
}

// MTU returns the largest SCTP packet in octets.
func (p *Path) MTU() int { return p.mtu }

// PMDCS returns the largest DATA chunk in octets, chunk header included, that fits a packet.
func (p *Path) PMDCS() int { return p.pmdcs }

// Index returns the path's place in Sender.Paths.
func (p *Path) Index() int { return int(p.index) }

// RTO returns the current retransmission timeout, after any backing off.
func (p *Path) RTO() time.Duration { return p.rttEst.rto }

// BaseRTO returns the retransmission timeout without any backing off.
func (p *Path) BaseRTO() time.Duration { return p.rttEst.base() }

// SetRTO changes the parameters of the RTO, which is within its new bounds at once.
func (p *Path) SetRTO(cfg RTOConfig) { p.rttEst.setConfig(cfg) }

// RTTVar returns the round trip time variation, 0 before the first measurement.
func (p *Path) RTTVar() time.Duration { return p.rttEst.rttvar }

// SRTT returns the smoothed round trip time, 0 before the first measurement.
func (p *Path) SRTT() time.Duration { return p.rttEst.srtt }

// MinRTT returns the shortest recent round trip time, 0 before the first measurement.
func (p *Path) MinRTT() time.Duration { return p.rttEst.minRTT.get() }

// ObserveRTT takes a round trip time that was measured other than by DATA (section 8.3).
func (p *Path) ObserveRTT(rtt time.Duration) {
	p.rttEst.addSample(rtt)
	p.noRTTSinceProbe = false
}

// Backoff doubles the RTO, for a HEARTBEAT that was not answered.
func (p *Path) Backoff() { p.rttEst.doubleRTO() }

// Flight returns the octets of DATA chunks in flight to this destination, with header and padding.
func (p *Path) Flight() int { return p.flight.octets }

// CC returns the congestion controller.
func (p *Path) CC() cc.Controller { return p.cc }

// LastSent returns when DATA was last sent to this destination, Never when it never was.
func (p *Path) LastSent() rawio.Time { return p.lastSentAt }

// blackHoleLimit is how often in a row T3-rtx expires for packets above BasePMTU before the path
// counts as a black hole for them. Once is not rare.
const blackHoleLimit = 2

// IsBlackHole reports that packets longer than BasePMTU keep being lost (RFC 8899 section 4.3).
func (p *Path) IsBlackHole() bool { return p.blackHoleTimeouts >= blackHoleLimit }

// observeLongPacket learns that packets above BasePMTU pass.
func (p *Path) observeLongPacket(c ackedChunks) {
	if c.record.flags&flagLongPacket != 0 {
		p.blackHoleTimeouts = 0
	}
}

// ResetBlackHole begins anew, when the owner has reacted.
func (p *Path) ResetBlackHole() { p.blackHoleTimeouts = 0 }

// ResetCongestion goes back to the initial congestion parameters. It is for a change of route or
// source address (section 7.2.5).
func (p *Path) ResetCongestion() { p.cc.Reset() }

// hasCwndRoom reports whether cwnd lets a packet go to this destination (section 6.1, rule B). The
// packet may then exceed cwnd, by less than PMDCS.
func (p *Path) hasCwndRoom() bool {
	if p.onePacketOnly {
		return p.flight.octets == 0
	}
	return p.flight.octets < p.sendWindow()
}

// Over a near path, more in flight than nearWindowOctets, or nearWindowPackets if that is more, is
// only a queue. It is as large as the receive buffers in between, and keeps data out of the caches.
// nearWindowOctets is what 1 GB/s has outstanding in nearRTT.
const (
	nearRTT           = 2 * time.Millisecond // the shortest recent round trip
	nearWindowOctets  = 2 << 20              // octets of DATA chunks
	nearWindowPackets = 64                   // full ones
)

// sendWindow is cwnd, or less over a near path.
func (p *Path) sendWindow() int {
	w := p.cc.Window()
	if p.minRTTBelow(nearRTT) {
		w = min(w, max(nearWindowOctets, nearWindowPackets*p.pmdcs))
	}
	return w
}

// minRTTBelow reports whether the shortest recent round trip is known, and less than d.
func (p *Path) minRTTBelow(d time.Duration) bool {
	trip := p.rttEst.minRTT.get()
	return trip > 0 && trip < d
}

// IsFar reports whether the shortest recent round trip is known, and not that of a near path.
func (p *Path) IsFar() bool { return p.rttEst.srtt > 0 && !p.minRTTBelow(nearRTT) }

// FarTrip returns the shortest recent round trip of a far path, 0 of another. Before the first
// measurement it is what the set-up has proved: an end that only receives may measure nothing for
// long.
func (p *Path) FarTrip() time.Duration {
	trip := p.MinRTT()
	if p.rttEst.srtt == 0 {
		trip = p.provedRTT
	}
	if trip < nearRTT {
		return 0
	}
	return trip
}

// endIdle tells the controller of a silence that DATA is about to end (section 7.2.1). With nothing
// in flight cwnd does not matter to this packet. Never is later than now: no silence.
func (p *Path) endIdle(now rawio.Time) {
	if p.flight.octets == 0 {
		n := now.Sub(p.idleSince) / p.rttEst.rto
		if n > 0 {
			p.cc.OnIdle(now, p.idleSince, int(n))
		} else {
			p.pacing.pairs.startTrain(p.sendWindow())
		}
	}
}
