package rdma

import (
	"time"

	"github.com/rddp-go/rddp/mpa"
)

// TCPConfig refines MPA on TCP connections (RFC 5044). The zero value is what most programs want.
type TCPConfig struct {
	// NoCRC says that this side can do without the CRCs of MPA. They are used all the same if the
	// peer wants them. RFC 5044 section 4.4 leaves it to an administrator. It is for paths that
	// find errors as well from end to end, such as TLS or the host itself. Default false.
	NoCRC bool

	// Markers asks peers to put Markers into what they send, to see that they can. Nothing here has
	// a use for them. Default false.
	Markers bool

	// Plain has Connect leave out what RFC 6581 adds, unless the QP asks for it. That is the
	// negotiation of IRD and ORD (QPConfig.Negotiate), and an empty message. By the message the
	// peer learns that it may send (QPConfig.PeerToPeer). It is for peers that know RFC 5044 alone.
	// Default false.
	Plain bool

	// StartupTimeout is how long a peer may take for its start-up frame. Default 10 s.
	StartupTimeout time.Duration

	// LingerTimeout is how long a connection may live on once an error was found on it, for the
	// peer to be told. Default 5 s.
	LingerTimeout time.Duration
}

func (c *TCPConfig) mpaConfig(emss int) mpa.Config {
	return mpa.Config{NoCRC: c.NoCRC, Markers: c.Markers, StartupTimeout: c.StartupTimeout,
		LingerTimeout: c.LingerTimeout, EMSS: emss}
}
