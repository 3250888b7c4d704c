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

// Assoc is one association. Make one with Connect or Accept. Its fields are in groups, most of
// which have a type with a comment of its own.
//
// A program may have thousands of associations. What a packet looks at is then in no cache of the
// processor, and each line costs a hundred nanoseconds. So the groups that every packet looks at
// come first: see prefetch.go.
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

// headerPrefix is what the common header of the peer's packets begins with.
func (id *associationID) headerPrefix() uint64 {
	return uint64(id.peerPort)<<48 | uint64(id.localPort)<<32 | uint64(id.localTag)
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
	extensions            Extensions
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

// noteCookie notes a cookie that names the own tag.
func (l *life) noteCookie(made, expires rawio.Time) {
	l.cookieExpiresAt, l.cookieMadeAt = max(l.cookieExpiresAt, expires), max(l.cookieMadeAt, made)
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

// rareState is what an association has at its end, or under protection, and else hardly ever.
type rareState struct {
	failedSenders []*tx.Sender         // whose messages have failed, see failMessages
	localRefusal  localRefusal         // what this host has refused to send last
	successor     *rawio.Packet        // see Successor
	extensions    idleExtensions       // of both halves, while the association is idle
	streamResets  *streamResets        // nil: nobody has asked for any
	peerTSN       wire.TSN             // the peer's Initial TSN, where streams can be reset, or addresses change
	usableAddrs   []netip.Addr         // see UsableFrom: of before, where the link chooses an own address
	protection    *protection          // nil: packets go in the clear
	asconf        *asconfState         // nil: nobody has asked to change addresses
	follower      *follower            // see Config.FollowInterfaces
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

// RTOMax returns Config.RTOMax, or its default.
func (a *Assoc) RTOMax() time.Duration { return a.cfg.RTOMax }

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
