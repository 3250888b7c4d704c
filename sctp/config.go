package sctp

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"io"
	"log/slog"
	"net/netip"
	"reflect"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/upper"
)

// Config says how associations behave: that of a Dial, and those that come to a Listener or a
// Socket. The zero value of each field selects the default, which is that of RFC 9260 section 16 if
// it gives one. Fields with a default of their own for RDMA are those of rdma.Config.
type Config struct {
	// What the protocol does: the fields of assoc.Config.

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

	// TLS encrypts and authenticates all packets: each is sealed in a DTLS chunk
	// (draft-ietf-tsvwg-sctp-dtls-chunk; experimental). A peer that does not do so is refused,
	// unless LooseTLS is set. Both sides show a certificate, whichever dials. A peer is verified as
	// the server ServerName, by RootCAs, if that is set. Dial sets it to the host that it calls.
	// Without it a peer is verified as a client, by ClientCAs. Versions other than TLS 1.3, and
	// tickets, are not used. See docs/security.md. Default nil: packets go in the clear.
	TLS *tls.Config

	// RestartStore keeps keys by which associations with TLS are restarted after a crash of either
	// side. Both sides need one. A program that was restarted calls Dial from the same address and
	// LocalPort to the same peer, whose program hears EventRestart. See NewFileRestartStore.
	// Default nil: what restarts is dropped in silence, until the peer has given the association
	// up.
	RestartStore RestartStore

	// These fields say which peer it is, and what is kept for the program.

	// EncapPort is the peer's UDP port when the link encapsulates in UDP (RFC 6951). Links without
	// UDP ignore it. Default 9899.
	EncapPort uint16

	// LocalPort is the own SCTP port of Dial. Associations of Dial with different peers may share a
	// port (section 1.3). If links bind ports (rawio.PortBinder), other programs get it only four
	// RTOs after the association's end, so that a last packet that was lost can be repeated.
	// Default 0: a free one, or one that Dial uses already if few are free.
	LocalPort uint16

	// RemoteAddrs are further addresses of the peer that Dial may use, all at the same SCTP port,
	// at most 7. Addresses that only the peer names are used when they are confirmed (section 5.4).
	// Without LocalAddrs they serve the set-up, whatever their family. Later only those of the
	// family of the address that answered are used. Default none.
	RemoteAddrs []netip.Addr

	// MaxUnsent has writes wait while so many octets of messages were not sent yet, even once,
	// however much room the send buffer has (as TCP_NOTSENT_LOWAT does). Default 0: the send buffer
	// alone decides.
	MaxUnsent int

	// Inits are the INIT chunks of both sides, exchanged by other means. Dial then sets the
	// association up without a packet: see NewInit. Default nil: by a handshake.
	Inits *Inits

	// Events is how many notifications a Conn keeps for Conn.NextEvent. Default 0: none.
	Events int

	// EventKinds chooses the notifications that are kept (RFC 6458 section 6.2). EventDown is
	// always one of them. Conn.KeepEvents changes it. Default all but EventSenderDry.
	EventKinds []EventKind

	// Backlog bounds the associations that a Listener holds until Accept takes them: so many of one
	// address (of IPv6 one /64), and twice as many of all. Further ones are refused by ABORT with
	// Out of Resource (section 5.1). One that fails frees its place, unless it has brought
	// messages, which Accept's caller may still read. Default 128.
	Backlog int

	// NewUpper makes the protocol above each new association, in place of the message API. It is
	// called before the association's first packet. Default nil: programs have no use for it.
	NewUpper func(*Conn, *assoc.Assoc) upper.Protocol

	identity   *mutualtls.Identity // of TLS, ready for use
	tlsHost    string              // that Dial was called with
	socket     *Socket             // that the association belongs to
	mayProceed func() bool         // see assoc.Assoc.OnAnswer
}

// numOptions is how many fields Config and assoc.Config begin with in common: all but the last two,
// assoc.Config.Protected and Restartable.
var numOptions = reflect.TypeFor[assoc.Config]().NumField() - 2

// assocConfig returns the options as the core has them.
func (c *Config) assocConfig() *assoc.Config {
	a := new(assoc.Config)
	copyOptions(a, c)
	a.Protected, a.Restartable = c.TLS != nil, c.RestartStore != nil
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
	// CloseTimeout bounds how long Conn.Close waits for a graceful end. Associations that close
	// together, or one after the other, share that time. Each has four round trips at least, of
	// 2 ms to a second. Close goes on for another CloseTimeout while the peer acknowledges 1,024
	// octets a second of what was written, but takes ten times CloseTimeout at most. Default 10 s.
	CloseTimeout time.Duration

	// Rand is the source of verification tags, initial TSNs, cookie secrets and nonces. Default
	// crypto/rand.
	Rand io.Reader

	// Logger gets a line for each rare event: an association that comes, ends or restarts, a path
	// that fails or recovers, an error that the peer reports, a limit that is reached. A packet
	// that this host itself refuses to send is logged once a minute for each address and reason.
	// There is never a line for a packet, and at most 100 in a second; lines about limits come once
	// a minute. The handler is called from the goroutines that receive, and should not block.
	// Default nil: nothing is written.
	Logger *slog.Logger

	// Tracer hears what associations do. Default nil.
	Tracer Tracer

	// MaxAssocs bounds the associations. Further peers are refused by ABORT with Out of Resource
	// (section 3.3.10.4). Default 1,048,576.
	MaxAssocs int

	// MaxPerSource bounds the associations that were set up from one IPv4 address, or IPv6 /64. A
	// /56 has twice as many together, a /48 three times, a /32 four times. More are refused in the
	// same way. A negative value means no bound. Default 16,384.
	MaxPerSource int

	// MaxAnswers bounds the answers to INITs and packets out of the blue that one address gets in a
	// second, so that this host does not flood a victim whose address another host forges. Above
	// the bound packets get an answer by chance, so that a forger does not keep the owner of the
	// address from setting up associations. A negative value means no bound. Default 10,000.
	MaxAnswers int

	// MaxSetups bounds the packets that are looked at in a second to set up associations, or
	// because they belong to none. A packet of more than 256 octets counts as several. Above the
	// bound, packets are looked at by chance. A flood then costs limited time, and about 300 octets
	// of answers for each packet; in any second twice the bound are looked at, at most. A negative
	// value means no bound. Default 50,000.
	MaxSetups int

	// MaxMemory bounds, in octets, what all peers together make this Transport hold: data that the
	// program has not read, data that waits for what comes before it, packets, and the
	// associations. One address (of IPv6: one /64) may take half of it. When it is nearly used up,
	// associations with more than their share have their windows closed. When it is used up, the
	// greediest are aborted with a *MemoryError, and new ones refused. A negative value means no
	// bound. Default a quarter of what this process may use: the least of the RAM, the limit of its
	// control group, and GOMEMLIMIT.
	MaxMemory int64

	// MemoryBudget is shared with other Transports, and takes the place of MaxMemory. Default nil.
	MemoryBudget *MemoryBudget
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
