package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/pion/logging"
	"github.com/rddp-go/rddp/rawio/netconn"
	stack "github.com/rddp-go/rddp/sctp"
)

// Association is an association over one connection.
type Association struct {
	log            logging.LeveledLogger
	name           string
	carrier        *recordedConn
	link           *netconn.Link
	transport      *stack.Transport
	conn           *stack.Conn
	blocksWrites   bool
	maxMessageSize atomic.Uint32

	closing sync.Once
	ended   chan struct{} // closed when the association has ended, and all that depends on it

	mu      sync.Mutex
	streams map[uint16]*Stream // guarded by mu: the last that was in use by each number
	first   *stack.Stream      // guarded by mu: one for AcceptStream that came before its first call
	endErr  error              // guarded by mu: why the association has ended
}

// port is the SCTP port of either end (RFC 8832 section 1, in practice).
const port = 5000

// Client opens an association. Both ends may be clients, and either may be first.
func Client(config Config) (*Association, error) { return ClientWithOptions(config) }

// ClientWithOptions is Client by options.
func ClientWithOptions(opts ...ClientOption) (*Association, error) {
	return ClientContext(context.Background(), opts...)
}

// ClientContext is ClientWithOptions. When ctx ends first, the connection is closed in the
// background and the error is that of ctx. If ctx has ended before, the connection stays open.
func ClientContext(ctx context.Context, opts ...ClientOption) (*Association, error) {
	s, err := settingsOf(opts, ClientOption.setForClient)
	if err != nil {
		return nil, err
	}
	return open(ctx, s, (*Association).dial)
}

// Server waits for the other end to open an association.
func Server(config Config) (*Association, error) { return ServerWithOptions(config) }

// ServerWithOptions is Server by options.
func ServerWithOptions(opts ...ServerOption) (*Association, error) {
	s, err := settingsOf(opts, ServerOption.setForServer)
	if err != nil {
		return nil, err
	}
	return open(context.Background(), s, (*Association).accept)
}

// open makes an association over the connection of s.
func open(ctx context.Context, s *settings, begin func(*Association, context.Context, *stack.Config) error) (
	*Association, error) {
	if s.NetConn == nil {
		return nil, errNoConn
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := &Association{name: s.Name, log: s.LoggerFactory.NewLogger(logScope), carrier: &recordedConn{Conn: s.NetConn},
		blocksWrites: s.BlockWrite, streams: make(map[uint16]*Stream), ended: make(chan struct{})}
	a.maxMessageSize.Store(s.MaxMessageSize)
	var err error
	if a.link, err = netconn.New(a.carrier, linkConfig(s)); err != nil {
		return nil, err
	}
	if a.transport, err = stack.NewTransport(a.link, transportConfig(s, a.log)); err != nil {
		return nil, err
	}
	if err := begin(a, ctx, stackConfig(s)); err != nil {
		a.log.Debugf("[%s] not established: %v", a.name, err)
		if ctx.Err() != nil {
			go a.closeAll(true) // which may take its time
			return nil, ctx.Err()
		}
		_ = a.closeAll(true)
		return nil, err
	}
	a.acceptStreams()
	go a.watch()
	return a, nil
}

// dial opens the association from this side.
func (a *Association) dial(ctx context.Context, cfg *stack.Config) (err error) {
	a.conn, err = a.transport.Dial(ctx, peer, cfg)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*stack.LinkError)):
		return ErrAssociationClosedBeforeConn
	case errors.Is(err, stack.ErrInitTimeout):
		return fmt.Errorf("%w: %w", ErrHandshakeInitAck, err)
	}
	return a.endOf(err)
}

// accept waits for the other side.
func (a *Association) accept(ctx context.Context, cfg *stack.Config) error {
	if cfg.Inits != nil { // there is nothing to wait for
		return a.dial(ctx, cfg)
	}
	l, err := a.transport.Listen(port, cfg)
	if err == nil {
		defer l.Close()
		a.conn, err = l.Accept(ctx)
	}
	if errors.As(err, new(*stack.LinkError)) {
		return ErrAssociationClosedBeforeConn
	}
	return err
}

// watch handles the events of the association, up to its end.
func (a *Association) watch() {
	for {
		ev, err := a.conn.NextEvent(context.Background())
		switch {
		case err == nil && ev.Kind == stack.EventSendLow:
			a.mu.Lock()
			s := a.streams[ev.Info.Stream]
			a.mu.Unlock()
			if s != nil {
				s.noteLow()
			}
		case err == nil && ev.Kind == stack.EventStreamsReset:
			a.noteReset(&ev)
		case err == nil && ev.Kind != stack.EventDown:
		default:
			a.finish()
			return
		}
	}
}

// finish is the end of an association that has ended: the connection ends with it.
func (a *Association) finish() {
	err := a.endOf(a.conn.Err())
	a.log.Debugf("[%s] association ended: %v", a.name, err)
	a.mu.Lock()
	a.endErr = err
	a.mu.Unlock()
	a.eachStream(func(s *Stream) { s.end(err) })
	_ = a.closeAll(false)
	close(a.ended)
}

// closeAll closes the connection. At once, the peer gets no ABORT, and has to find out by its own
// connection. Otherwise the association has ended, and what is left to send goes first.
func (a *Association) closeAll(atOnce bool) (err error) {
	a.closing.Do(func() {
		if atOnce {
			err = a.link.Close()
		}
		_ = a.transport.Close()
	})
	return err
}

// eachStream calls f with each stream in use.
func (a *Association) eachStream(f func(*Stream)) {
	a.mu.Lock()
	list := make([]*Stream, 0, len(a.streams))
	for _, s := range a.streams {
		list = append(list, s)
	}
	a.mu.Unlock()
	for _, s := range list {
		f(s)
	}
}

// Close closes the connection at once, and so the association. The peer hears of it by its own
// connection.
func (a *Association) Close() error {
	err := a.closeAll(true)
	<-a.ended
	return err
}

// Abort sends an ABORT with the reason, and closes the connection.
func (a *Association) Abort(reason string) {
	a.conn.Abort(reason)
	<-a.ended
}

// Shutdown ends the association gracefully (RFC 9260 section 9.2): what was written is delivered
// first. It returns when that is done, or with the error of ctx.
func (a *Association) Shutdown(ctx context.Context) error {
	if a.hasEnded() {
		return fmt.Errorf("%w: %s", ErrShutdownNonEstablished, a.name)
	}
	go a.conn.Close()
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hasEnded says whether the association has ended, or is about to.
func (a *Association) hasEnded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.endErr != nil || a.conn.Err() != nil
}

// OpenStream returns the stream with an identifier, a new one if it is not in use. While the number
// waits to be reset by this side, what is written waits too, and the peer reads it from a new
// stream.
func (a *Association) OpenStream(streamIdentifier uint16, defaultPayloadType PayloadProtocolIdentifier) (*Stream,
	error) {
	if a.hasEnded() {
		return nil, ErrAssociationClosed
	}
	s := a.streamOf(a.conn.Stream(streamIdentifier))
	s.SetDefaultPayloadType(defaultPayloadType)
	return s, nil
}

// AcceptStream returns the next stream that the peer has begun to use. It fails with io.EOF when
// the association has ended.
func (a *Association) AcceptStream() (*Stream, error) {
	a.mu.Lock()
	s := a.first
	a.first = nil
	a.mu.Unlock()
	if s == nil {
		var err error
		if s, err = a.conn.AcceptStream(context.Background()); err != nil {
			return nil, io.EOF
		}
	}
	return a.streamOf(s), nil
}

// acceptStreams has messages of streams that are not in use wait for AcceptStream from now on.
func (a *Association) acceptStreams() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	a.first, _ = a.conn.AcceptStream(ended)
}

// streamOf returns the stream that is one of the stack's.
func (a *Association) streamOf(of *stack.Stream) *Stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.streams[of.ID()]
	if s == nil || s.stream != of {
		s = &Stream{a: a, stream: of}
		a.streams[of.ID()] = s
	}
	return s
}
