package compat

import (
	"errors"
	"syscall"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// These are the options of RFC 6525 section 6.3, by their numbers on Linux.
const (
	optReconfigSupported = 117 + iota // Linux's: whether it is offered to the peer
	optEnableStreamReset
	optResetStreams
	optResetAssoc
	optAddStreams
)

// Flags of SCTP_ENABLE_STREAM_RESET. On Linux they allow a request to either side.
const (
	enableResetStreams = 1 << iota
	enableResetAssoc
	enableChangeAssoc
)

// Flags of SCTP_RESET_STREAMS.
const (
	resetIncoming = 1 << iota
	resetOutgoing
)

// streamResetOptions is what a socket offers and allows of stream reconfiguration.
type streamResetOptions struct {
	supported bool
	enabled   uint32
}

// toConfig returns it as an option of the stack.
func (o streamResetOptions) toConfig() (r sctp.StreamReset) {
	if !o.supported {
		return 0
	}
	r = sctp.OfferStreamReset
	for flag, allowed := range map[uint32]sctp.StreamReset{enableResetStreams: sctp.AllowStreamReset,
		enableResetAssoc: sctp.AllowTSNReset, enableChangeAssoc: sctp.AllowAddStreams} {
		if o.enabled&flag != 0 {
			r |= allowed
		}
	}
	return r
}

// set changes it.
func (o *socketOptions) setStreamResets(r streamResetOptions) {
	o.streamResets, o.cfg.StreamReset = r, r.toConfig()
}

func setReconfigSupported(s *Socket, b []byte) error {
	r := s.opts.streamResets
	r.supported = nativeOrder.Uint32(b[4:]) != 0
	s.opts.setStreamResets(r)
	return nil
}

func setEnableStreamReset(s *Socket, b []byte) error {
	r := s.opts.streamResets
	if r.enabled = nativeOrder.Uint32(b[4:]); r.enabled > enableResetStreams|enableResetAssoc|enableChangeAssoc {
		return syscall.EINVAL
	}
	s.opts.setStreamResets(r)
	return nil
}

// streamRequest is what one of the three options that only set asks of the peer.
type streamRequest struct {
	assoc.StreamRequest
	enabledBy uint32 // flag of SCTP_ENABLE_STREAM_RESET
}

// parseStreamRequest reads the structure of such an option.
func parseStreamRequest(name int, b []byte) (streamRequest, error) {
	field := func(i int) int { return int(nativeOrder.Uint16(b[i:])) }
	switch {
	case name == optResetAssoc && len(b) == 4:
		return streamRequest{assoc.StreamRequest{ResetTSNs: true}, enableResetAssoc}, nil
	case name == optAddStreams && len(b) == 8:
		return streamRequest{assoc.StreamRequest{AddIn: field(4), AddOut: field(6)}, enableChangeAssoc}, nil
	case name == optResetStreams && len(b) >= 8 && len(b) >= 8+2*field(6):
		r := assoc.StreamRequest{ResetOut: field(4)&resetOutgoing != 0, ResetIn: field(4)&resetIncoming != 0}
		for i := range field(6) {
			r.Streams = append(r.Streams, wire.StreamID(field(8+2*i)))
		}
		return streamRequest{r, enableResetStreams}, nil
	}
	return streamRequest{}, syscall.EINVAL
}

// askPeer is Setsockopt of such an option. A notification says how it ends. Linux's errnos are
// ENOPROTOOPT where the peer does not offer it, or the socket has not enabled it, and EINPROGRESS
// where another is under way.
func (s *Socket) askPeer(name int, b []byte) error {
	r, err := parseStreamRequest(name, b)
	if err != nil {
		return err
	}
	c, err := s.waitConn(syscall.EINVAL)
	if err != nil {
		return err
	}
	s.mu.Lock()
	enabled := s.opts.streamResets.enabled&r.enabledBy != 0
	s.mu.Unlock()
	a, now := c.Upper().Lock()
	defer c.Upper().Unlock()
	switch {
	case a.State() == sctp.Closed:
		return syscall.EINVAL
	case !enabled:
		return syscall.ENOPROTOOPT
	case a.StreamResetUnderWay():
		return syscall.EINPROGRESS
	}
	switch _, err = a.StartInTurn(now, r.StreamRequest); {
	case errors.Is(err, sctp.ErrStreamResetUnsupported):
		return syscall.ENOPROTOOPT
	case errors.Is(err, assoc.ErrStreamResetList):
		return syscall.EINVAL
	}
	return errnoOf(err)
}

// streamNotification makes the notification of an event about streams, without its length (section
// 6.1), and says which subscription it is of. As on Linux it has how many streams were added, where
// the RFC has how many there are then.
func streamNotification(ev *sctp.Event, id int) (event int, f structWriter) {
	const incoming, outgoing, denied, failed = 1, 2, 4, 8
	c, flags := ev.Change, 0
	switch {
	case errors.Is(ev.Err, sctp.ErrStreamResetDenied):
		flags = denied
	case ev.Err != nil:
		flags = failed
	}
	switch ev.Kind {
	case sctp.EventStreamsReset:
		f = newNotification(typeStreamReset, flags|pickInt(c.Incoming, incoming, outgoing))
		f.appendUint32(id)
		for _, stream := range c.Streams {
			f.appendUint16(int(stream))
		}
		return eventStreamReset, f
	case sctp.EventTSNsReset:
		f = newNotification(typeAssocReset, flags)
		f.appendUint32(id)
		f.appendUint32(int(c.NextTSN))
		f.appendUint32(int(c.PeerTSN))
		return eventAssocReset, f
	}
	f = newNotification(typeStreamChange, flags)
	f.appendUint32(id)
	f.appendUint16(pickInt(c.Incoming, c.Added, 0))
	f.appendUint16(pickInt(c.Incoming, 0, c.Added))
	return eventStreamChange, f
}
