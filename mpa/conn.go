package mpa

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rawio"
)

var _ ddp.LLP = (*Conn)(nil)

// Config says how a connection behaves. The zero value of each field selects the default.
type Config struct {
	// NoCRC says that this side can do without CRCs. They are used all the same if the peer wants
	// them. Only an administrator should ask for it, of a path that finds errors as well from end
	// to end (section 4.4). Default false.
	NoCRC bool

	// Markers asks the peer to put Markers into what it sends. This side checks them and has no use
	// for them. Default false.
	Markers bool

	// StartupTimeout is how long the peer's start-up frame is waited for. Default 10 s.
	StartupTimeout time.Duration

	// LingerTimeout is how long the connection may live on once an error was found, for the peer to
	// be told of it and to close its half. Default 5 s.
	LingerTimeout time.Duration

	// EMSS is the longest TCP segment in octets, until Conn.SetEMSS says otherwise. Default 1460.
	EMSS int
}

const (
	// DefaultStartupTimeout is that of a Config without one.
	DefaultStartupTimeout = 10 * time.Second
	defaultLinger         = 5 * time.Second
	defaultEMSS           = 1460
)

func (c *Config) applyDefaults() {
	if c.StartupTimeout <= 0 {
		c.StartupTimeout = DefaultStartupTimeout
	}
	if c.LingerTimeout <= 0 {
		c.LingerTimeout = defaultLinger
	}
	if c.EMSS <= 0 {
		c.EMSS = defaultEMSS
	}
}

// Stats counts what a connection has seen.
type Stats struct {
	FPDUsIn, FPDUsOut uint64
}

// Conn is MPA on one TCP connection, from its start-up to its end. It implements ddp.LLP.
type Conn struct {
	// Owner is free for the user of the connection.
	Owner any

	cfg       Config
	initiator bool
	state     State // changed by changeState
	ds        *ddp.Stream
	err       error      // why the connection has ended
	deadline  rawio.Time // of the start-up, or of the peer's FIN; Never for none

	asked    *llp.Setup // of the Request
	revision uint8      // of the peer's frame
	events   eventQueue
	stats    Stats

	// Reception.
	in     Deframer
	isDeaf bool // an error was found: nothing more is passed on (section 8)
	placed ddp.Placed
	row    [rowMost][]byte

	// Transmission.
	control    []byte // a start-up frame that is not written yet
	out        Framer
	mulpdu     int
	fenced     bool // responder: no FPDU has come, so none may leave (section 7.1.2 rule 4)
	batch      Batch
	segment    ddp.Segment
	run        ddp.Run
	rest       [][]byte // what is to be written of the batch, or of control
	written    int      // octets written of the batch
	acked      int      // FPDUs of the batch that are wholly written
	inFlight   bool     // the owner is writing rest
	detaching  bool     // the user's memory is wanted back
	copied     bool     // rest has none of the user's memory, see CopyOut
	finWanted  bool     // this side has no more to send: TCP is to close this half behind it
	finWritten bool
}

// NewInitiator asks for a session on a TCP connection. The Request carries private data, and a
// setup if something is to be negotiated (RFC 6581). ds is attached at once, and sends when the
// peer has accepted. EventAccepted, EventRejected or EventEnded tells the outcome. Errors:
// llp.ErrPrivateDataTooLong, llp.ErrDepth.
func NewInitiator(now rawio.Time, cfg Config, ds *ddp.Stream, setup *llp.Setup, private []byte) (*Conn, error) {
	if err := checkFrame(setup, private); err != nil {
		return nil, err
	}
	c := newConn(now, cfg)
	c.initiator, c.state, c.ds, c.asked = true, Requesting, ds, setup
	c.queueFrame(Frame{Setup: setup, Private: private})
	ds.Attach(c)
	return c, nil
}

// NewResponder waits on a TCP connection for the Request of the peer. EventRequest has it.
func NewResponder(now rawio.Time, cfg Config) *Conn {
	c := newConn(now, cfg)
	c.state, c.fenced = Awaiting, true
	return c
}

func newConn(now rawio.Time, cfg Config) *Conn {
	cfg.applyDefaults()
	c := &Conn{cfg: cfg, deadline: now.Add(cfg.StartupTimeout)}
	c.SetEMSS(cfg.EMSS)
	return c
}

// State returns the state.
func (c *Conn) State() State { return c.state }

// Err returns why the connection has ended, nil for an end that this side asked for, and while it
// has not.
func (c *Conn) Err() error { return c.err }

// IsInitiator says that this side sent the Request.
func (c *Conn) IsInitiator() bool { return c.initiator }

// Revision returns the revision of MPA in the peer's frame, 0 before it has come. DDP and RDMAP
// have version 1 with all that are known here.
func (c *Conn) Revision() uint8 { return c.revision }

// UsesCRC reports whether CRCs are made and checked. It means nothing before Full Operation.
func (c *Conn) UsesCRC() bool { return c.in.ChecksCRC }

// Stats returns the counters.
func (c *Conn) Stats() Stats { return c.stats }

// MULPDU returns the largest DDP segment in octets, header included (ddp.LLP).
func (c *Conn) MULPDU() int { return c.mulpdu }

// SetEMSS says how long TCP segments are now, in octets. It decides how long FPDUs are.
func (c *Conn) SetEMSS(emss int) {
	c.cfg.EMSS = emss
	c.mulpdu = MULPDU(emss, c.out.MakesMarkers)
}

// Held returns the octets of memory that the connection keeps.
func (c *Conn) Held() int {
	return int(unsafe.Sizeof(*c)) + cap(c.batch.own) + cap(c.batch.pieces)*int(unsafe.Sizeof([]byte(nil))) +
		cap(c.batch.ends)*int(unsafe.Sizeof(0)) + cap(c.control)
}

// Deadline returns when HandleTimeout is due, rawio.Never for no time.
func (c *Conn) Deadline() rawio.Time { return c.deadline }

// HandleTimeout ends the connection if the peer did not do what was due by now.
func (c *Conn) HandleTimeout(now rawio.Time) {
	switch {
	case now.Before(c.deadline) || finalStates.has(c.state):
	case startingStates.has(c.state):
		c.endConn(ErrStartupTimeout)
	default:
		c.endConn(ErrLingerTimeout)
	}
}

// boundFaulted sees to it that a connection on which an error was found does not live on for long,
// whether the peer goes along or not.
func (c *Conn) boundFaulted(now rawio.Time) {
	if c.deadline == rawio.Never && fullOperation.has(c.state) && (c.isDeaf || c.ds.Faulted()) {
		c.deadline = now.Add(c.cfg.LingerTimeout)
	}
}

// Ready says that the DDP stream has segments to send (ddp.LLP). Next finds them.
func (c *Conn) Ready() {}

// Finish is called by the DDP stream (ddp.LLP): all is sent, and its user wants no more. TCP is to
// close this half, behind the start-up if need be. After an error the peer is not waited for
// without end.
func (c *Conn) Finish() {
	c.finWanted = true
	if fullOperation.has(c.state) {
		c.changeState(onFinish)
	}
}

// Abort ends the connection abruptly, in whatever state (ddp.LLP). Nothing more is placed, or given
// out by Next.
func (c *Conn) Abort() { c.endConn(nil) }

// Break ends the connection because its owner, or this package, has contradicted itself.
func (c *Conn) Break(err *InternalError) { c.endConn(err) }

// Lost ends the connection because TCP has lost it.
func (c *Conn) Lost(cause error) { c.endConn(&Error{Code: CodeLost, Cause: cause}) }

// endConn ends the connection, once. The DDP stream hears of it when no memory of its user is
// referred to any more: at once, or when the owner has done writing.
func (c *Conn) endConn(err error) {
	if finalStates.has(c.state) {
		return
	}
	c.changeState(onEnd)
	c.err, c.deadline, c.isDeaf = err, rawio.Never, true
	c.closeStream()
}

// closeStream tells the DDP stream, and then the user, that the connection has ended.
func (c *Conn) closeStream() {
	if c.inFlight {
		return
	}
	c.control, c.rest = nil, nil
	c.batch = Batch{}
	if ds := c.ds; ds != nil {
		c.ds = nil
		ds.Closed(c.err)
	}
	c.events.push(Event{Kind: EventEnded, Err: c.err})
}
