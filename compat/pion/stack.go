package sctp

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	stack "github.com/rddp-go/rddp/sctp"
)

// peer is the other end.
var peer = netip.AddrPortFrom(netconn.PeerAddr, port)

// recordedConn is a connection that counts, and remembers how reading has ended: programs hear that
// of Read.
type recordedConn struct {
	net.Conn
	readErr        atomic.Pointer[error]
	sent, received atomic.Uint64 // octets, with those of packets that belong to no association yet
}

// Read reads a packet.
func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.readErr.Store(&err)
	}
	c.received.Add(uint64(max(n, 0)))
	return n, err
}

// Write writes a packet.
func (c *recordedConn) Write(p []byte) (int, error) {
	c.sent.Add(uint64(len(p))) // before the peer can have it
	return c.Conn.Write(p)
}

func linkConfig(s *settings) *netconn.Config {
	cfg := &netconn.Config{MTU: min(max(int(s.MTU), netconn.MinMTU), rawio.MaxMTU-20)}
	if s.EnableZeroChecksum {
		cfg.ErrorDetection = rawio.DTLSErrorDetection
	}
	return cfg
}

// unbounded is a send buffer that no program fills.
const unbounded = math.MaxInt32

// unsentPackets is how much is queued, in packets, where writes wait.
const unsentPackets = 4

// neverGivesUp is how often an association sends again: the connection decides when it is over.
const neverGivesUp = math.MaxInt32

// maxEvents is how many streams may have little buffered before the program has heard of the first.
const maxEvents = 1 << 16

// longestMessage is the longest message that is taken, in octets, if the receive window is no
// longer.
const longestMessage = 16 << 20

// stackConfig is what the stack is to do.
func stackConfig(s *settings) *stack.Config {
	cfg := &stack.Config{
		LocalPort: port, OutStreams: math.MaxUint16, InStreams: math.MaxUint16,
		AssocMaxRetrans: neverGivesUp, HeartbeatInterval: -1,
		Events: maxEvents, EventKinds: []stack.EventKind{stack.EventSendLow, stack.EventStreamsReset},
	}
	cfg.Interleaving = !s.noInterleaving
	cfg.StreamReset, cfg.Inits = stack.AllowStreamReset, s.tokens
	cfg.PartialReliability, cfg.NewScheduler = true, s.scheduling.newScheduler
	cfg.NewController = s.newController
	if s.MaxReceiveBufferSize > 0 {
		cfg.RecvBuffer = min(max(int(s.MaxReceiveBufferSize), 1500), math.MaxInt32)
	}
	cfg.MaxMessage = max(longestMessage, cfg.RecvBuffer)
	cfg.SendBuffer = unbounded
	if s.BlockWrite {
		cfg.MaxUnsent = unsentPackets * int(s.MTU)
	}
	if s.RTOMax > 0 {
		cfg.RTOMax = time.Duration(s.RTOMax * float64(time.Millisecond))
		cfg.RTOInitial, cfg.RTOMin = min(cfg.RTOMax, time.Second), min(cfg.RTOMax, time.Second)
	}
	return cfg
}

// memoryBudget is what the peers of all associations may make the process hold.
var memoryBudget = sync.OnceValue(func() *stack.MemoryBudget { return stack.NewMemoryBudget(0) })

func transportConfig(s *settings, log logging.LeveledLogger) *stack.TransportConfig {
	cfg := &stack.TransportConfig{MemoryBudget: memoryBudget()}
	if !writesNothing(s.LoggerFactory) {
		cfg.Logger = slog.New(&logHandler{log: log, prefix: "[" + s.Name + "] "})
	}
	return cfg
}

// endOf is why an association has ended, as the original says it.
func (a *Association) endOf(err error) error {
	var byLink *stack.LinkError
	var aborted *stack.AbortError
	switch {
	case errors.As(err, &byLink):
		if read := a.carrier.readErr.Load(); read != nil {
			return *read
		}
		return byLink.Err
	case errors.As(err, &aborted) && aborted.ByPeer:
		return &peerAbort{aborted}
	}
	return err
}

// peerAbort is an ABORT of the peer. It matches ErrChunk, and ErrUserInitiatedAbort if its program
// has caused it.
type peerAbort struct{ *stack.AbortError }

// causeUserInitiatedAbort is the error cause of an abort by the program (RFC 9260 section
// 3.3.10.12).
const causeUserInitiatedAbort = 12

// Is says what the error matches.
func (e *peerAbort) Is(target error) bool {
	switch target {
	case ErrChunk:
		return true
	case ErrUserInitiatedAbort:
		for _, c := range e.Causes {
			if c.Code == causeUserInitiatedAbort {
				return true
			}
		}
		return false
	}
	return e.AbortError.Is(target)
}

// Unwrap returns the error of the stack.
func (e *peerAbort) Unwrap() error { return e.AbortError }
