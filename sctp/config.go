package sctp

import (
	"cmp"
	"crypto/rand"
	"io"
	"log/slog"
	"net/netip"
	"reflect"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Config says how associations behave: that of a Dial, and those that come to a Listener or a
// Socket. The zero value of each field selects the default, which is that of RFC 9260 section 16
// where the RFC gives one. Fields with a default of their own for RDMA are those of rdma.Config.
type Config struct {
	// What the protocol does: the fields of assoc.Config.

	// OutStreams is the number of outbound streams asked for, InStreams the most inbound streams
	// accepted (section 5.1.1). Defaults: OutStreams 10, or for an association that comes to a
	// listener as many as the peer opens, if that is more, so that each message can be answered on
	// its stream; InStreams 65535. There are never more outbound streams than the peer accepts:
	// Stats tells how many there are.
	OutStreams, InStreams uint16
	// RecvBuffer is the receive window and SendBuffer the most that is queued to be sent, both in
	// octets of user data; RecvBuffer is at least 1500 (section 3.3.2). Default 0: 1 MiB each,
	// which grow to 16 MiB over paths with round trips of two milliseconds and more, while there is
	// memory: the window to four times what the program reads in a round trip, the other to twice
	// what may be in flight. A message to be sent is no longer than 1 MiB then.
	RecvBuffer, SendBuffer int
	// MaxMessage is the longest message accepted from the peer, in octets; a longer one aborts the
	// association. Default 0: of any length. A message that RecvBuffer does not hold is delivered
	// in pieces; with MaxMessage up to RecvBuffer there are none, but those of PartialDelivery.
	MaxMessage int
	// PartialDelivery has a message delivered in pieces as soon as more than so many octets of it
	// wait for its end (SCTP_PARTIAL_DELIVERY_POINT of RFC 6458), at most RecvBuffer. Default 0:
	// when RecvBuffer does not hold it.
	PartialDelivery int

	// Adaptation is the adaptation layer indication announced in INIT and INIT ACK (RFC 5061
	// section 4.2.6); nil announces none. With RequireAdaptation a peer that announces none, or
	// another one, is refused by ABORT and the association ends with an *AdaptationError.
	Adaptation        *uint32
	RequireAdaptation bool

	// RTOInitial, RTOMin and RTOMax bound the retransmission timeout. Defaults 1 s, 1 s, 60 s.
	RTOInitial, RTOMin, RTOMax time.Duration
	// SackDelay is the longest wait before DATA is acknowledged: default 200 ms, at most 500 ms.
	// Unless RFC9260 is set it is no longer than a round trip, or 25 ms where that is shorter, or
	// 80 ms where no round trip is known or packets come for many of the 512 or more associations
	// of a Transport; and no longer than half of what a peer has waited before it sent again what
	// was not acknowledged.
	SackDelay time.Duration
	// LoneSackDelay is that wait while what the peer sends is not answered by DATA, which takes a
	// SACK along: until 16 packets in a row were, and again once one was not. Default SackDelay,
	// and not longer.
	LoneSackDelay time.Duration
	// HeartbeatInterval is HB.interval, default 30 s. A negative value disables heartbeats to
	// confirmed addresses; unconfirmed ones are still probed, as section 5.4 requires.
	HeartbeatInterval time.Duration
	// CookieLife is Valid.Cookie.Life, default 60 s. A peer that asks for more gets up to twice as
	// much.
	CookieLife time.Duration
	// MaxBurst is the most packets with DATA sent at one opportunity; default 4, negative for no
	// limit, which suits who answers many received packets at once. Unless RFC9260 is set, 128 KiB
	// may go in any case. HBMaxBurst is the most HEARTBEATs per RTO (default 1).
	MaxBurst, HBMaxBurst int
	// NoDelay sends each message as soon as the windows allow (SCTP_NODELAY of RFC 6458). Without
	// it, while at least four full packets are in flight over a path with round trips of less than
	// 1 ms, a packet that would be short may wait for more messages, and less than 64 KiB of
	// messages for more; until the next SACK, or the one after it. So may up to eight short
	// messages, for 0.2 ms at most, of a Conn that has just been read from and has more to read, or
	// where two short packets are in flight. When less is in flight, or far away, nothing waits.
	NoDelay bool
	// DisableFragments has a message refused that does not fit one packet, by ErrNeedsFragments
	// (SCTP_DISABLE_FRAGMENTS of RFC 6458).
	DisableFragments bool
	// MaxSegment bounds the user data of a DATA chunk, in octets (SCTP_MAXSEG of RFC 6458); 0
	// leaves it to the path MTUs.
	MaxSegment int
	// AssocMaxRetrans, PathMaxRetrans and MaxInitRetrans are the retransmission limits of the
	// association (default 10), of one path (5) and of INIT and COOKIE ECHO (8).
	AssocMaxRetrans, PathMaxRetrans, MaxInitRetrans int

	// MaxInitRTO bounds the wait for an answer to INIT and COOKIE ECHO, whose timeouts double from
	// RTOInitial (sinit_max_init_timeo of RFC 6458); it says nothing about data. Default RTOMax.
	MaxInitRTO time.Duration
	// AutoClose ends an association gracefully, by SHUTDOWN, that has neither sent nor received
	// user data for so long (SCTP_AUTOCLOSE of RFC 6458). Default 0: never.
	AutoClose time.Duration

	// LocalAddrs are the own addresses of associations, at most 8. The peer is told those that
	// mean something to it, and a path to each address of the peer begins at the one that suits it
	// best. Empty: associations have one own address, which the link or the peer chooses. All
	// paths begin there, and lead to addresses of its family only; the peer's others are ignored
	// (RFC 9260 section 5.1.2).
	LocalAddrs []netip.Addr
	// PotentiallyFailedMaxRetrans is how many consecutive errors a path may have before data avoids
	// it (RFC 7829 section 3.2); default 0. With PathMaxRetrans or more that state does not occur.
	// HidePotentiallyFailed reports paths in it as active.
	PotentiallyFailedMaxRetrans int
	HidePotentiallyFailed       bool
	// PrimarySwitchoverMaxRetrans is how many consecutive errors the primary path may have before
	// the path that data has moved to becomes the primary one (RFC 7829 section 5). It is at least
	// PotentiallyFailedMaxRetrans, or PathMaxRetrans where that is smaller. Nil: data returns to
	// the primary path when it recovers.
	PrimarySwitchoverMaxRetrans *int

	// MTU is the largest IP packet in octets, at least rawio.MinMTU; 0 is what the link takes. The
	// MTU of each path is searched for below it (RFC 8899), where the link can send packets whole
	// or not at all. DisablePMTUD takes all paths to carry what the link, and MTU, allow.
	MTU          int
	DisablePMTUD bool
	// DSCP is the Differentiated Services codepoint of packets, 0 to 63, and FlowLabel the flow
	// label of those of IPv6, of 20 bits (SPP_DSCP and SPP_IPV6_FLOWLABEL of RFC 6458). Default 0:
	// what the link is configured with. Where the link cannot set them there is ErrNoMarks.
	DSCP      uint8
	FlowLabel uint32
	// DisableECN does without explicit congestion notification (RFC 3168), which is otherwise
	// offered to the peer where the link reports congestion marks.
	DisableECN bool

	// RFC9260 keeps to the letter of sections 6.1 and 7.2.1 where this stack has learnt from TCP
	// and QUIC. Without it an association begins with ten packets (RFC 6928), spreads packets over
	// round trips of two milliseconds and more instead of counting MaxBurst of them, keeps the
	// window of before a silence, for minutes (RFC 7661), and finds losses over them by RACK-TLP
	// (RFC 8985).
	RFC9260 bool
	// NewController makes the congestion controller of each path: cc.NewCubic, which nil selects
	// (cc.RFC9260 under RFC9260), cc.NewReno or cc.NewBBR.
	NewController cc.Factory

	// Who it is with, and what is kept for the program.

	// EncapPort is the peer's UDP port when the link encapsulates in UDP (RFC 6951); 0 means 9899.
	// Links without UDP ignore it.
	EncapPort uint16
	// LocalPort is the own SCTP port of Dial; 0 picks a free one, or where few are free one of
	// other associations of Dial. Associations of Dial with different peers may share a port (RFC
	// 9260 section 1.3). Where links bind ports (rawio.PortBinder), other programs get it only four
	// RTOs after the association's end, so that a last packet that was lost can be repeated.
	LocalPort uint16
	// RemoteAddrs are further addresses of the peer that Dial may use, all at the same SCTP port;
	// at most 7. Those that only the peer names are used when they are confirmed (section 5.4).
	// Without LocalAddrs they serve the set-up, whatever their family; later those of the family
	// of the one that answered.
	RemoteAddrs []netip.Addr
	// Events is how many notifications a Conn keeps for Conn.NextEvent; 0 keeps none.
	Events int
	// Backlog bounds the associations with one address, of IPv6 one /64, that a Listener holds
	// until Accept takes them, and twice Backlog those with all; 0 means 128. Further ones are
	// refused by ABORT with Out of Resource (section 5.1). One that fails gives its place up,
	// unless it has brought messages, which Accept's caller may still read.
	Backlog int
	// Upper, when set, gives each new association to a protocol above in place of the message API.
	// It is called before the association's first packet.
	Upper func(*Conn, *assoc.Assoc) Upper

	socket     *Socket     // that the association belongs to
	mayProceed func() bool // see assoc.Assoc.OnAnswer
}

// numOptions is how many fields Config and assoc.Config begin with in common.
var numOptions = reflect.TypeFor[assoc.Config]().NumField()

// Complete returns a copy of c in which each option of the protocol has its value, the default
// where c has none, or a *ConfigError.
func (c *Config) Complete() (d Config, err error) {
	if c != nil {
		d = *c
	}
	a, err := d.assocConfig().Complete()
	if err != nil {
		return Config{}, err
	}
	copyOptions(&d, &a)
	return d, nil
}

// assocConfig returns the options as the core has them.
func (c *Config) assocConfig() *assoc.Config {
	a := new(assoc.Config)
	copyOptions(a, c)
	return a
}

// copyOptions copies the options from one kind of Config to the other: pointers to both.
func copyOptions(to, from any) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range numOptions {
		dst.Field(i).Set(src.Field(i))
	}
}

func (c *Config) backlogLimit() int {
	if c.Backlog > 0 {
		return c.Backlog
	}
	return 128
}

// firstSendBuffer returns the send buffer to begin with.
func (c *Config) firstSendBuffer() int { return cmp.Or(c.SendBuffer, tx.FirstBuffer) }

// TransportConfig says how a Transport behaves. The zero value is what most programs want.
type TransportConfig struct {
	// CloseTimeout bounds how long Conn.Close waits for a graceful end; 0 means 10 seconds. All
	// associations that close together, or one after the other, have that time once; each has four
	// round trips at least, of 2 ms to a second. Close goes on for another CloseTimeout while the
	// peer acknowledges 1,024 octets a second of what was written, for ten times CloseTimeout at
	// most.
	CloseTimeout time.Duration
	// Rand is the source of verification tags, initial TSNs, cookie secrets and nonces;
	// nil means crypto/rand.
	Rand io.Reader
	// Logger gets a line for each rare event: an association that comes, ends or restarts, a path
	// that fails or recovers, an error that the peer reports, a limit that is reached, what this
	// host itself refuses to send (once a minute for each address and reason). There is never a
	// line for a packet, and at most 100 in a second; lines about limits come once a minute. Nil
	// writes nothing. Its handler is called from the goroutines that receive, and should not block.
	Logger *slog.Logger
	// Tracer hears what associations do. Nil costs a look at it for each batch of packets.
	Tracer Tracer

	// MaxAssocs bounds the associations; further peers are refused by ABORT with Out of Resource
	// (section 3.3.10.4). 0 means 1,048,576.
	MaxAssocs int
	// MaxPerSource bounds the associations that were set up from one IPv4 address, or IPv6 /64; a
	// /56 has twice as many together, a /48 three times, a /32 four times. More are refused in the
	// same way. 0 means 16,384, negative no bound.
	MaxPerSource int
	// MaxAnswers bounds the answers to INITs and packets out of the blue that one address gets in a
	// second, so that this host does not flood somebody whose address another forges. Of more
	// packets some get an answer, by chance, so that who forges a host's address does not keep it
	// from setting up associations. 0 means 10,000, negative no bound.
	MaxAnswers int
	// MaxSetups bounds the packets that are looked at in a second to set up associations, or
	// because they belong to none; a packet of more than 256 octets counts as several. Of more
	// packets some are looked at, by chance: in any second twice as many at most, and what two of
	// the longest count. So floods of them cost no more than so much time, and about 300 octets of
	// answers for each. 0 means 50,000, negative no bound.
	MaxSetups int
	// MaxMemory bounds, in octets, what all peers together make this Transport hold: data that the
	// program has not read, data that waits for what comes before it, packets, and the associations
	// themselves. One address (of IPv6: one /64) may take half of it. When it is nearly used up,
	// associations with more than their share have their windows closed; when it is, the greediest
	// are aborted, with a *assoc.MemoryError, and new ones refused. 0 means a quarter of what this
	// process may use: of the RAM, the limit of its control group, or GOMEMLIMIT, whichever is the
	// least. Negative means no bound.
	MaxMemory int64
}

const (
	defaultPerSource = 16_384
	defaultAnswers   = 10_000
	defaultSetups    = 50_000
)

func (c *TransportConfig) maxPerSource() int { return orDefault(c.MaxPerSource, defaultPerSource) }
func (c *TransportConfig) maxAnswers() int   { return orDefault(c.MaxAnswers, defaultAnswers) }

func (c *TransportConfig) maxSetups() int { return orDefault(c.MaxSetups, defaultSetups) }

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

func (c *TransportConfig) closeTimeout() time.Duration {
	if c.CloseTimeout > 0 {
		return c.CloseTimeout
	}
	return 10 * time.Second
}

func (c *TransportConfig) randReader() io.Reader {
	if c.Rand != nil {
		return c.Rand
	}
	return rand.Reader
}
