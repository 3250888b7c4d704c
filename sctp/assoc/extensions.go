package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Extensions are what both ends may agree on beyond RFC 9260.
type Extensions uint8

const (
	// PartialReliability lets a message be given up after it was sent (RFC 3758).
	PartialReliability Extensions = 1 << iota
	// Interleaving sends I-DATA, so that messages of several streams may alternate (RFC 8260).
	Interleaving
	// StreamReconfiguration resets streams, and adds some (RFC 6525).
	StreamReconfiguration
	// AddressChanges adds addresses to a protected association, and removes some (RFC 5061).
	AddressChanges
)

// Has reports whether all of x are among them.
func (e Extensions) Has(x Extensions) bool { return e&x == x }

// offeredExtensions returns what the program wants of the peer, and offers it.
func (c *Config) offeredExtensions() (e Extensions) {
	if c.PartialReliability {
		e |= PartialReliability
	}
	if c.Interleaving {
		e |= Interleaving
	}
	if c.StreamReset != 0 {
		e |= StreamReconfiguration
	}
	if c.Protected && !c.LooseTLS { // without keys there would be none
		e |= AddressChanges
	}
	return e
}

// appendExtensions appends what tells the peer of extensions to an INIT or INIT ACK: Supported
// Extensions (RFC 5061 section 4.2.7), and Forward-TSN-Supported (RFC 3758 section 3.1).
func appendExtensions(b []byte, e Extensions) []byte {
	var types [6]wire.ChunkType
	list := types[:0]
	if e.Has(PartialReliability) {
		b = wire.AppendForwardTSNSupported(b)
		list = append(list, wire.ChunkForwardTSN)
	}
	if e.Has(Interleaving) {
		list = append(list, wire.ChunkIData)
	}
	if e.Has(PartialReliability | Interleaving) { // else it says nothing (RFC 8260 section 2.3.1)
		list = append(list, wire.ChunkIForwardTSN)
	}
	if e.Has(StreamReconfiguration) {
		list = append(list, wire.ChunkReconfig)
	}
	if e.Has(AddressChanges) { // without AUTH, in whose place is the DTLS chunk
		list = append(list, wire.ChunkAsconf, wire.ChunkAsconfAck)
	}
	if len(list) == 0 {
		return b
	}
	return wire.AppendSupportedExtensions(b, list...)
}

// announcedExtensions is what an INIT or INIT ACK says of extensions.
type announcedExtensions struct {
	forwardTSN  bool // by a parameter of its own, or as a chunk type
	iData       bool
	iForwardTSN bool
	reconfig    bool
	asconf      bool
	asconfAck   bool
}

// read reads a Supported Extensions parameter.
func (n *announcedExtensions) read(p wire.Param) error {
	for _, x := range [...]struct {
		chunk wire.ChunkType
		has   *bool
	}{{wire.ChunkForwardTSN, &n.forwardTSN}, {wire.ChunkIData, &n.iData}, {wire.ChunkIForwardTSN, &n.iForwardTSN},
		{wire.ChunkReconfig, &n.reconfig}, {wire.ChunkAsconf, &n.asconf}, {wire.ChunkAsconfAck, &n.asconfAck}} {
		is, err := p.ListsChunk(x.chunk)
		if err != nil {
			return err
		}
		*x.has = *x.has || is
	}
	return nil
}

// agreeOn returns which of the extensions offered the peer has announced too. With I-DATA, partial
// reliability needs I-FORWARD-TSN (RFC 8260 section 2.3.1).
func (n announcedExtensions) agreeOn(offered Extensions) (e Extensions) {
	if n.iData {
		e |= Interleaving & offered
	}
	if n.iForwardTSN && e.Has(Interleaving) || n.forwardTSN && !e.Has(Interleaving) {
		e |= PartialReliability & offered
	}
	if n.reconfig {
		e |= StreamReconfiguration & offered
	}
	if n.asconf && n.asconfAck {
		e |= AddressChanges & offered
	}
	return e
}

// Extensions returns what both ends have agreed on. It is 0 before.
func (a *Assoc) Extensions() Extensions { return a.agreed.extensions }

// startExtensions has the sending half use what both ends have agreed on.
func (a *Assoc) startExtensions() {
	s := a.sender()
	if e := a.agreed.extensions; e != 0 {
		s.SetExtensions(e.Has(PartialReliability), e.Has(Interleaving))
	}
	if a.cfg.NewScheduler != nil {
		s.SetScheduler(a.cfg.NewScheduler())
	}
}

// AbandonPolicy says when a message is given up that may have been sent.
type AbandonPolicy = tx.AbandonPolicy

// Policies of abandoning (RFC 3758 section 4.1, RFC 7496 section 3).
const (
	AbandonNever   = tx.AbandonNever
	AbandonExpired = tx.AbandonExpired
	AbandonResent  = tx.AbandonResent
	AbandonForRoom = tx.AbandonForRoom
)

// AbandonCounts counts abandoned messages by their policy.
type AbandonCounts = tx.AbandonCounts

// Abandoned returns how many messages of all streams were abandoned.
func (a *Assoc) Abandoned() AbandonCounts {
	if a.IsIdle() {
		return AbandonCounts{}
	}
	return a.sender().Abandoned()
}

// AbandonedOf returns how many messages of a stream were abandoned.
func (a *Assoc) AbandonedOf(stream wire.StreamID) AbandonCounts {
	return a.sender().AbandonedOf(stream)
}

// MakeRoom abandons messages of AbandonForRoom that are less important than limit, until octets are
// free in the send buffer. It says whether they are.
func (a *Assoc) MakeRoom(now rawio.Time, octets int, limit uint32) bool {
	return a.sender().MakeRoom(now, octets, limit)
}

// HasRoom reports whether Send has room for a message of so many octets, of any stream.
func (a *Assoc) HasRoom(octets int) bool { return a.sender().HasRoom(octets) }

// HasReserve reports whether Send has room for a message of Message.Reserve.
func (a *Assoc) HasReserve(stream wire.StreamID, octets int) bool {
	return a.sender().HasReserve(stream, octets)
}

// Unacked returns how many octets of messages of Send are not acknowledged.
func (a *Assoc) Unacked() int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().Buffered()
}

// Unsent returns how many octets of messages of Send were not sent, even once.
func (a *Assoc) Unsent() int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().Queued()
}

// UnackedOf returns those of a stream.
func (a *Assoc) UnackedOf(stream wire.StreamID) int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().BufferedOf(stream)
}

// SetLowMark has EventSendLow tell when a stream has no more than octets that are not acknowledged,
// and had more.
func (a *Assoc) SetLowMark(stream wire.StreamID, octets int) error {
	if uint16(stream) >= a.agreed.outStreams {
		return ErrInvalidStream
	}
	a.sender().SetLowMark(stream, octets)
	return nil
}

// SetScheduler sets what chooses the stream that sends next; nil: none.
func (a *Assoc) SetScheduler(s sched.Scheduler) { a.sender().SetScheduler(s) }

// SetStreamValue sets what the scheduler has for a stream (RFC 8260 section 4.3.3).
func (a *Assoc) SetStreamValue(stream wire.StreamID, value uint16) error {
	if uint16(stream) >= a.agreed.outStreams {
		return ErrInvalidStream
	}
	a.sender().SetStreamValue(stream, value)
	return nil
}

// StreamValue returns it.
func (a *Assoc) StreamValue(stream wire.StreamID) uint16 { return a.sender().StreamValue(stream) }

// reportLow reports the streams that have fallen to their marks.
func (a *Assoc) reportLow() {
	for _, id := range a.sender().TakeLow() {
		a.events.push(Event{Kind: EventSendLow, Stream: id})
	}
}

// reportAbandoned reports the messages that were abandoned after a part of them was sent (RFC 3758
// section 4.1, TR4), or to make room.
func (a *Assoc) reportAbandoned() {
	for _, f := range a.sender().TakeAbandoned() {
		a.events.push(Event{Kind: EventSendFailed, Stream: f.Stream, Token: f.Token, Unsent: !f.Sent})
	}
}
