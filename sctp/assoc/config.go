package assoc

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/sched"
)

// Config holds the protocol parameters of an association. The zero value of each field selects the
// default. Where RFC 9260 section 16 gives one, that is the default. The Config of package sctp
// begins with the same fields.
type Config struct {
	// OutStreams is the number of outbound streams asked for (section 5.1.1). There are never more
	// than the peer accepts: Stats reports how many. Default 10, or as many as the peer opens if
	// the association comes to a listener and that is more: each message can then be answered on
	// its stream.
	OutStreams uint16

	// InStreams is the largest number of inbound streams accepted. Default 65535.
	InStreams uint16

	// RecvBuffer is the receive window in octets of user data, at least 1500 (section 3.3.2).
	// Default 1 MiB. Over paths with round trips of two milliseconds and more the default grows to
	// four times what the program reads in a round trip, up to 16 MiB, while there is memory.
	RecvBuffer int

	// SendBuffer is the most that is queued to be sent, in octets of user data. A message is no
	// longer than that. Default 1 MiB. Over paths with round trips of two milliseconds and more the
	// default grows to twice what may be in flight, up to 16 MiB, while there is memory; messages
	// of more than 1 MiB are refused all the same.
	SendBuffer int

	// MaxMessage is the longest message accepted from the peer, in octets. A longer one aborts the
	// association. A message that RecvBuffer does not hold is delivered in pieces, so with
	// MaxMessage up to RecvBuffer there are none but those of PartialDelivery. Default 0: any
	// length.
	MaxMessage int

	// PartialDelivery is how many octets of a message may wait for its end, at most RecvBuffer.
	// When more wait, the message is delivered in pieces (SCTP_PARTIAL_DELIVERY_POINT of RFC 6458).
	// Default 0: when RecvBuffer does not hold it.
	PartialDelivery int

	// Adaptation is the adaptation layer indication announced in INIT and INIT ACK (RFC 5061
	// section 4.2.6). Default nil: none is announced.
	Adaptation *uint32

	// RequireAdaptation refuses by ABORT a peer that does not announce the same adaptation layer.
	// The association then ends with an *AdaptationError. Default false.
	RequireAdaptation bool

	// RTOInitial is the retransmission timeout before the first measurement. Default 1 s.
	RTOInitial time.Duration

	// RTOMin is the shortest retransmission timeout. Default 1 s.
	RTOMin time.Duration

	// RTOMax is the longest retransmission timeout. Default 60 s.
	RTOMax time.Duration

	// SackDelay is the longest wait before DATA is acknowledged, at most 500 ms. Unless RFC9260 is
	// set, a SACK waits no longer than a round trip or 25 ms, whichever is longer; 80 ms replace
	// the 25 if no round trip is known, or if packets come for many of the 512 or more associations
	// of a Transport. It waits no longer than half of what a peer has waited before it
	// retransmitted. Default 200 ms.
	SackDelay time.Duration

	// LoneSackDelay is that wait while the peer's packets are not answered by DATA, which takes a
	// SACK along. It holds until 16 packets in a row were answered, and again once one was not.
	// Default SackDelay, which it cannot exceed.
	LoneSackDelay time.Duration

	// HeartbeatInterval is HB.interval. A negative value disables heartbeats to confirmed
	// addresses; unconfirmed ones are probed all the same, as section 5.4 requires. Default 30 s.
	HeartbeatInterval time.Duration

	// CookieLife is Valid.Cookie.Life. A peer that asks for more gets up to twice as much. Default
	// 60 s.
	CookieLife time.Duration

	// MaxBurst is the most packets with DATA sent at one opportunity. A negative value means no
	// limit, which suits a program that answers many received packets at once. Unless RFC9260 is
	// set, 128 KiB may go in any case. Default 4.
	MaxBurst int

	// HBMaxBurst is the most HEARTBEATs in one RTO. Default 1.
	HBMaxBurst int

	// NoDelay sends each message as soon as the windows allow (SCTP_NODELAY of RFC 6458). Without
	// it, a short packet, or less than 64 KiB of messages, may wait for more messages until the
	// next SACK or the one after it, with at least four full packets in flight over a path with
	// round trips of less than 1 ms.
	//
	// Up to eight short messages may also wait, for 0.2 ms at most. This needs two short packets in
	// flight, or a Conn that was just read from and has more to read. When less is in flight, or
	// the peer is farther away, nothing waits. Default false.
	NoDelay bool

	// DisableFragments refuses, by ErrNeedsFragments, a message that does not fit one packet
	// (SCTP_DISABLE_FRAGMENTS of RFC 6458). Default false.
	DisableFragments bool

	// MaxSegment bounds the user data of a DATA chunk, in octets (SCTP_MAXSEG of RFC 6458). Default
	// 0: the MTU of the path alone bounds it.
	MaxSegment int

	// AssocMaxRetrans is Association.Max.Retrans: the association ends when the peer has not
	// answered so many retransmissions in a row. Default 10.
	AssocMaxRetrans int

	// PathMaxRetrans is Path.Max.Retrans: a path is inactive when it has not answered so many.
	// Default 5; AssocMaxRetrans over a link that leads to one peer (RFC 8261 section 6.1).
	PathMaxRetrans int

	// MaxInitRetrans is Max.Init.Retransmits, of INIT and of COOKIE ECHO. Default 8.
	MaxInitRetrans int

	// MaxInitRTO bounds the wait for an answer to INIT and COOKIE ECHO, not to data
	// (sinit_max_init_timeo of RFC 6458). Their timeouts double from RTOInitial. Default RTOMax.
	MaxInitRTO time.Duration

	// AutoClose ends, by SHUTDOWN, an association that has neither sent nor received user data for
	// so long (SCTP_AUTOCLOSE of RFC 6458). Default 0: never.
	AutoClose time.Duration

	// LocalAddrs are the own addresses of associations, at most 8. The peer learns those that mean
	// something to it. A path to an address of the peer begins at the one that suits it best.
	// Default none: an association has one own address, which the link or the peer chooses. All
	// paths then begin there and lead to addresses of its family; the peer's others are ignored
	// (section 5.1.2).
	LocalAddrs []netip.Addr

	// PotentiallyFailedMaxRetrans is how many consecutive errors a path may have before data avoids
	// it (RFC 7829 section 3.2). With PathMaxRetrans or more that state does not occur. Default 0.
	PotentiallyFailedMaxRetrans int

	// HidePotentiallyFailed reports paths in that state as active. Default false.
	HidePotentiallyFailed bool

	// PrimarySwitchoverMaxRetrans is how many consecutive errors the primary path may have. Beyond
	// that, the path that data has moved to becomes the primary one (RFC 7829 section 5). It is at
	// least the smaller of PotentiallyFailedMaxRetrans and PathMaxRetrans. Default nil: data
	// returns to the primary path when it recovers.
	PrimarySwitchoverMaxRetrans *int

	// MTU is the largest IP packet in octets, at least rawio.MinMTU. Below it the MTU of each path
	// is searched for (RFC 8899), if the link can send packets whole or not at all. Default 0: what
	// the link takes.
	MTU int

	// DisablePMTUD assumes that all paths carry what the link, and MTU, allow. Default false.
	DisablePMTUD bool

	// DSCP is the Differentiated Services codepoint of packets, 0 to 63 (SPP_DSCP of RFC 6458). If
	// the link cannot set it the error is ErrNoMarks. Default 0: what the link is configured with.
	DSCP uint8

	// FlowLabel is the flow label of IPv6 packets, of 20 bits (SPP_IPV6_FLOWLABEL). If the link
	// cannot set it the error is ErrNoMarks. Default 0: what the link is configured with.
	FlowLabel uint32

	// DisableECN turns off explicit congestion notification (RFC 3168). It is otherwise offered to
	// the peer if the link reports congestion marks. Default false.
	DisableECN bool

	// RFC9260 keeps to the letter of sections 6.1 and 7.2.1 where this stack has learnt from TCP
	// and QUIC. Without it an association begins with ten packets (RFC 6928). Over round trips of
	// two milliseconds and more it spreads packets instead of counting MaxBurst of them. It finds
	// losses over such paths by RACK-TLP (RFC 8985). It keeps its window after a silence, for
	// minutes (RFC 7661). Default false.
	RFC9260 bool

	// PartialReliability offers the peer to give messages up after they were sent (RFC 3758, RFC
	// 7496): see SendInfo.Abandon of package sctp, and Extensions for what the peer says. Default
	// false.
	PartialReliability bool

	// Interleaving says that the program takes messages of several streams in pieces, in any order
	// among the streams, and offers the peer to send them so (I-DATA, RFC 8260). Where the peer
	// agrees, a long message does not hold up those of other streams. Pieces of one stream follow
	// one another still. They come before a message is whole also where MaxMessage is no more than
	// RecvBuffer, when messages that are not whole fill it. Default false.
	Interleaving bool

	// StreamReset offers the peer to reset streams and to add some (RFC 6525), and says what the
	// peer may ask for. Default 0: it is not offered.
	StreamReset StreamReset

	// MaxOutStreams is how many outbound streams the peer may bring about by AllowAddStreams.
	// Default 65535.
	MaxOutStreams uint16

	// NewScheduler makes what chooses the stream that sends next (RFC 8260 section 3), such as
	// sched.Priority, for each association. Default nil: messages go in the order in which they
	// were written.
	NewScheduler func() sched.Scheduler

	// NewController makes the congestion controller of each path: cc.NewCubic, cc.NewReno or
	// cc.NewBBR. Default cc.NewCubic; cc.RFC9260 under RFC9260.
	NewController cc.Factory

	// FollowInterfaces has the own addresses follow those of this host's interfaces, by AddLocalAddr
	// and RemoveLocalAddr (RFC 5061). An association goes on when its host changes networks. Once an
	// interface changes, every address that packets can leave from and that means something to the
	// peer is added, at most 8 in all. One that is gone is removed when the peer has sent to another.
	// Over UDP the association moves when its address is gone, and has one. It needs TLS, and a link
	// that hears of changes: raw IP or UDP on Linux. Ports are then bound at all addresses. Default
	// false.
	FollowInterfaces bool

	// LooseTLS also takes a peer that does not encrypt, or has no method for keys in common: the
	// association goes in the clear then, and ConnectionState says so (the draft's loose mode).
	// Anybody on the path can bring that about. Addresses do not change in loose mode. Default false:
	// such a peer is refused.
	LooseTLS bool

	// Protected seals packets in DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk), and refuses a peer
	// that does not, unless LooseTLS is set. Keys come from TLS sessions: see Assoc.SetKeySessions.
	// Package sctp sets it if its Config has a TLS configuration. Default false.
	Protected bool

	// Restartable keeps keys for a restart of a protected association after a crash of either side,
	// and tells the peer so: see Assoc.SetRestartKeeper. Package sctp sets it if its Config has a
	// RestartStore. Default false: such a restart is dropped in silence.
	Restartable bool
}

// ConfigError reports a Config field outside its range.
type ConfigError struct {
	Field string // name of the field in Config
	Range string // what it may be
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("sctp: Config.%s must be %s", e.Field, e.Range)
}

// Env is what an association needs of the endpoint it belongs to.
type Env struct {
	// Rand is the source of verification tags, initial TSNs and heartbeat nonces. It must be
	// unpredictable to others.
	Rand io.Reader
	// MTU returns the largest SCTP packet in octets on the path from local to remote.
	MTU func(local, remote netip.Addr) int
	// Cookies signs and opens state cookies.
	Cookies *Jar
	// CutFrom is rawio.Fragmenter's; nil: the link makes fragments of any packet.
	CutFrom func(local, remote netip.Addr) int
	// BaseMTU is rawio.BaseSizer's; nil: no length is known that passes everywhere.
	BaseMTU func(local, remote netip.Addr) int
	// Features are those of the link. Without rawio.DontFragment path MTUs are not searched for.
	// Without rawio.ECNField there is no ECN. With rawio.PointToPoint, RFC 8261 section 6.1 holds.
	Features rawio.Features
	// ErrorDetection is rawio.ErrorDetector's: how the link detects errors, if it does.
	ErrorDetection rawio.ErrorDetection
	// Own says whether an address is one of this host's now, besides the loopback ones. Nil: none
	// is known. Such an address is no path to a peer elsewhere.
	Own func(netip.Addr) bool
	// New returns where the next association is to lie, which is zero. If it is nil each is
	// allocated by itself.
	New func() *Assoc
}

// isPointToPoint says whether the link leads to one peer by one path.
func (e *Env) isPointToPoint() bool { return e.Features&rawio.PointToPoint != 0 }

// newAssoc returns what New returns, or a new association if New is nil.
func (e *Env) newAssoc() *Assoc {
	if e.New == nil {
		return new(Assoc)
	}
	return e.New()
}

const (
	minWindow                 = 1500                   // least a_rwnd of INIT and INIT ACK, section 3.3.2
	maxSackDelay              = 500 * time.Millisecond // section 6.2
	dscpRange, flowLabelRange = "0 to 63", "of 20 bits"
	minSegment                = 444 // that fills an IPv6 packet of 512 octets, as Linux has it
)

// defaultOutStreams is how many outbound streams an INIT asks for if Config names none. An INIT ACK
// asks for at least as many.
const defaultOutStreams = 10

// outStreams is how many outbound streams an INIT asks for.
func (c *Config) outStreams() uint16 {
	if c.OutStreams == 0 {
		return defaultOutStreams
	}
	return c.OutStreams
}

// streamsFor returns OS and MIS of the INIT ACK that answers an offer. OS is never above the peer's
// MIS (section 3.3.3). A required adaptation layer may pair streams, so that Config has as many of
// both. The INIT ACK then has as many of both too (RFC 5043 section 8).
func (c *Config) streamsFor(of *initParams) (out, in uint16) {
	out, in = c.outStreams(), c.InStreams
	if c.OutStreams == 0 {
		out = max(out, min(of.outStreams, in))
	}
	if out = min(out, of.inStreams); c.RequireAdaptation && c.OutStreams == c.InStreams {
		out = min(out, of.outStreams)
		in = out
	}
	return out, in
}

// defaultAssocMaxRetrans is that of section 16.
const defaultAssocMaxRetrans = 10

// Complete returns a copy of c with every default filled in, or a *ConfigError. OutStreams stays 0
// if that is the default, as the number depends on the peer's.
func (c *Config) Complete() (Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	for _, r := range []struct {
		value int64
		field string
	}{
		{int64(d.SendBuffer), "SendBuffer"}, {int64(d.MaxMessage), "MaxMessage"},
		{int64(d.RTOMin), "RTOMin"}, {int64(d.RTOInitial), "RTOInitial"}, {int64(d.SackDelay), "SackDelay"},
		{int64(d.LoneSackDelay), "LoneSackDelay"}, {int64(d.CookieLife), "CookieLife"},
		{int64(d.HBMaxBurst), "HBMaxBurst"},
		{int64(d.AssocMaxRetrans), "AssocMaxRetrans"}, {int64(d.PathMaxRetrans), "PathMaxRetrans"},
		{int64(d.MaxInitRetrans), "MaxInitRetrans"},
		{int64(d.PotentiallyFailedMaxRetrans), "PotentiallyFailedMaxRetrans"},
		{int64(d.MaxInitRTO), "MaxInitRTO"}, {int64(d.AutoClose), "AutoClose"},
	} {
		if r.value < 0 {
			return Config{}, &ConfigError{Field: r.field, Range: "0 or more"}
		}
	}
	setDefault(&d.InStreams, 65535)
	setDefault(&d.RTOInitial, time.Second)
	setDefault(&d.RTOMin, time.Second)
	setDefault(&d.RTOMax, 60*time.Second)
	setDefault(&d.SackDelay, 200*time.Millisecond)
	setDefault(&d.HeartbeatInterval, 30*time.Second)
	setDefault(&d.CookieLife, 60*time.Second)
	setDefault(&d.MaxBurst, 4)
	if d.RFC9260 && d.NewController == nil {
		d.NewController = cc.RFC9260
	}
	setDefault(&d.HBMaxBurst, 1)
	setDefault(&d.AssocMaxRetrans, defaultAssocMaxRetrans)
	setDefault(&d.PathMaxRetrans, 5)
	setDefault(&d.MaxInitRetrans, 8)
	for _, r := range []struct {
		ok           bool
		field, limit string
	}{
		{d.initialWindow() >= minWindow && d.initialWindow() <= 1<<31-1, "RecvBuffer", "1500 to 2147483647 octets"},
		{d.PartialDelivery >= 0 && d.PartialDelivery <= d.initialWindow(), "PartialDelivery", "0 to RecvBuffer"},
		{d.DSCP <= maxDSCP, "DSCP", dscpRange},
		{d.FlowLabel <= maxFlowLabel, "FlowLabel", flowLabelRange},
		{d.RTOMin <= d.RTOMax, "RTOMin", "at most RTOMax"},
		{d.RTOInitial <= d.RTOMax, "RTOInitial", "at most RTOMax"},
		{d.SackDelay <= maxSackDelay, "SackDelay", "at most 500 ms"},
		{d.LoneSackDelay <= d.SackDelay, "LoneSackDelay", "at most SackDelay"},
		{d.CookieLife <= keyLifetime, "CookieLife", "at most one hour"},
		{d.MTU == 0 || d.MTU >= rawio.MinMTU, "MTU", fmt.Sprintf("0 or at least %d octets", rawio.MinMTU)},
		{d.MaxSegment == 0 || d.MaxSegment >= minSegment, "MaxSegment",
			fmt.Sprintf("0 or at least %d octets", minSegment)},
		{d.PrimarySwitchoverMaxRetrans == nil || *d.PrimarySwitchoverMaxRetrans >= min(d.PotentiallyFailedMaxRetrans,
			d.PathMaxRetrans),
			"PrimarySwitchoverMaxRetrans",
			"at least PotentiallyFailedMaxRetrans or PathMaxRetrans, whichever is smaller"},
		{d.normalizeAddrs(), "LocalAddrs", "at most 8 different unicast addresses"},
		{!d.RequireAdaptation || d.Adaptation != nil, "Adaptation", "set when RequireAdaptation is"},
		{!d.Protected || !d.Interleaving, "Interleaving", "false under TLS"},
		{!d.Protected || d.StreamReset == 0, "StreamReset", "0 under TLS"},
		{d.Protected && !d.LooseTLS || !d.FollowInterfaces, "FollowInterfaces", "false without TLS, or in loose mode"},
		{d.Protected || !d.LooseTLS, "LooseTLS", "false without TLS"},
	} {
		if !r.ok {
			return Config{}, &ConfigError{Field: r.field, Range: r.limit}
		}
	}
	return d, nil
}

// initialWindow returns the receive buffer to begin with, and maxWindow what it may grow to.
func (c *Config) initialWindow() int { return cmp.Or(c.RecvBuffer, tx.FirstBuffer) }
func (c *Config) maxWindow() int     { return cmp.Or(c.RecvBuffer, tx.MaxBuffer) }

// normalizeAddrs makes LocalAddrs its own list of plain addresses, and says whether they can be
// used.
func (c *Config) normalizeAddrs() bool {
	var list []netip.Addr
	for _, a := range c.LocalAddrs {
		if a = a.Unmap(); !Unicast(a) || slices.Contains(list, a) || len(list) == MaxPaths {
			return false
		}
		list = append(list, a)
	}
	c.LocalAddrs = list
	return true
}

// CompleteFor is Complete for associations over a link. Where that leads to one peer by one path,
// PathMaxRetrans is by default AssocMaxRetrans (RFC 8261 section 6.1).
func (c *Config) CompleteFor(env *Env) (Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	if env.isPointToPoint() && d.PathMaxRetrans == 0 {
		d.PathMaxRetrans = cmp.Or(d.AssocMaxRetrans, defaultAssocMaxRetrans)
	}
	return d.Complete()
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
