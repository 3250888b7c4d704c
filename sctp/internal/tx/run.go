package tx

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RunMost is the most messages of a Run.
const RunMost = 8

// Run is a row of messages that are alike, such as the segments of a long one of the protocol
// above. They are unordered, of one stream, PPID and Token, and each as long as the others.
type Run struct {
	Stream wire.StreamID
	PPID   uint32 // in host order
	Token  uint64

	// N is how many they are, 1 to RunMost. The user data of each is HeadLen octets of its head,
	// then its part of Body. Body has the parts one after the other.
	N       int
	HeadLen uint8
	Heads   [RunMost][HeadCap]byte
	Body    []byte
	// Beyond is what to prefetch, a part of it with each part of Body. It is nil if all is likely
	// to be in the processor's caches.
	Beyond []byte
}

// Runner is a Source that knows what follows a message that fills a packet. It says so at a lower
// price than by as many calls of Next.
type Runner interface {
	Source
	// NextRun returns up to n messages, of size octets each, that Next would give one after the
	// other. max of Next is size then, which is what one DATA chunk carries. It returns nil where
	// Next would not give them, or where there is but one. The Run is valid until the next call.
	NextRun(now rawio.Time, size, n int) *Run
	// AckedRun is Acked for n messages in a row with the same token.
	AckedRun(now rawio.Time, stream wire.StreamID, token uint64, n int)
}

// sendSourceRun gives up to n messages of the Source, each of size octets, a TSN and a packet. The
// Source has to say that they are alike. It returns how many; its caller counts them as in flight.
func (s *Sender) sendSourceRun(now rawio.Time, b *pack.Batch, p *Path, size, n int) int {
	n = min(n, RunMost, b.Left(wire.CommonHeaderLen+wire.DataHeaderLen+size))
	src, ok := s.upper.source.(Runner)
	if !ok || n < 2 || s.outstanding.extras != nil || !s.queue.isEmpty() || s.upper.fault != nil ||
		size != wire.PaddedLen(size) {
		return 0
	}
	run := src.NextRun(now, size, n)
	if run == nil {
		return 0
	}
	part := size - int(run.HeadLen)
	if run.N < 1 || run.N > n || run.HeadLen > HeadCap || len(run.Body) != run.N*part ||
		int32(run.Stream) >= s.streams.count {
		s.upper.fault = invariant.Violation("tx.sendSourceRun",
			"the Source gave %d messages of %d, with heads of %d octets and %d more of %d each, for stream %d "+
				"of %d; next TSN %d",
			run.N, n, run.HeadLen, len(run.Body), size, run.Stream, s.streams.count, s.outstanding.nextTSN)
		return 0
	}
	like := chunkRecord{token: run.Token, ppid: run.PPID, stream: run.Stream, size: uint16(size),
		wireFlags: wire.FlagB | wire.FlagE | wire.FlagU}
	s.sendAlikeChunks(now, b, p, like, run.Body, run.N, run)
	run.Body, run.Beyond = nil, nil // let go of the user's memory
	return run.N
}

// sendMessageRun gives up to n chunks of size octets a TSN and a packet each. They are from the
// middle of the message in the slot, which must be from the queue. It returns how many; its caller
// counts them as in flight.
func (s *Sender) sendMessageRun(now rawio.Time, b *pack.Batch, p *Path, size, n int) int {
	l := &s.queue.current
	body := l.middleBody()
	n = min(n, b.Left(wire.CommonHeaderLen+wire.DataHeaderLen+size), len(body)/size)
	if n < 2 || size != wire.PaddedLen(size) || s.outstanding.extras != nil {
		return 0
	}
	like := chunkRecord{token: l.msg.Token, ppid: l.msg.PPID, stream: l.msg.Stream, ssn: l.ssn, size: uint16(size),
		flags: flagEnqueued}
	if l.msg.Unordered {
		like.ssn, like.wireFlags = 0, wire.FlagU
	}
	s.sendAlikeChunks(now, b, p, like, body[:n*size], n, nil)
	if l.offset += n * size; s.queue.streams != nil {
		s.queue.noteSent(l.msg.Stream, n*size, false)
	}
	return n
}

// sendAlikeChunks gives n chunks a TSN and a packet each. What their records have in common is in
// like. body has a part of each, one after the other. run, if not nil, has what comes before that.
func (s *Sender) sendAlikeChunks(now rawio.Time, b *pack.Batch, p *Path, like chunkRecord, body []byte, n int,
	run *Run) {
	if s.ecn.enabled {
		b.SetECN(rawio.ECT0)
	}
	const headers = wire.CommonHeaderLen + wire.DataHeaderLen
	size, part := int(like.size), len(body)/n
	like.sentStamp, like.path = stampOf(now), p.index
	if p.BasePMTU > 0 && headers+size > p.BasePMTU {
		like.flags |= flagLongPacket
	}
	var space [headers + HeadCap]byte
	head := wire.AppendDataHeader(append(space[:0], b.Header()...),
		wire.DataFields{Flags: like.wireFlags, Stream: like.stream, SSN: like.ssn, PPID: like.ppid, PayloadLen: size})
	head = head[:headers+size-part]
	for i := range n {
		t, r := s.outstanding.appendRecord()
		*r = like
		r.body[0] = body[i*part:][:part:part]
		s.streams.link(t, r)
		if run != nil {
			r.head = run.Heads[i]
			*(*[HeadCap]byte)(space[headers:]) = run.Heads[i]
			if i*part < len(run.Beyond) {
				prefetch.ForRead(run.Beyond[i*part : min((i+1)*part, len(run.Beyond))])
			}
		}
		binary.BigEndian.PutUint32(space[wire.CommonHeaderLen+wire.ChunkHeaderLen:], uint32(t))
		b.Add(head, r.body[0])
	}
}

// middleBody returns what is next to be sent of a message of the queue. It is one piece of memory,
// and neither begins nor ends the message.
func (l *currentMessage) middleBody() []byte {
	off := l.offset - int(l.msg.HeadLen)
	if !l.fromQueue || off < 0 || l.offset == 0 {
		return nil
	}
	first, second := l.msg.Body[0], l.msg.Body[1]
	switch {
	case off >= len(first):
		return second[off-len(first) : len(second)-1]
	case len(second) == 0:
		return first[off : len(first)-1]
	}
	return first[off:]
}

// ackRun is messages in a row that are acknowledged together. They are of one stream, with the same
// token, and all from the Source or none.
type ackRun struct {
	messages int
	token    uint64
	stream   wire.StreamID
	enqueued bool
}

// add takes one more, if it is like them.
func (a *ackRun) add(r *chunkRecord) bool {
	if is := r.flags&flagEnqueued != 0; a.messages == 0 {
		a.token, a.stream, a.enqueued = r.token, r.stream, is
	} else if r.token != a.token || r.stream != a.stream || is != a.enqueued {
		return false
	}
	a.messages++
	return true
}

// notifyAcked tells the upper layer that messages are acknowledged.
func (u *upperLayer) notifyAcked(now rawio.Time, a ackRun) {
	to := u.sink
	if !a.enqueued {
		if src, ok := u.source.(Runner); ok && a.messages > 1 {
			src.AckedRun(now, a.stream, a.token, a.messages)
			return
		}
		to = u.source
	}
	for ; to != nil && a.messages > 0; a.messages-- {
		to.Acked(now, a.stream, a.token)
	}
}
