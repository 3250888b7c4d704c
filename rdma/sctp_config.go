package rdma

import (
	"crypto/tls"
	"io"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
)

// defaultRecvWindow is the receive window in octets. Placed data does not occupy it. So it costs no
// memory and only bounds what is under way (RFC 5041 appendix A): 1 Gbit/s over a round trip of 130
// ms.
const defaultRecvWindow = 16 << 20

// minRecvWindow is the receive window where the link buffers less: a few packets of 64 KB.
const minRecvWindow = 256 << 10

// defaultLoneSackDelay is how long a lone segment may wait for its acknowledgement, and with it a
// request for its completion. The 200 ms of SCTP are for programs that see no completions. 1 ms
// leaves time for a SACK to travel with the answer (RFC 9260 section 6.2 allows up to 500 ms).
// While every segment is answered by one that takes the SACK along, the delay is defaultSackDelay.
// A timer that goes off every millisecond for nothing would cost a tenth of a round trip.
const (
	defaultLoneSackDelay = time.Millisecond
	defaultSackDelay     = 10 * time.Millisecond
)

// Config says how a Device behaves. The zero value is what most programs want.
type Config struct {
	// TLS encrypts and authenticates all that goes over SCTP, as sctp.Config.TLS says
	// (experimental), and over TCP, by TLS 1.3 below MPA. Peers in the clear are refused. Both
	// sides show a certificate. A peer is verified as the server ServerName, by RootCAs, if that is
	// set; QP.Dial sets it to the host that it calls. Without it a peer is verified as a client, by
	// ClientCAs. VerifyConnection is called before the peer can reach any memory. Default nil: all
	// goes in the clear.
	TLS *tls.Config

	// SCTP refines the associations; its adaptation indication, stream numbers and TLS are set
	// here. Default those of sctp.Config. With SCTP.RestartStore and SCTP.LocalPort a program that
	// has crashed gets its associations back, at a peer that has a RestartStore too. QPs do not
	// come back: those of the peer end with ddpadapt.ErrRestarted, and new ones connect at once.
	SCTP sctp.Config

	// Transport bounds what all associations together may use. Default those of
	// sctp.TransportConfig.
	Transport sctp.TransportConfig

	// TCP refines TCP connections. Default those of TCPConfig.
	TCP TCPConfig

	// Limits bound what programs and peers may make the Device hold. Default those of Limits.
	Limits Limits

	// NoAtomics makes a Device without the Atomic Operations of RFC 7306. A peer that uses one gets
	// its stream terminated. Default false.
	NoAtomics bool

	// NoImmediate makes a Device without the Immediate Data of RFC 7306. A peer that uses it gets
	// its stream terminated. Default false.
	NoImmediate bool

	// IdleTimeout ends, with ErrIdle, a QP on which nothing was sent or received for so long, and
	// an association that had no session. Over TCP it ends a peer that does not read, too. A peer
	// then cannot hold resources for nothing (RFC 5042 section 6.4.2). A program that has nothing
	// to say keeps its session by a Write of no octets now and then. Default 0: never.
	IdleTimeout time.Duration

	// Rand is the source of STags. Default crypto/rand.
	Rand io.Reader
}

// checkLooseTLS refuses loose mode: memory would be within reach of peers that nobody knows.
func (c *Config) checkLooseTLS() error {
	if c.SCTP.LooseTLS {
		return &sctp.ConfigError{Field: "LooseTLS", Range: "false for remote memory"}
	}
	return nil
}

// checkRestartStore refuses a store that would keep nothing.
func (c *Config) checkRestartStore(hasLink bool) error {
	switch {
	case c.SCTP.RestartStore == nil:
	case !hasLink:
		return ErrRestartOverTCP
	case c.TLS == nil:
		return &sctp.ConfigError{Field: "RestartStore", Range: "nil without TLS"}
	}
	return nil
}

// applySCTPDefaults makes the configuration of the associations one for RDMA over link.
func (c *Config) applySCTPDefaults(link rawio.Link, streams int) {
	c.SCTP.OutStreams, c.SCTP.InStreams = uint16(streams), uint16(streams)
	c.SCTP.Upper().Change(ddpadapt.Configure)
	if c.SCTP.RecvBuffer == 0 {
		c.SCTP.RecvBuffer = defaultRecvWindow
		if n := rawio.ReceiveBufferOf(link); n > 0 {
			c.SCTP.RecvBuffer = max(min(defaultRecvWindow, n), minRecvWindow)
		}
	}
	if c.SCTP.SackDelay == 0 {
		c.SCTP.SackDelay = defaultSackDelay
		if c.SCTP.LoneSackDelay == 0 {
			c.SCTP.LoneSackDelay = defaultLoneSackDelay
		}
	}
}

// config is the configuration of one association under a sctpConn, which is made when the
// association is. host is whom this side dials, empty for a listener.
func (t *sctpTransport) config(host string, l *Listener, made func(*sctpConn)) *sctp.Config {
	c, initiator := t.dev.cfg.SCTP, l == nil
	c.TLS = mutualtls.Calling(c.TLS, host)
	c.NewUpper = func(conn *sctp.Conn, a *assoc.Assoc) upper.Protocol {
		s := newSCTPConn(t.dev, conn, a, initiator, l)
		if made != nil {
			made(s)
		}
		return s
	}
	return &c
}
