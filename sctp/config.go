package sctp

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Config says how associations behave. The zero value has the defaults of RFC 9260 section 16.
type Config struct {
	assoc.Config

	// EncapPort is the peer's UDP port when the link encapsulates in UDP (RFC 6951); 0 means 9899.
	// Links without UDP ignore it.
	EncapPort uint16
	// LocalPort is the own SCTP port of Dial; 0 picks a free one, or where few are free one of other associations of Dial. Associations of Dial
	// with different peers may share a port (RFC 9260 section 1.3). Where links bind ports (rawio.PortBinder), other
	// programs get it only four RTOs after the association's end, so that a last packet that was lost can be repeated.
	LocalPort uint16
	// RemoteAddrs are further addresses of the peer that Dial may use, all at the same SCTP port; at
	// most 7. Those that only the peer names are used when they are confirmed (section 5.4).
	RemoteAddrs []netip.Addr
	// Events is how many notifications a Conn keeps for Conn.NextEvent; 0 keeps none.
	Events int
	// Backlog bounds the associations with one address, of IPv6 one /64, that a Listener holds until Accept takes them, and twice Backlog
	// those with all; 0 means 128.
	Backlog int
	// Upper, when set, gives each new association to a protocol above in place of the message API.
	// It is called before the association's first packet.
	Upper func(*Conn, *assoc.Assoc) Upper

	socket  *Socket     // that the association belongs to
	proceed func() bool // see assoc.Assoc.OnAnswer
}

func (c *Config) backlog() int {
	if c.Backlog > 0 {
		return c.Backlog
	}
	return 128
}

const defaultSendBuffer = 1 << 20

func (c *Config) sendBuffer() int {
	if c.SendBuffer > 0 {
		return c.SendBuffer
	}
	return defaultSendBuffer
}

// TransportConfig says how a Transport behaves. The zero value is what most programs want.
type TransportConfig struct {
	// CloseTimeout bounds how long Conn.Close waits for a graceful end; 0 means 10 seconds.
	CloseTimeout time.Duration
	// Rand is the source of verification tags, initial TSNs, cookie secrets and nonces;
	// nil means crypto/rand.
	Rand io.Reader
	// Logger gets a line for each rare event: an association that comes, ends or restarts, a path that fails or
	// recovers, an error that the peer reports, a limit that is reached. There is never a line for a packet, and at most
	// 100 in a second; lines about limits come once a minute. Nil writes nothing. Its handler is called from the
	// goroutines that receive, and should not block.
	Logger *slog.Logger
	// Tracer hears what associations do. Nil costs a look at it for each batch of packets.
	Tracer Tracer

	// MaxAssocs bounds the associations; further peers are refused by ABORT with Out of Resource (section 3.3.10.4).
	// 0 means 1,048,576.
	MaxAssocs int
	// MaxPerSource bounds the associations that were set up from one address; more are refused in the same way. 0
	// means 16,384, negative no bound.
	MaxPerSource int
	// MaxAnswers bounds the answers to INITs and packets out of the blue that one address gets in a second, so that this
	// host does not flood somebody whose address another forges. Of more packets some get an answer, by chance, so that who forges
	// a host's address does not keep it from setting up associations. 0 means 10,000, negative no bound.
	MaxAnswers int
	// MaxSetups bounds the packets that are looked at in a second to set up associations, or because they belong to none; a packet of more than
	// 256 octets counts as several. Of more packets some are looked at, by chance. So floods of them cost no more than so much time, and
	// about 300 octets of answers for each. 0 means 50,000, negative no bound.
	MaxSetups int
	// MaxMemory bounds, in octets, what all peers together make this Transport hold: data that the program has not read, data that
	// waits for what comes before it, packets, and the associations themselves. One address (of IPv6: one /64) may take half of it. When it
	// is nearly used up, associations with more than their share have their windows closed; when it is, the greediest are
	// aborted, with a *assoc.MemoryError, and new ones refused. 0 means a quarter of what this process may use: of the RAM, the limit of its
	// control group, or GOMEMLIMIT, whichever is the least. Negative means no bound.
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

func (c *TransportConfig) rand() io.Reader {
	if c.Rand != nil {
		return c.Rand
	}
	return rand.Reader
}
