package ddp

import "unsafe"

// LLP is what a Stream needs of the layer below, for one LLP stream. Its methods may be called from
// within any method of the stream, NextSegment, Acked and Closed included.
type LLP interface {
	// MULPDU returns the largest segment, header included, that the layer takes now, in octets.
	MULPDU() int
	// Ready says that NextSegment has something to give.
	Ready()
	// Finish asks for a graceful close of the outgoing half. The ULP has asked for it, and every
	// message has been cut and acknowledged (section 6.2.1). It is called at most once.
	Finish()
	// Abort asks for an abortive end of the LLP stream (section 6.2.2). The layer answers, at once
	// or later, with Stream.Closed when it refers to no message memory any more. It is called at
	// most once.
	Abort()
}

// ULP is what a Stream reports to. Deliver*, PeerClosed and Fatal come in the sender's order
// (DDP-SSN). AdmitTagged and Buffer are asked at placement, in any order. The stream's one caller
// makes all calls, from within a method of the stream. The ULP may call sending and teardown
// methods of the stream from all of them but AdmitTagged and Buffer.
type ULP interface {
	// AdmitTagged is asked before n > 0 payload octets of a tagged segment are placed at to in r. r
	// is valid and associated with the stream. AdmitTagged returns the right that r must grant. The
	// stream then checks rights and bounds (CodeInvalidSTag, CodeBaseBounds, CodeTOWrap).
	//
	// A non-nil err refuses the segment for the ULP's own reason; the stream fills in its header
	// and length. AdmitTagged must not invalidate or change regions. It is not asked about
	// zero-length segments: their STag and TO mean nothing (section 5.2).
	AdmitTagged(rsvd uint8, r *Region, stag STag, to uint64, n int) (need Access, err *Error)

	// Buffer returns the buffer that serves message msn of queue qn, or a code of TypeUntagged (0
	// is none). qn is one of the configured queues; rsvd is the ULP's part of the segment's header.
	// It is asked again at delivery. The answer for one message must not change until
	// DeliverUntagged.
	Buffer(qn, msn uint32, rsvd [5]byte) (*RecvBuffer, uint8)

	// DeliverTagged reports a whole tagged message. stag and rsvd are those of its last segment, to
	// that of its first. length is the sum of the payload lengths.
	DeliverTagged(rsvd uint8, stag STag, to uint64, length uint64)

	// DeliverUntagged reports a whole untagged message of length octets in buf (section 5.4).
	// Messages of one queue come in MSN order, each once. buf is free when the call returns.
	DeliverUntagged(qn, msn uint32, rsvd [5]byte, length uint32, buf *RecvBuffer)

	// Completed reports that the lower layer has acknowledged every segment of a message (section
	// 5.4).
	Completed(token uint64)

	// Failed reports that a message will not be completed. Its memory was revoked or could not be
	// read (messages behind it are withdrawn too), it was withdrawn, or the stream has ended.
	// Completed and Failed together come in order of submission, each when the lower layer has
	// released the memory.
	Failed(token uint64, err error)

	// Drained reports that NextSegment has just cut the last segment of the last message submitted.
	// A message submitted from within the call goes out next.
	Drained()

	// Fatal reports an error at its turn in delivery order. Nothing is placed or delivered after
	// it. One more message may be submitted (the RDMAP Terminate, section 7.1) unless the stream is
	// lost: TypeLLP without a Code. The stream goes on sending until the ULP calls Abort (section
	// 6.2.2). Fatal is called at most once.
	Fatal(err *Error)

	// PeerClosed reports that the peer closed its half gracefully; the own half still sends
	// (section 6.2.1).
	PeerClosed()
}

// Segment is one outgoing DDP segment: its header, and up to two pieces of user memory. The owner
// leaves these untouched until the message is completed or has failed.
type Segment struct {
	Header    [MaxHeaderLen]byte
	HeaderLen int
	Body      [2][]byte
}

// Len returns the length in octets, header included.
func (s *Segment) Len() int { return s.HeaderLen + len(s.Body[0]) + len(s.Body[1]) }

// Placed is what is kept of a segment between Place and Deliver. It holds no payload.
type Placed struct {
	// Err is the fault found, nil if none. Segments behind a faulty one need not be placed (section
	// 7.1: they are dropped), earlier ones still must.
	Err *Error

	toOrMO      uint64 // TO, or MO of an untagged segment
	stagOrQN    uint32 // STag, or QN
	msn         uint32
	payloadLen  uint32 // payload octets
	ctrl        Control
	rsvd        [5]byte // tagged: the first only
	deliverable bool    // false: dropped, nothing to deliver
}

// StreamConfig describes a Stream.
type StreamConfig struct {
	ID     StreamID // unique among the streams of the table; not 0
	PD     PD
	Table  *Table
	ULP    ULP
	Queues int // untagged queues 0..Queues-1 exist, both ways; RDMAP uses 3
}

// Stream is one DDP Stream (section 2.3): both directions of one LLP stream. It is for one caller
// at a time and holds no lock. The number of messages waiting to be sent is the ULP's to bound.
type Stream struct {
	id    StreamID
	pd    PD
	table *Table
	ulp   ULP
	llp   LLP // nil before Attach

	// Reception.
	receiving  bool             // false before Attach, after a fault and after teardown: segments are dropped
	peerClosed bool             // the peer has closed its half gracefully
	recvMSN    []uint32         // per queue: MSN of the next message to be delivered
	recvRanges []receivedRanges // per queue: what of that message has come
	taggedMsg  taggedMessage    // the tagged message that delivery is in the middle of
	delivering Placed           // the last segment of the message that is being delivered, for Fail

	// Transmission; see send.go.
	outMessages     messageRing
	sendMSN         []uint32 // per queue: MSN of the next message
	errorReported   bool     // ULP.Fatal was called, or the ULP called Fail
	lastMessageOnly bool     // one more message may be sent
	lastMessageSent bool     // ... and has been submitted
	closeRequested  bool     // the ULP has asked for graceful teardown
	finishCalled    bool     // LLP.Finish was called
	aborted         bool     // the ULP has asked for abortive teardown
	closed          bool     // the LLP stream is gone

	cutting          bool   // NextSegment is running
	reportingFailure bool   // ULP.Failed is being called ...
	failedCutOctets  uint64 // ... for a message of which so many payload octets were cut
}

// NewStream returns a stream that is not attached to a lower layer. Messages may be submitted;
// nothing is sent or received yet. MSNs start at 1 in every queue (section 4.3).
func NewStream(cfg StreamConfig) *Stream {
	msns := make([]uint32, 2*cfg.Queues)
	for i := range msns {
		msns[i] = initialMSN
	}
	return &Stream{
		id: cfg.ID, pd: cfg.PD, table: cfg.Table, ulp: cfg.ULP,
		recvRanges: make([]receivedRanges, cfg.Queues), recvMSN: msns[:cfg.Queues:cfg.Queues],
		sendMSN: msns[cfg.Queues:],
	}
}

// Held returns the octets of memory that the stream keeps, without messages.
func (s *Stream) Held() int {
	return int(unsafe.Sizeof(*s)) + len(s.recvRanges)*int(unsafe.Sizeof(receivedRanges{})) +
		4*(len(s.recvMSN)+len(s.sendMSN)) + len(s.outMessages.buf)*int(unsafe.Sizeof(message{}))
}

// ID returns the local identifier of the stream.
func (s *Stream) ID() StreamID { return s.id }

// PD returns the Protection Domain of the stream.
func (s *Stream) PD() PD { return s.pd }

// Table returns the STag table that the stream looks STags up in.
func (s *Stream) Table() *Table { return s.table }

// Faulted reports whether a fatal error was reported, by Fatal or Fail. Nothing is received any
// more then.
func (s *Stream) Faulted() bool { return s.errorReported }

// Attach enables the stream in both directions on an LLP stream that is set up (section 6.1).
func (s *Stream) Attach(llp LLP) {
	if s.closed {
		llp.Abort()
		return
	}
	s.llp, s.receiving = llp, true
	if s.Pending() {
		llp.Ready()
	}
	s.finishIfDrained()
}
