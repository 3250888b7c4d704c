package sctp

import (
	"cmp"
	"errors"
	"net"
	"time"

	"github.com/pion/logging"
	"github.com/rddp-go/rddp/rawio/netconn"
	stack "github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/cc"
)

// Config is the options of Client and Server in one structure. It is an option itself.
type Config struct {
	LoggerFactory logging.LoggerFactory // of the association's log; nil: that of the environment
	Name          string                // of the association in the log
	NetConn       net.Conn              // that carries the packets
	BlockWrite    bool                  // writes wait for the send buffer

	// EnableZeroChecksum says that NetConn is DTLS, and that checksums may be left out (RFC 9653).
	EnableZeroChecksum bool
	MTU                uint32 // octets of an SCTP packet; 0: 1191

	MaxReceiveBufferSize uint32  // octets; 0: as much as the path needs, from 1 MiB on
	MaxMessageSize       uint32  // octets of a message to send; 0: 65536
	RTOMax               float64 // longest retransmission timeout, ms; 0: 60000

	// These are accepted and have no effect: congestion control is another.
	MinCwnd    uint32
	FastRtxWnd uint32
	CwndCAStep uint32
}

const (
	defaultMTU            = netconn.DefaultMTU
	defaultMaxMessageSize = 65536
	minMTU                = 32 // octets: of the shortest packet with DATA
)

// settings are the options of an association.
type settings struct {
	Config
	noInterleaving bool
	scheduling     scheduling
	tokens         *stack.Inits // of SNAP; nil: a handshake
	newController  cc.Factory   // nil: the default
}

// ServerOption is an option of ServerWithOptions.
type ServerOption interface{ setForServer(*settings) error }

// ClientOption is an option of ClientWithOptions and ClientContext.
type ClientOption interface{ setForClient(*settings) error }

// AssociationOption is an option of either.
type AssociationOption interface {
	ServerOption
	ClientOption
}

// option is an option that is the same for both.
type option func(*settings) error

func (o option) setForServer(s *settings) error { return o(s) }
func (o option) setForClient(s *settings) error { return o(s) }

func (c Config) setForServer(s *settings) error { return c.set(s) }
func (c Config) setForClient(s *settings) error { return c.set(s) }

// set takes over what c says. What is zero says nothing, but for the two flags.
func (c Config) set(s *settings) error {
	if c.MTU != 0 && c.MTU < minMTU {
		return errMTU
	}
	t := &s.Config
	if c.LoggerFactory != nil {
		t.LoggerFactory = c.LoggerFactory
	}
	if c.NetConn != nil {
		t.NetConn = c.NetConn
	}
	t.Name, t.BlockWrite, t.EnableZeroChecksum = cmp.Or(c.Name, t.Name), c.BlockWrite, c.EnableZeroChecksum
	t.MTU, t.MaxReceiveBufferSize = cmp.Or(c.MTU, t.MTU), cmp.Or(c.MaxReceiveBufferSize, t.MaxReceiveBufferSize)
	t.MaxMessageSize, t.RTOMax = cmp.Or(c.MaxMessageSize, t.MaxMessageSize), cmp.Or(c.RTOMax, t.RTOMax)
	t.MinCwnd, t.FastRtxWnd = cmp.Or(c.MinCwnd, t.MinCwnd), cmp.Or(c.FastRtxWnd, t.FastRtxWnd)
	t.CwndCAStep = cmp.Or(c.CwndCAStep, t.CwndCAStep)
	return nil
}

// Errors of options.
var (
	errNoConn     = errors.New("sctp: NetConn is nil")
	errNoLogger   = errors.New("sctp: LoggerFactory is nil")
	errMTU        = errors.New("sctp: MTU is 0, or too small for DATA")
	errZero       = errors.New("sctp: a size of 0")
	errRTOMax     = errors.New("sctp: RTOMax is not positive")
	errToken      = errors.New("sctp: a SNAP token is empty")
	errRACK       = errors.New("sctp: a time of RACK is negative, or 0 where that means nothing")
	errNoSchedule = errors.New("sctp: the scheduler is nil")
	errWeight     = errors.New("sctp: a weight of 0")
)

// settingsOf returns the settings that options make, with the defaults.
func settingsOf[O any](opts []O, set func(O, *settings) error) (*settings, error) {
	s := new(settings)
	for _, o := range opts {
		if any(o) == nil {
			continue
		}
		if err := set(o, s); err != nil {
			return nil, err
		}
	}
	if s.LoggerFactory == nil {
		s.LoggerFactory = logging.NewDefaultLoggerFactory()
	}
	if err := s.setByEnvironment(); err != nil {
		return nil, err
	}
	s.MTU, s.MaxMessageSize = cmp.Or(s.MTU, defaultMTU), cmp.Or(s.MaxMessageSize, defaultMaxMessageSize)
	return s, nil
}

// WithLoggerFactory sets where the association logs.
func WithLoggerFactory(loggerFactory logging.LoggerFactory) AssociationOption {
	return option(func(s *settings) error {
		if loggerFactory == nil {
			return errNoLogger
		}
		s.LoggerFactory = loggerFactory
		return nil
	})
}

// WithName sets the name of the association in the log.
func WithName(name string) AssociationOption {
	return option(func(s *settings) error { s.Name = name; return nil })
}

// WithNetConn sets the connection that carries the packets, each in one Write.
func WithNetConn(conn net.Conn) AssociationOption {
	return option(func(s *settings) error {
		if conn == nil {
			return errNoConn
		}
		s.NetConn = conn
		return nil
	})
}

// WithBlockWrite sets whether writes wait for the send buffer. By default they do not, and the
// buffer has no bound.
func WithBlockWrite(b bool) AssociationOption {
	return option(func(s *settings) error { s.BlockWrite = b; return nil })
}

// WithEnableZeroChecksum sets whether checksums may be left out. The connection has to be DTLS.
func WithEnableZeroChecksum(b bool) AssociationOption {
	return option(func(s *settings) error { s.EnableZeroChecksum = b; return nil })
}

// WithMTU sets the longest SCTP packet, in octets. It is 1191 by default, and 556 at least.
func WithMTU(size uint32) AssociationOption {
	return option(func(s *settings) error {
		if size < minMTU {
			return errMTU
		}
		s.MTU = size
		return nil
	})
}

// WithMaxReceiveBufferSize sets the receive window, in octets. By default it grows with what the
// path needs, from 1 MiB on.
func WithMaxReceiveBufferSize(size uint32) AssociationOption {
	return option(func(s *settings) error {
		s.MaxReceiveBufferSize = size
		return refuseZero(size)
	})
}

// WithMaxMessageSize sets the longest message to send, in octets. It is 65536 by default.
func WithMaxMessageSize(size uint32) AssociationOption {
	return option(func(s *settings) error {
		s.MaxMessageSize = size
		return refuseZero(size)
	})
}

func refuseZero(size uint32) error {
	if size == 0 {
		return errZero
	}
	return nil
}

// WithMaxReassemblyQueueEntries has no effect: the receive buffer and accounts of memory bound what
// waits to be reassembled.
func WithMaxReassemblyQueueEntries(maxEntries uint32) AssociationOption { return ignored() }

// WithRTOMax sets the longest retransmission timeout, in milliseconds.
func WithRTOMax(rtoMax float64) AssociationOption {
	return option(func(s *settings) error {
		if s.RTOMax = rtoMax; rtoMax <= 0 {
			return errRTOMax
		}
		return nil
	})
}

// WithMinCwnd has no effect: congestion control is another.
func WithMinCwnd(minCwnd uint32) AssociationOption { return ignored() }

// WithFastRtxWnd has no effect: congestion control is another.
func WithFastRtxWnd(fastRtxWnd uint32) AssociationOption { return ignored() }

// WithCwndCAStep has no effect: congestion control is another.
func WithCwndCAStep(cwndCAStep uint32) AssociationOption { return ignored() }

func ignored() AssociationOption { return option(func(*settings) error { return nil }) }

// WithSNAP sets the association up by the INIT chunks of both sides, which they have exchanged by
// other means (draft-hancke-tsvwg-snap).
func WithSNAP(localSctpInit []byte, remoteSctpInit []byte) AssociationOption {
	return option(func(s *settings) error {
		if len(localSctpInit) == 0 || len(remoteSctpInit) == 0 {
			return errToken
		}
		s.tokens = &stack.Inits{Own: localSctpInit, Peer: remoteSctpInit}
		return nil
	})
}

// rackSettings are not kept: this stack has RACK with values of its own.
type rackSettings struct{}

// AssociationRACKOption is an option of WithRACKOptions. None has an effect.
type AssociationRACKOption func(*rackSettings) error

// WithRackMinRTTWnd has no effect.
func WithRackMinRTTWnd(rackMinRTTWnd time.Duration) AssociationRACKOption {
	return rackOption(rackMinRTTWnd > 0)
}

// WithRackReoWndFloor has no effect.
func WithRackReoWndFloor(rackReoWndFloor time.Duration) AssociationRACKOption {
	return rackOption(rackReoWndFloor >= 0)
}

// WithRackWCDelAck has no effect.
func WithRackWCDelAck(rackWCDelAck time.Duration) AssociationRACKOption {
	return rackOption(rackWCDelAck > 0)
}

func rackOption(ok bool) AssociationRACKOption {
	return func(*rackSettings) error {
		if !ok {
			return errRACK
		}
		return nil
	}
}

// WithRACKOptions looks whether its options are within range, and has no other effect.
func WithRACKOptions(opts ...AssociationRACKOption) AssociationOption {
	return option(func(*settings) error {
		for _, o := range opts {
			if o != nil {
				if err := o(new(rackSettings)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
