package assoc

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Message is one user message to send. See Assoc.Send and Source.
type Message = tx.Message

// Source supplies messages at the moment they can be sent and learns when they are acknowledged.
type Source = tx.Source

// Runner is a Source that reports at once what it has in a row: a Run of at most RunMost.
type (
	Runner = tx.Runner
	Run    = tx.Run
)

// RunMost is the most messages of a Run.
const RunMost = tx.RunMost

// Received is one complete message of the peer, held until Release. A message that
// Config.MaxMessage allows but the receive buffer does not hold comes in pieces, in order (section
// 6.9). More says that the message goes on, Offset how many octets of it came before. A piece with
// Cut set, and no octets, ends a message whose rest will not come: the peer has restarted.
type Received = rx.Message

// Verdict is a Placer's answer about a DATA chunk.
type Verdict uint8

const (
	// Queue: ordinary delivery through Receive.
	Queue Verdict = iota
	// Consumed: the payload is placed; it costs no receive window and is not delivered. Only for a
	// whole message: a chunk with both B and E set.
	Consumed
	// DropUnacked: treat the chunk as if it had never been received; the peer sends it again.
	DropUnacked
	// AbortAssoc: the chunk violates the protocol above; the association is aborted.
	AbortAssoc
)

// Placer is asked about each new DATA chunk, after the checksum, tag, duplicate and window checks.
// That is before any queue, and before its TSN counts as received. d is a view into the packet that
// buf owns. Fragments of a message are offered too, with their flags.
type Placer interface {
	Place(now rawio.Time, d wire.Data, buf *rawio.Buf) Verdict
}

// RowPlacer is a Placer that takes DATA of several packets in one call, which costs less than Place
// for each.
type RowPlacer interface {
	Placer
	// PlaceRow takes the first packets of a row. It returns how many of them Place would have
	// answered with Consumed. Place is asked about the others.
	PlaceRow(now rawio.Time, row Row) int
}

// Assoc is one association. Make one with Connect or Accept.
//
// A program may have thousands. What a packet looks at is then in no cache of the processor, and
// each line costs a hundred nanoseconds. So those fields come first, in as few lines as possible.
// Fields that are rarely looked at come behind them.
type Assoc struct {
	// What sending a message looks at comes first (see PrefetchSend).

	// Owner is free for the owner's own use.
	Owner any

	state               State // changed by changeState
	burstContinues      bool  // the last PollTransmit ended with a full batch
	hasUnackedSends     bool  // messages of Send wait for acknowledgement
	probeDue            bool  // a search for a path MTU has a probe to send
	localPort, peerPort uint16
	localTag, peerTag   uint32
	cfg                 *Config // of many associations; Reconfigure gives this one its own
	env                 *Env
	dataState           atomic.Pointer[dataState] // nil while idle, see sender
	recv                *rx.Receiver              // that of halves; nil also until the peer's Initial TSN is known
	paths               []*path                   // in the order of sender.Paths
	onePath             [1]*path                  // paths, if it is but one
	stateData           stateData                 // nil in states that have none
	lastDataAt          rawio.Time                // when user data was last sent or received
	workSteps           uint64                    // see Steps
	internalErr         *InternalError            // see Break
	events              eventQueue
	control             controlQueue // chunks waiting for PollTransmit
	outbox              Outbox       // packets with tags of their own, and last packets
	ecn                 ecn
	sackPath            *path          // where SACKs go
	sackLocal           netip.AddrPort // from which own address; invalid: that of the path
	stats               commonCounters

	// What a received packet looks at comes behind it.
	outStreams, inStreams uint16 // negotiated, 0 before
	hasAdaptation         bool   // peerAdaptation is known
	peerIsLocal           bool   // the peer is on this host
	ignoresDry            bool   // see ReportSenderDry
	isCrowded             bool   // see SetCrowded
	placer                Placer
	lastHeardAt           rawio.Time   // when the last valid packet of the peer came
	errorCount            int          // consecutive errors of the association (section 8.1)
	failedSenders         []*tx.Sender // whose messages have failed, see failMessages
	rttSamples            counters.CompactHistogram

	firstPath path // the first that it has ever had, and usually the only one

	incarnation             uint64       // see Incarnation
	localTSN                wire.TSN     // own Initial TSN
	localTieTag, peerTieTag uint32       // tie-tags, 0 until an unexpected INIT asks for them (5.2.2)
	localAddrs              []netip.Addr // those of Config.LocalAddrs that the peer knows: paths may begin there
	pathFamilies            familySet    // of the peer addresses that paths may lead to, see Config.knownFamilies
	peerAdaptation          uint32
	heartbeatLimit          heartbeatLimit
	errorReportLimit        errorReportLimit
	cookieExpiresAt         rawio.Time            // see CookieUntil
	cookieMadeAt            rawio.Time            // see CookieMade
	onAnswer                func() bool           // see OnAnswer
	onGrow                  func(octets int) bool // see OnGrow
	source                  Source                // see SetUpper
	rareState               *rareState            // nil: there were none
	idleState               idleState
}

// rareState holds what hardly any association ever has.
type rareState struct {
	localRefusal localRefusal         // what this host has refused to send last
	successor    *rawio.Packet        // see Successor
	usableAddrs  []netip.Addr         // see UsableFrom: of before, where the link chooses an own address
	nextResendAt [MaxPaths]rawio.Time // of each path, see Assoc.nextResendAt
}

func (a *Assoc) ensureRareState() *rareState {
	if a.rareState == nil {
		a.rareState = new(rareState)
	}
	return a.rareState
}

// Peer names the two ends of an association to set up.
type Peer struct {
	LocalPort, PeerPort uint16           // SCTP ports
	Local               netip.AddrPort   // own address without Config.LocalAddrs; invalid lets the link choose
	Remotes             []netip.AddrPort // addresses of the peer, the first is tried first; at most MaxPaths
}

// Connect starts an association: its first PollTransmit sends the INIT (section 5.1). cfg is
// complete, and does not change while the association lives. It fails with ErrNoSource or
// ErrNoMarks, or for lack of randomness.
func Connect(now rawio.Time, cfg *Config, env *Env, peer Peer) (*Assoc, error) {
	if err := cfg.CanMark(env); err != nil {
		return nil, err
	}
	id, err := newIdentity(env.Rand)
	if err != nil {
		return nil, err
	}
	a := env.newAssoc()
	a.cfg, a.env, a.state, a.incarnation, a.localPort, a.peerPort = cfg, env, CookieWait, 1, peer.LocalPort,
		peer.PeerPort
	reach := widestScopeAddr(peer.Remotes)
	a.localTag, a.localTSN, a.stateData = id.tag, id.tsn, &cookieWait{setup: newSetup(0, reach, 0)}
	a.replaceSender()
	a.peerIsLocal = env.areLocalAddrs(peer.Remotes)
	own := netip.AddrPortFrom(peer.Local.Addr().Unmap(), peer.Local.Port())
	a.pathFamilies, a.localAddrs = bothFamilies, a.cfg.localAddrsFor(reach, own.Addr(), bothFamilies)
	for _, r := range peer.Remotes {
		a.addPath(own, r, tx.Active) // section 5.4 rule 1
	}
	if len(a.paths) == 0 {
		return nil, ErrNoSource
	}
	return a, nil
}

// Accept makes the association that a returned cookie describes, in state ESTABLISHED. p is the
// packet with the COOKIE ECHO: pass it to HandlePacket next.
func Accept(now rawio.Time, cfg *Config, env *Env, c *Cookie, p *rawio.Packet) *Assoc {
	a := env.newAssoc()
	a.cfg, a.env, a.state, a.incarnation, a.localPort, a.peerPort = cfg, env, Established, 1, c.LocalPort, c.PeerPort
	a.adoptCookie(c)
	a.replaceSender()
	a.adoptPaths(c, p, bothFamilies)
	a.primaryPath().BoundProvedRTT(now.Sub(c.Created)) // the cookie went there
	a.startData(c.PeerRwnd, c.PeerTSN)
	a.reportEstablished(now)
	return a
}

// replaceSender replaces the sending half, without paths.
func (a *Assoc) replaceSender() {
	s := &a.ensureDataState().sender
	if sent := s.Stats(); sent != (tx.Stats{}) {
		a.rareCounters().addSenderStats(sent)
	}
	if n := len(a.failedSenders); n > 0 && a.failedSenders[n-1] == s { // report its messages from a copy
		a.failedSenders[n-1] = s.Copy()
	}
	a.initSender(s)
}

// initSender makes a sending half, without paths.
func (a *Assoc) initSender(s *tx.Sender) {
	s.Init(tx.Config{TSN: a.localTSN, SendBuffer: a.cfg.SendBuffer, MaxBurst: max(a.cfg.MaxBurst, 0),
		MaxSegment: a.cfg.MaxSegment,
		StrictRFC:  a.cfg.RFC9260, NoDelay: a.cfg.NoDelay, NoFragments: a.cfg.DisableFragments, RTTs: &a.rttSamples,
		Rand: a.randUint32, Steps: &a.workSteps})
	s.SetUpper(a.source, a.source)
	s.SetECN(a.ecn.enabled)
}

// receiverConfig returns the configuration of a receiving half.
func (a *Assoc) receiverConfig(peerTSN wire.TSN) rx.Config {
	return rx.Config{PeerTSN: peerTSN, RecvBuffer: a.cfg.initialWindow(), MaxBuffer: a.cfg.maxWindow(),
		MaxMessage: a.cfg.MaxMessage, PartialPoint: a.cfg.PartialDelivery,
		PMDCS: a.primaryPath().PMDCS(), SackDelay: a.cfg.SackDelay, LoneSackDelay: a.cfg.LoneSackDelay,
		StrictRFC: a.cfg.RFC9260, InStreams: int(a.inStreams), Steps: &a.workSteps}
}

// startData makes the receiving half, or restarts it, and gives the sending half the peer's window.
func (a *Assoc) startData(peerRwnd uint32, peerTSN wire.TSN) {
	a.sender().SetPeer(peerRwnd, int(a.outStreams))
	if cfg := a.receiverConfig(peerTSN); a.recv == nil {
		a.recv = &a.ensureDataState().receiver
		a.recv.Init(cfg)
	} else {
		a.recv.Restart(cfg)
	}
	a.sackPath, a.sackLocal = a.primaryPath(), netip.AddrPort{}
}

// SetUpper sets the upper layer. p is asked about incoming DATA; with nil everything is queued for
// Receive. s supplies messages and hears of acknowledgements, also for messages of Send. If s is
// nil there is only Send, and acknowledgements go unreported. Call SetUpper before the first
// packet.
func (a *Assoc) SetUpper(p Placer, s Source) {
	a.placer, a.source = p, s
	a.sender().SetUpper(s, s)
}

// Send queues a message. Its memory belongs to the association until Source.Acked or
// EventSendFailed. When Message.Expires is over, only EventSendFailed comes. Send fails with
// ErrNotUp, ErrClosing, ErrSendBufferFull, ErrEmptyMessage, ErrMessageTooBig, ErrNeedsFragments,
// ErrInvalidStream or ErrNoPath.
func (a *Assoc) Send(now rawio.Time, m *Message) error {
	switch {
	case setupStates.has(a.state):
		return ErrNotUp
	case a.state != Established:
		return ErrClosing
	case a.cfg.DisableFragments && m.Len() > a.MaxPayload():
		return ErrNeedsFragments
	}
	err := a.sender().Enqueue(m)
	a.hasUnackedSends = a.hasUnackedSends || err == nil
	return err
}

// Expect says whether the user is about to send more. Short messages may wait a moment for that
// (Config.NoDelay).
func (a *Assoc) Expect(more bool) {
	if more || !a.IsIdle() {
		a.sender().Expect(more)
	}
}

// Receive returns the next message, or piece of one, in delivery order. Release gives its window
// back.
func (a *Assoc) Receive() (*Received, bool) {
	if a.recv == nil {
		return nil, false
	}
	return a.recv.Receive()
}

// Release frees a message that Receive returned. The peer may learn of the larger window at the
// next PollTransmit. Until Release the message takes part of the window, also if the peer restarts.
func (a *Assoc) Release(r *Received) { a.recv.Release(r) }

// HoldSack holds, or releases, a SACK that is due only for the number of packets (RFC 9260 section
// 6.2). A caller that expects the packets to be answered within a moment holds it. The SACK then
// goes with that DATA. The caller releases it right after.
func (a *Assoc) HoldSack(on bool) {
	if a.recv != nil {
		a.recv.HoldSack(on)
	}
}

// SetCrowded says whether the association is one of very many that packets come for just now.
// Acknowledging each a little sooner is then not worth a packet and a timer. So the SACK may wait
// for DATA to go with, for as long as Config.SackDelay.
func (a *Assoc) SetCrowded(is bool) { a.isCrowded = is }

// DataSent returns how many DATA chunks have been sent, each counted once.
func (a *Assoc) DataSent() uint64 {
	if a.IsIdle() {
		return a.idleState.sender.SentTSNs()
	}
	return a.sender().SentTSNs()
}

// SackDue says whether the next PollTransmit sends a SACK. A Release that opens the window by much
// makes one due.
func (a *Assoc) SackDue(now rawio.Time) bool { return a.recv != nil && a.recv.SackDue(now) }

// Close gives back all memory that the association holds of received packets. Call it after
// EventDown, when no Received is in use any more.
func (a *Assoc) Close() {
	if a.recv != nil {
		a.recv.Close()
	}
}

// Detach frees the user's memory: it copies payload of unacknowledged messages of stream into
// memory of the association. It does so for messages whose body lies within that slice (nil: any).
// more says that only a part was copied, because there is so much. Call again, after others have
// had the association.
func (a *Assoc) Detach(stream wire.StreamID, within []byte) (more bool) {
	return !a.IsIdle() && a.sender().Detach(stream, within)
}

// RTOMax returns Config.RTOMax, or its default.
func (a *Assoc) RTOMax() time.Duration { return a.cfg.RTOMax }

// MaxPayload returns the user octets that one DATA chunk carries on the path with the smallest MTU.
// It leaves space for a SACK.
func (a *Assoc) MaxPayload() int { return a.sender().MaxPayload() }

// OutStreams returns the number of outbound streams, 0 before they are negotiated.
func (a *Assoc) OutStreams() int { return int(a.outStreams) }

// InStreams returns the number of inbound streams, 0 before they are negotiated.
func (a *Assoc) InStreams() int { return int(a.inStreams) }

// State returns the state of the association.
func (a *Assoc) State() State { return a.state }

// PeerAdaptation returns the peer's adaptation layer indication, false when it announced none.
func (a *Assoc) PeerAdaptation() (uint32, bool) { return a.peerAdaptation, a.hasAdaptation }

// LocalPort returns the own SCTP port.
func (a *Assoc) LocalPort() uint16 { return a.localPort }

// PeerPort returns the peer's SCTP port.
func (a *Assoc) PeerPort() uint16 { return a.peerPort }

// LocalTag returns the own Verification Tag, which changes when the peer restarts.
func (a *Assoc) LocalTag() uint32 { return a.localTag }

// CookieUntil returns until when a cookie that names the own tag may come back, 0 if there was
// none. Own tags from before a restart count too.
func (a *Assoc) CookieUntil() rawio.Time { return a.cookieExpiresAt }

// CookieMade returns when the latest of those cookies was made.
func (a *Assoc) CookieMade() rawio.Time { return a.cookieMadeAt }

// Incarnation counts the lives of the association. It is 1 at first, and one more with each restart
// of the peer (section 5.2.4 action A). It changes while the packet that restarts is handled,
// before EventRestart is polled. Nothing else changes it. Use it to keep something for as long as
// the association lives. Tags do not serve: the peer's changes without a restart when two setups
// have met (action B). It may also come back after one.
func (a *Assoc) Incarnation() uint64 { return a.incarnation }

// PeerTag returns the peer's Verification Tag, 0 before INIT ACK. It does not identify the
// association: see Incarnation.
func (a *Assoc) PeerTag() uint32 { return a.peerTag }

// PeerAddr returns the peer's address on the primary path.
func (a *Assoc) PeerAddr() netip.AddrPort { return a.primaryPath().Remote }

// LocalAddr returns the own address on the primary path, invalid while the link chooses it.
func (a *Assoc) LocalAddr() netip.AddrPort { return a.primaryPath().Local }
