package assoc

import (
	"net/netip"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// StreamReset says what of stream reconfiguration (RFC 6525) is offered to the peer, and what the
// peer may ask for. Whatever is allowed is offered too.
type StreamReset uint8

const (
	// OfferStreamReset offers it, so that this side may ask. What the peer asks for is denied.
	OfferStreamReset StreamReset = 1 << iota
	// AllowStreamReset lets the peer reset the streams that it sends on, and ask to reset the
	// others.
	AllowStreamReset
	// AllowTSNReset lets it reset all TSNs and streams.
	AllowTSNReset
	// AllowAddStreams lets it add streams, up to Config.InStreams and Config.MaxOutStreams.
	AllowAddStreams
)

// allowed is what of it the peer may ask for.
func (s StreamReset) allowed() (a reconfig.Allowed) {
	for _, x := range [...]struct {
		from StreamReset
		to   reconfig.Allowed
	}{{AllowStreamReset, reconfig.Streams}, {AllowTSNReset, reconfig.TSNs}, {AllowAddStreams, reconfig.Adding}} {
		if s&x.from != 0 {
			a |= x.to
		}
	}
	return a
}

// Errors of StartInTurn, and of the events that report how requests end.
// What the peer has refused is a *StreamResetError.
var (
	// ErrStreamResetUnsupported: the peer does not support it, or Config.StreamReset does not offer
	// it. It matches syscall.EOPNOTSUPP.
	ErrStreamResetUnsupported error = sysError{
		"sctp: streams cannot be reset or added: both ends have to offer it", syscall.EOPNOTSUPP}
	// ErrStreamResetUnanswered: the peer has not answered a request, however often it was sent.
	ErrStreamResetUnanswered = reconfig.ErrUnanswered
	// ErrStreamResetDenied: the peer does not allow it.
	ErrStreamResetDenied = reconfig.ErrDenied
	// ErrStreamResetList: so many streams do not fit a packet: see MaxStreamList.
	ErrStreamResetList error = sysError{"sctp: more streams than one packet can name", syscall.E2BIG}
	// ErrStreamRequest: the request asks for nothing.
	ErrStreamRequest = reconfig.ErrRequest
	// ErrTooManyStreams: an association has 65535 streams in each direction at most.
	ErrTooManyStreams = reconfig.ErrTooManyStreams
	// ErrTSNResetTooSoon: TSNs are reset once in 30 seconds at most.
	ErrTSNResetTooSoon = reconfig.ErrTooSoon
	// ErrStreamsPaired: the protocol above needs streams in pairs that are never reset.
	ErrStreamsPaired = reconfig.ErrPaired
	// ErrPeerRestarted: the peer has restarted meanwhile.
	ErrPeerRestarted error = sysError{"sctp: the peer has restarted", syscall.ECONNRESET}
)

// StreamResetError is a result of the peer that is no success. It matches ErrStreamResetDenied if
// that is the result.
type StreamResetError = reconfig.ResultError

// StreamChange is what EventStreamsReset, EventTSNsReset and EventStreamsAdded are about. If
// Event.Err is nil it was done.
type StreamChange struct {
	Request  StreamRequestID // of StartInTurn; 0 if the peer has asked for it
	ByPeer   bool            // the peer has asked for it
	Incoming bool            // it is about streams that come in, else about those that go out
	Streams  []uint16        // EventStreamsReset: none stands for all
	Added    int             // EventStreamsAdded: how many
	// OutStreams and InStreams are how many streams there are now, NextTSN and PeerTSN are the TSNs
	// that both sides send next.
	OutStreams, InStreams int
	NextTSN, PeerTSN      wire.TSN
}

// StreamRequest is what may be asked of the peer about streams.
type StreamRequest = reconfig.Request

// StreamRequestID tells requests apart. None is 0.
type StreamRequestID = reconfig.RequestID

// StartInTurn begins with a request when those that were asked for before have ended. Events tell
// how each part of it ends; others may be joined to it while it waits.
//
// What was given to Send before a reset of streams goes in the old numbering. Later messages wait
// until the peer has answered. What was given before a reset of TSNs is acknowledged first. What the
// peer has sent and is lost on its way is not sent again, and a peer may cut a message there (RFC
// 6525 section 5.2.4). A peer that never answers ends the association (ErrTSNResetUnanswered): it
// may have done it, and wait for other TSNs. What has come since the request is dropped then, as
// nobody can tell its order.
func (a *Assoc) StartInTurn(now rawio.Time, r StreamRequest) (StreamRequestID, error) {
	if len(r.Streams) > a.MaxStreamList() {
		return 0, ErrStreamResetList
	}
	if err := a.mayAskForStreams(); err != nil {
		return 0, err
	}
	h := a.ensureStreamResets(now)
	id, err := h.machine.StartInTurn(now, r, a.MaxStreamList())
	return id, a.sendStreamRequest(h, err)
}

// IsStreamRequestUnderWay says whether a request of StartInTurn waits, or has not ended.
func (a *Assoc) IsStreamRequestUnderWay(id StreamRequestID) bool {
	h := a.streamResets()
	return h != nil && h.machine.IsUnderWay(id)
}

// StopWaiting forgets a request of StartInTurn that waits for its turn, unless it was joined to
// others. One that was begun goes on.
func (a *Assoc) StopWaiting(now rawio.Time, id StreamRequestID) {
	if h := a.streamResets(); h != nil {
		h.now = now
		h.machine.StopWaiting(id)
	}
}

// MaxStreamList returns how many streams a StreamRequest can name.
func (a *Assoc) MaxStreamList() int {
	const fixed = wire.ChunkHeaderLen + 16 + 8 + 2 + 2 // both requests, each padded
	return max((a.MaxPayload()-fixed)/4, 1)
}

// StreamResetUnderWay says whether a request is under way, so that another would have to wait.
func (a *Assoc) StreamResetUnderWay() bool {
	h := a.streamResets()
	return h != nil && h.machine.IsBusy()
}

// peerReconfigures says whether both sides have offered stream reconfiguration.
func (a *Assoc) peerReconfigures() bool { return a.agreed.extensions.Has(StreamReconfiguration) }

// mayAskForStreams returns why nothing can be asked for, or nil.
func (a *Assoc) mayAskForStreams() error {
	switch {
	case setupStates.has(a.state):
		return ErrNotUp
	case a.state != Established:
		return ErrClosing
	case !a.peerReconfigures():
		return ErrStreamResetUnsupported
	}
	return nil
}

// sendStreamRequest sends what the machine has to send, unless err says that there is nothing.
func (a *Assoc) sendStreamRequest(h *streamResets, err error) error {
	if err == reconfig.ErrStream {
		return ErrInvalidStream
	}
	a.sendReconfig(h, nil)
	return err
}

// streamResets returns what there is of stream reconfiguration, nil if nobody has asked for any.
func (a *Assoc) streamResets() *streamResets {
	if a.rareState == nil {
		return nil
	}
	return a.rareState.streamResets
}

// ensureStreamResets makes it if there is none.
func (a *Assoc) ensureStreamResets(now rawio.Time) *streamResets {
	a.sender() // it rests no longer
	rare := a.ensureRareState()
	if rare.streamResets == nil {
		h := &streamResets{a: a}
		h.machine = reconfig.New(reconfig.Config{LocalTSN: a.life.localTSN, PeerTSN: rare.peerTSN,
			Allowed: a.cfg.StreamReset.allowed(), MaxOut: a.cfg.maxOutStreams(), MaxIn: int(a.cfg.InStreams),
			Paired: a.hooks.placer != nil, MaxTries: a.cfg.AssocMaxRetrans}, h)
		rare.streamResets = h
	}
	rare.streamResets.now = now
	return rare.streamResets
}

// maxOutStreams returns Config.MaxOutStreams, or its default.
func (c *Config) maxOutStreams() int {
	if c.MaxOutStreams == 0 {
		return reconfig.MaxStreams
	}
	return int(c.MaxOutStreams)
}

// reconfigStates are those in which RE-CONFIG is processed. What is under way is finished also
// behind a SHUTDOWN: a peer may hold messages until it has an answer.
var reconfigStates = newStateSet(Established, ShutdownPending, ShutdownReceived, ShutdownSent)

// handleReconfig takes a RE-CONFIG chunk (RFC 6525 section 5.2). It says whether to go on with the
// packet.
func (a *Assoc) handleReconfig(now rawio.Time, in *inbound, c wire.Chunk) bool {
	if !a.peerReconfigures() {
		return a.handleUnknown(in, c)
	}
	if !reconfigStates.has(a.state) {
		a.rareCounters().Unexpected++
		return true
	}
	if in.reconfigLast = in.reconfigLast || a.freezesReceiving(); in.reconfigLast {
		return true
	}
	return a.takeReconfig(now, in, c)
}

// handleLateReconfigs takes the RE-CONFIG chunks of a packet that came while an own reset of TSNs
// had no answer. With the answer may come DATA of before: control chunks lead in a packet (RFC 9260
// section 6.10), and so say nothing about which was first.
func (a *Assoc) handleLateReconfigs(now rawio.Time, in *inbound) {
	cs := in.pkt.Chunks()
	for c, ok := cs.Next(); ok && a.state != Closed && a.internalErr == nil; c, ok = cs.Next() {
		if c.Type() == wire.ChunkReconfig && !a.takeReconfig(now, in, c) {
			return
		}
	}
}

// takeReconfig processes a RE-CONFIG chunk, in a state for it.
func (a *Assoc) takeReconfig(now rawio.Time, in *inbound, c wire.Chunk) bool {
	r, err := wire.AsReconfig(c)
	if err == wire.ErrReconfigCombination { // section 3.1
		a.rareCounters().Malformed++
		a.replyError(in, wire.CauseProtocolViolation, []byte(err.Error()))
		return true
	}
	h := a.ensureStreamResets(now)
	if err == nil {
		err = h.machine.HandleChunk(now, r)
	}
	if err != nil {
		a.rareCounters().Malformed++
		return true
	}
	if h.machine.DefersTSNReset() {
		a.recv.DemandSack() // which goes without an answer too (section 5.2.1)
	}
	a.sendReconfig(h, in)
	return a.state != Closed
}

// advanceStreamResets goes on with what has waited for DATA to come, or to be sent.
func (a *Assoc) advanceStreamResets(now rawio.Time) {
	if h := a.streamResets(); h != nil && reconfigStates.has(a.state) {
		h.now = now
		h.machine.Poll(now)
		a.sendReconfig(h, nil)
	}
}

// sendReconfig queues the RE-CONFIG chunks that are to be sent, answers to a packet before an own
// request. With an answer goes a SACK: it helps the peer to find what is missing (section 5.2.1).
func (a *Assoc) sendReconfig(h *streamResets, in *inbound) {
	if a.state == Closed {
		return
	}
	if h.machine.HasAnswer() {
		p, local := a.dataPath(), netip.AddrPort{}
		if in != nil {
			p, local = a.replyPath(in)
		} else {
			a.control.closeEntry()
		}
		a.queueReply(p, local, h.machine.AppendAnswer(a.control.buf, p.MTU()-headerRoom))
		a.recv.DemandSack()
	}
	if h.machine.RequestDue() && sendStates.has(a.state) {
		h.path = h.requestPath()
		a.control.closeEntry()
		a.queueReply(h.path, netip.AddrPort{}, h.machine.AppendRequest(a.control.buf))
		a.control.closeEntry()
		h.machine.NoteRequestSent(h.now)
	}
}

func (a *Assoc) reconfigExpiresAt() rawio.Time {
	if h := a.streamResets(); h != nil && reconfigStates.has(a.state) {
		return h.machine.NextTimeout()
	}
	return rawio.Never
}

// handleReconfigTimeout handles the expiry of the Re-configuration Timer (section 5.1.1).
func (a *Assoc) handleReconfigTimeout(now rawio.Time) {
	h := a.streamResets()
	h.now = now
	p := h.requestPath()
	if e := h.machine.HandleTimeout(now); e != reconfig.NoExpiry {
		p.Backoff()
		a.countPathError(now, p, true)
		if a.state == Closed {
			return
		}
		if e == reconfig.TSNsUnknown {
			a.queueAbort(refusal{code: wire.CauseProtocolViolation, info: []byte("a reset of TSNs is not answered")})
			a.endAssoc(onEnd, ErrTSNResetUnanswered)
			return
		}
		h.path = a.paths[a.sender().Alternate(&p.Path).Index()]
	}
	a.sendReconfig(h, nil)
}

// freezesReceiving says whether DATA is held until an own reset of TSNs is answered.
func (a *Assoc) freezesReceiving() bool {
	h := a.streamResets()
	return h != nil && h.machine.IsFreezing()
}

// stopAskingForResets ends own requests, when a shutdown has come so far that nothing more is sent.
func (a *Assoc) stopAskingForResets() {
	if h := a.streamResets(); h != nil {
		h.machine.StopAsking(ErrClosing)
	}
}

// abandonStreamResets ends all that is under way, with the association or its incarnation.
func (a *Assoc) abandonStreamResets(why error) {
	if h := a.streamResets(); h != nil {
		h.isEnding = true
		h.machine.Abandon(why)
		h.isOver, a.rareState.streamResets = true, nil
	}
}
