package rdma

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Stats counts what has become of the sessions of a Device. What happened below is in
// Transport.Stats and Transport.Totals.
type Stats struct {
	Connected uint64 // sessions that Connect has opened
	Accepted  uint64 // sessions that Request.Accept has
	Rejected  uint64 // requests answered by Request.Reject or RejectSetup

	StreamsFailed uint64 // streams that have failed: the sum of TerminatesIn, TerminatesOut and StreamsLost
	TerminatesIn  uint64 // streams that failed by a Terminate Message of the peer
	TerminatesOut uint64 // streams that failed by one of ours, for the peer's data or own memory: the sum of Faults
	StreamsLost   uint64 // streams that failed without one: association lost, IdleTimeout, answers still owed
	Faults        Faults

	RequestsDropped uint64 // requests ended because Limits.MaxRequests others waited for Listener.Accept
	LimitsRefused   uint64 // calls refused by a *LimitError, a *CQSizeError, or ddp.ErrTooManyRegions
	IdleEnded       uint64 // QPs ended by Config.IdleTimeout
	VacantEnded     uint64 // associations without a session ended by it
	CQOverflows     uint64 // completion queues that have overflowed
	SRQLimits       uint64 // EventSRQLimit
	HighWaters      uint64 // EventHighWater
	EventsLost      uint64 // events that found Limits.MaxEvents others waiting for NextEvent

	TCP TCPStats

	// Sessions are the sums over all associations, those that have ended included.
	Sessions SessionStats
}

// TCPStats counts TCP connections.
type TCPStats struct {
	Connections     uint64 // that have ended, whatever became of them
	Dropped         uint64 // closed at once, as Limits.MaxRequests others had not asked for anything yet
	TLSFaults       uint64 // accepted, and closed because the TLS handshake has failed (Config.TLS)
	StartupTimeouts uint64 // ended because the peer did not send its start-up frame in time
	StartupFaults   uint64 // ended because its start-up frame was wrong (RFC 5044 section 8, code 4)
}

// Faults counts the Terminate Messages sent, by what was wrong.
type Faults struct {
	// An incoming segment to a tagged buffer: RDMA Write or Read Response (RFC 5041 section 7.2).
	TaggedInvalidSTag   uint64 // no such STag, or not for that
	TaggedBounds        uint64 // outside the registered range, or what was asked for
	TaggedNotAssociated uint64 // STag of another stream or Protection Domain
	TaggedWrap          uint64
	TaggedVersion       uint64

	// An incoming segment to an untagged buffer: everything else (RFC 5041 section 7.2).
	UntaggedInvalidQueue uint64
	UntaggedNoBuffer     uint64 // no receive posted, more Reads than the IRD, or more of an SRQ than the QP's share
	UntaggedMSN          uint64 // delivered already, or too far ahead
	UntaggedOffset       uint64
	UntaggedTooLong      uint64
	UntaggedVersion      uint64

	// The source of an RDMA Read, the target of an atomic, or what a Send is to invalidate (RFC
	// 5040 section 4.8).
	SourceInvalidSTag   uint64
	SourceBounds        uint64
	SourceAccess        uint64
	SourceNotAssociated uint64
	SourceWrap          uint64
	CannotInvalidate    uint64

	Version     uint64 // RDMAP version
	Opcode      uint64 // an opcode that does not belong there, or an answer that nobody asked for
	Unspecified uint64 // an answer or Terminate of the wrong form

	LocalCatastrophic  uint64 // the device behind a region failed while a segment was placed
	RemoteCatastrophic uint64 // an unaligned atomic, or the device failed while it was read
	CRC                uint64 // over TCP: the CRC of an FPDU (RFC 5044 section 8, code 2)
	Marker             uint64 // over TCP: a Marker that does not fit (code 3)
	Setup              uint64 // depths or a Ready to Receive indication that the ends cannot agree on (RFC 6581)
	Other              uint64
}

// counterFor returns the counter of a Terminate. Every code of LayerRDMA has one meaning here,
// whatever its type.
func (f *Faults) counterFor(t *rdmap.Terminate) *uint64 {
	var list []*uint64 // by code
	switch {
	case t.Layer == rdmap.LayerLLP && t.Code == rdmap.CodeMPACRC:
		return &f.CRC
	case t.Layer == rdmap.LayerLLP && t.Code == rdmap.CodeMPAMarker:
		return &f.Marker
	case t.Layer == rdmap.LayerLLP:
		return &f.Setup
	case t.Layer == rdmap.LayerDDP && ddp.ErrorType(t.EType) == ddp.TypeLocal:
		return &f.LocalCatastrophic
	case t.Layer == rdmap.LayerDDP && ddp.ErrorType(t.EType) == ddp.TypeTagged:
		list = []*uint64{ddp.CodeInvalidSTag: &f.TaggedInvalidSTag, ddp.CodeBaseBounds: &f.TaggedBounds,
			ddp.CodeNotAssociated: &f.TaggedNotAssociated, ddp.CodeTOWrap: &f.TaggedWrap,
			ddp.CodeTaggedVersion: &f.TaggedVersion}
	case t.Layer == rdmap.LayerDDP && ddp.ErrorType(t.EType) == ddp.TypeUntagged:
		list = []*uint64{0: &f.Other, ddp.CodeInvalidQN: &f.UntaggedInvalidQueue, ddp.CodeNoBuffer: &f.UntaggedNoBuffer,
			ddp.CodeMSNRange: &f.UntaggedMSN, ddp.CodeInvalidMO: &f.UntaggedOffset, ddp.CodeTooLong: &f.UntaggedTooLong,
			ddp.CodeUntaggedVersion: &f.UntaggedVersion}
	case t.Layer == rdmap.LayerRDMA && t.Code == rdmap.CodeUnspecified:
		return &f.Unspecified
	case t.Layer == rdmap.LayerRDMA && t.EType != rdmap.LocalCatastrophic:
		list = []*uint64{rdmap.CodeInvalidSTag: &f.SourceInvalidSTag, rdmap.CodeBounds: &f.SourceBounds,
			rdmap.CodeAccess:        &f.SourceAccess,
			rdmap.CodeNotAssociated: &f.SourceNotAssociated, rdmap.CodeTOWrap: &f.SourceWrap,
			rdmap.CodeInvalidVersion: &f.Version, rdmap.CodeUnexpectedOpcode: &f.Opcode,
			rdmap.CodeCatastrophic:       &f.RemoteCatastrophic,
			rdmap.CodeCatastrophicGlobal: &f.RemoteCatastrophic, rdmap.CodeCannotInvalidate: &f.CannotInvalidate}
	}
	if int(t.Code) < len(list) {
		return list[t.Code]
	}
	return &f.Other
}

// Stats returns the counters. It looks at every connection, each for a moment.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	s := d.stats
	live := make([]*peer, 0, len(d.peers))
	for p := range d.peers {
		live = append(live, p)
	}
	d.mu.Unlock()
	s.EventsLost = d.events.lostEvents()
	for _, p := range live {
		m := p.conn.peerStats().Stats
		counters.Add(&s.Sessions, &m)
	}
	return s
}

// Latency counts how long requests took, by their kind.
//
//	type Latency struct {
//		Send   Histogram // Immediate Data too
//		Write  Histogram // Immediate Data behind one too
//		Read   Histogram
//		Atomic Histogram
//	}
//
//	func (l *Latency) Add(other *Latency)
type Latency = rdmap.Latency

// Histogram is a distribution of times.
type Histogram = rdmap.Histogram

// Latency returns how long the requests of all QPs took, those that have ended included. It looks
// at every connection, each for a moment.
func (d *Device) Latency() Latency {
	d.mu.Lock()
	sum, live := d.latency, slices.Collect(maps.Keys(d.peers))
	d.mu.Unlock()
	for _, p := range live {
		p.conn.peek(func() { sum.Add(&p.latency) })
	}
	return sum
}

// countStat counts one of d.stats. The caller may hold an connection lock.
func (d *Device) countStat(counter *uint64) {
	d.mu.Lock()
	*counter++
	d.mu.Unlock()
}

// countFailure counts the end of a stream.
func (d *Device) countFailure(err *rdmap.StreamError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.stats
	s.StreamsFailed++
	switch {
	case err.Terminate == nil:
		s.StreamsLost++
	case err.Remote:
		s.TerminatesIn++
	default:
		s.TerminatesOut++
		*s.Faults.counterFor(err.Terminate)++
	}
}

// countRefusal counts a call that is refused, if by a limit.
func (d *Device) countRefusal(err error) error {
	if err != ErrDestroyed {
		d.countStat(&d.stats.LimitsRefused)
	}
	return err
}

// countRegionRefusal counts a region that a limit refuses.
func (d *Device) countRegionRefusal(err error) error {
	if err == ddp.ErrTooManyRegions {
		return d.countRefusal(err)
	}
	return err
}

// reportEvent counts an event, gives it to the program if it asks for events, and writes it to the
// Logger. The transport has written those of associations. The caller holds no connection lock.
func (d *Device) reportEvent(ev Event) {
	switch ev.Kind {
	case EventSRQLimit:
		d.countStat(&d.stats.SRQLimits)
	case EventHighWater:
		d.countStat(&d.stats.HighWaters)
	case EventCQError:
		d.countStat(&d.stats.CQOverflows)
	}
	d.events.push(ev)
	if ev.Kind == EventAssocUp || ev.Kind == EventAssocDown {
		return
	}
	var attrs []slog.Attr
	if ev.QP != nil {
		attrs = append(attrs, slog.Uint64("qp", uint64(ev.QP.Num())))
	}
	if ev.Err != nil {
		attrs = append(attrs, slog.String("reason", ev.Err.Error()))
	}
	d.journal(slog.LevelWarn, ev.Remote, "rdma: "+ev.Kind.String(), attrs...)
}
