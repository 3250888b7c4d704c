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

// Assoc is one association. Make one with Connect or Accept. Its fields are in groups, most of which
// have a type with a comment of its own.
//
// A program may have thousands of associations. What a packet looks at is then in no cache of the
// processor, and each line costs a hundred nanoseconds. So the groups that every packet looks at come
// first: see prefetch.go.
type Assoc struct {
	// Owner is free for the owner's own use.
	Owner any

	// Each message that is sent looks at these groups.

	id     associationID
	agreed agreement
	send   sendState
	hints  hints
	cfg    *Config // of many associations; Reconfigure gives this one its own
	env    *Env
	lifecycle
	pathList
	halves
	outQueues
	sacks sackRoute
	ecn   ecn
	stats counts

	// Each packet that comes looks at these too.

	health    health
	hooks     hooks
	rareState *rareState // nil: there was none
	firstPath path       // the first path that it has ever had, and usually the only one

	// The others are rarely looked at.

	life      life
	addrs     knownAddrs
	limits    rateLimits
	idleState idleState // in the place of the halves, while there are none
}

// associationID is what the common header of a packet says of its association (section 3.1).
type associationID struct {
	localPort, peerPort uint16
	localTag, peerTag   uint32 // Verification Tags; the peer's is 0 before INIT ACK
}

// lifecycle is where the association is in its life (section 4), see state.go.
type lifecycle struct {
	state       State
	stateData   stateData      // what exists in this state only; nil: nothing
	internalErr *InternalError // see Break
}

// pathList lists the peer's addresses, in the order of sender.Paths.
type pathList struct {
	paths   []*path
	onePath [1]*path // paths, if it is but one
}

// halves is where DATA is sent and received, see idle.go.
type halves struct {
	dataState  atomic.Pointer[dataState] // nil while idle, see sender
	recv       *rx.Receiver              // that of dataState; nil also until the peer's Initial TSN is known
	lastDataAt rawio.Time                // when user data was last sent or received
}

// sendState is how far sending has come, beside what tx.Sender keeps.
type sendState struct {
	burstContinues  bool // the last PollTransmit ended with a full batch
	hasUnackedSends bool // messages of Send wait for acknowledgement
	probeDue        bool // a search for a path MTU has a probe to send
}

// outQueues is what waits for PollEvent and PollTransmit.
type outQueues struct {
	events  eventQueue
	control controlQueue // control chunks
	outbox  Outbox       // packets with tags of their own, and last packets
}

// sackRoute is how SACKs go back (section 6.7).
type sackRoute struct {
	path  *path
	local netip.AddrPort // from which own address; invalid: that of the path
}

// counts is what is counted of the association.
type counts struct {
	workSteps uint64 // see Steps
	commonCounters
	rttSamples counters.CompactHistogram
}

// agreement is what both sides have agreed on in INIT and INIT ACK. It is zero before.
type agreement struct {
	outStreams, inStreams uint16
	hasAdaptation         bool // peerAdaptation is known
	peerAdaptation        uint32
}

// health is whether the peer is taken to be alive (section 8.1).
type health struct {
	lastHeardAt rawio.Time // when the last valid packet of the peer came
	errorCount  int        // consecutive errors of the association
}

// hints is what the owner has said of its use of the association.
type hints struct {
	ignoresDry bool // see ReportSenderDry
	isCrowded  bool // see SetCrowded
}

// hooks is how the owner and the layer above are asked.
type hooks struct {
	placer   Placer                // see SetUpper
	source   Source                // see SetUpper
	onAnswer func() bool           // see OnAnswer
	onGrow   func(octets int) bool // see OnGrow
}

// life is what set-ups and restarts need. It begins anew with each restart of the peer (section
// 5.2.4 action A), except for the times of cookies.
type life struct {
	incarnation             uint64     // see Incarnation
	localTSN                wire.TSN   // own Initial TSN
	localTieTag, peerTieTag uint32     // 0 until an unexpected INIT asks for them (section 5.2.2)
	cookieExpiresAt         rawio.Time // see CookieUntil
	cookieMadeAt            rawio.Time // see CookieMade
}

// knownAddrs is what the peer knows of own addresses, see Config.knownFamilies.
type knownAddrs struct {
	local       []netip.Addr // those of Config.LocalAddrs that the peer knows: paths may begin there
	families    familySet    // of the peer addresses that paths may lead to
	peerIsLocal bool         // the peer is on this host
}

// rateLimits bounds what the association sends and reports in a time.
type rateLimits struct {
	heartbeats   heartbeatLimit
	errorReports errorReportLimit
}

// rareState is what an association has at its end, and else hardly ever.
type rareState struct {
	failedSenders []*tx.Sender         // whose messages have failed, see failMessages
	localRefusal  localRefusal         // what this host has refused to send last
	successor     *rawio.Packet        // see Successor
	usableAddrs   []netip.Addr         // see UsableFrom: of before, where the link chooses an own address
	nextResendAt  [MaxPaths]rawio.Time // of each path, see Assoc.nextResendAt
}

// failedSenders returns those whose messages have failed and are still to be reported.
func (a *Assoc) failedSenders() []*tx.Sender {
	if a.rareState == nil {
		return nil
	}
	return a.rareState.failedSenders
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
	a.cfg, a.env, a.state, a.life.incarnation, a.id.localPort, a.id.peerPort = cfg, env, CookieWait, 1, peer.LocalPort,
		peer.PeerPort
	reach := widestScopeAddr(peer.Remotes)
	a.id.localTag, a.life.localTSN, a.stateData = id.tag, id.tsn, &cookieWait{setup: newSetup(0, reach, 0)}
	a.replaceSender()
	a.addrs.peerIsLocal = env.areLocalAddrs(peer.Remotes)
	own := netip.AddrPortFrom(peer.Local.Addr().Unmap(), peer.Local.Port())
	a.addrs.families, a.addrs.local = bothFamilies, a.cfg.localAddrsFor(reach, own.Addr(), bothFamilies)
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
	a.cfg, a.env, a.state, a.life.incarnation, a.id.localPort, a.id.peerPort = cfg, env, Established, 1, c.LocalPort, c.PeerPort
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
	if list := a.failedSenders(); len(list) > 0 && list[len(list)-1] == s { // report its messages from a copy
		list[len(list)-1] = s.Copy()
	}
	a.initSender(s)
}

// initSender makes a sending half, without paths.
func (a *Assoc) initSender(s *tx.Sender) {
	s.Init(tx.Config{TSN: a.life.localTSN, SendBuffer: a.cfg.SendBuffer, MaxBurst: max(a.cfg.MaxBurst, 0),
		MaxSegment: a.cfg.MaxSegment,
		StrictRFC:  a.cfg.RFC9260, NoDelay: a.cfg.NoDelay, NoFragments: a.cfg.DisableFragments, RTTs: &a.stats.rttSamples,
		Rand: a.randUint32, Steps: &a.stats.workSteps})
	s.SetUpper(a.hooks.source, a.hooks.source)
	s.SetECN(a.ecn.enabled)
}

// receiverConfig returns the configuration of a receiving half.
func (a *Assoc) receiverConfig(peerTSN wire.TSN) rx.Config {
	return rx.Config{PeerTSN: peerTSN, RecvBuffer: a.cfg.initialWindow(), MaxBuffer: a.cfg.maxWindow(),
		MaxMessage: a.cfg.MaxMessage, PartialPoint: a.cfg.PartialDelivery,
		PMDCS: a.primaryPath().PMDCS(), SackDelay: a.cfg.SackDelay, LoneSackDelay: a.cfg.LoneSackDelay,
		StrictRFC: a.cfg.RFC9260, InStreams: int(a.agreed.inStreams), Steps: &a.stats.workSteps}
}

// startData makes the receiving half, or restarts it, and gives the sending half the peer's window.
func (a *Assoc) startData(peerRwnd uint32, peerTSN wire.TSN) {
	a.sender().SetPeer(peerRwnd, int(a.agreed.outStreams))
	if cfg := a.receiverConfig(peerTSN); a.recv == nil {
		a.recv = &a.ensureDataState().receiver
		a.recv.Init(cfg)
	} else {
		a.recv.Restart(cfg)
	}
	a.sacks.path, a.sacks.local = a.primaryPath(), netip.AddrPort{}
}

// SetUpper sets the upper layer. p is asked about incoming DATA; with nil everything is queued for
// Receive. s supplies messages and hears of acknowledgements, also for messages of Send. If s is
// nil there is only Send, and acknowledgements go unreported. Call SetUpper before the first
// packet.
func (a *Assoc) SetUpper(p Placer, s Source) {
	a.hooks.placer, a.hooks.source = p, s
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
	a.send.hasUnackedSends = a.send.hasUnackedSends || err == nil
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
func (a *Assoc) SetCrowded(is bool) { a.hints.isCrowded = is }

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
func (a *Assoc) OutStreams() int { return int(a.agreed.outStreams) }

// InStreams returns the number of inbound streams, 0 before they are negotiated.
func (a *Assoc) InStreams() int { return int(a.agreed.inStreams) }

// State returns the state of the association.
func (a *Assoc) State() State { return a.state }

// PeerAdaptation returns the peer's adaptation layer indication, false when it announced none.
func (a *Assoc) PeerAdaptation() (uint32, bool) {
	return a.agreed.peerAdaptation, a.agreed.hasAdaptation
}

// LocalPort returns the own SCTP port.
func (a *Assoc) LocalPort() uint16 { return a.id.localPort }

// PeerPort returns the peer's SCTP port.
func (a *Assoc) PeerPort() uint16 { return a.id.peerPort }

// LocalTag returns the own Verification Tag, which changes when the peer restarts.
func (a *Assoc) LocalTag() uint32 { return a.id.localTag }

// CookieUntil returns until when a cookie that names the own tag may come back, 0 if there was
// none. Own tags from before a restart count too.
func (a *Assoc) CookieUntil() rawio.Time { return a.life.cookieExpiresAt }

// CookieMade returns when the latest of those cookies was made.
func (a *Assoc) CookieMade() rawio.Time { return a.life.cookieMadeAt }

// Incarnation counts the lives of the association. It is 1 at first, and one more with each restart
// of the peer (section 5.2.4 action A). It changes while the packet that restarts is handled,
// before EventRestart is polled. Nothing else changes it. Use it to keep something for as long as
// the association lives. Tags do not serve: the peer's changes without a restart when two setups
// have met (action B). It may also come back after one.
func (a *Assoc) Incarnation() uint64 { return a.life.incarnation }

// PeerTag returns the peer's Verification Tag, 0 before INIT ACK. It does not identify the
// association: see Incarnation.
func (a *Assoc) PeerTag() uint32 { return a.id.peerTag }

// PeerAddr returns the peer's address on the primary path.
func (a *Assoc) PeerAddr() netip.AddrPort { return a.primaryPath().Remote }

// LocalAddr returns the own address on the primary path, invalid while the link chooses it.
func (a *Assoc) LocalAddr() netip.AddrPort { return a.primaryPath().Local }
