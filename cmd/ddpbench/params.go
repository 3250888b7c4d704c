package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// verb is the operation that is measured.
type verb uint8

const (
	verbWrite verb = iota
	verbRead
	verbSend
	verbAtomic
)

var verbs = map[string]verb{"write": verbWrite, "read": verbRead, "send": verbSend, "atomic": verbAtomic}

// String returns perftest's name of the test.
func (v verb) String() string { return [...]string{"RDMA_Write", "RDMA_Read", "Send", "Atomic"}[v] }

// isPull reports whether the other side's stack answers by itself. Then a round trip is one
// message.
func (v verb) isPull() bool { return v == verbRead || v == verbAtomic }

// params are what both ends have to agree on. The client decides.
type params struct {
	verb          verb
	isLatency     bool
	bidirectional bool // both sides transmit
	verify        bool
	size          int           // octets in a message
	memoryOctets  int           // octets that the messages of all QPs use in turn, each way; 0: a default
	depth         int           // messages outstanding on a QP
	qps           int           // number of QPs
	iters         uint64        // messages on each QP, 0 with a duration
	duration      time.Duration // 0 with iters
	seed          uint64        // of the content
	wantsNotes    bool          // the server sends its notes
	compareSwap   bool          // atomics compare and swap, instead of adding
	noPeak        bool          // of this end
	cqModeration  int           // messages to a completion, of this end; 0: a default
	postList      int           // requests posted under one lock at most, of this end; 0: a default
}

// atomicSize is the size of the operand of an atomic operation, in octets (RFC 7306 section 5).
const atomicSize = 8

// These bound the run, and so what a client can make a server do.
const (
	maxSize        = 256 << 20
	maxDepth       = 8192
	maxQPs         = 256
	maxOutstanding = 1 << 17 // depth x QPs
	maxIters       = 100_000_000
	maxDuration    = 24 * time.Hour
	maxMemory      = 1 << 30 // octets of one end of one run
	maxReads       = 128     // RDMA Reads outstanding on a QP
)

// checkBounds returns a sentence about what is out of bounds.
func (p *params) checkBounds() error {
	switch {
	case p.verb > verbAtomic:
		return cli.Usagef("this ddpbench knows write, read, send and atomic only")
	case p.verb == verbAtomic && p.size != atomicSize:
		return cli.Usagef("-s %d: an atomic operation is on %d bytes", p.size, atomicSize)
	case p.verb == verbAtomic && p.verify:
		return cli.Usagef("--verify: an atomic operation has no content; its result is looked at by nobody")
	case p.size < 1 || p.size > maxSize:
		return cli.Usagef("-s %d: a message is 1 octet to %dM", p.size, maxSize>>20)
	case p.memoryOctets != 0 && (p.memoryOctets < p.size || p.memoryOctets > maxMemory):
		return cli.Usagef("--memory %d: it takes one message at least and is at most %dM", p.memoryOctets,
			maxMemory>>20)
	case p.depth < 1 || p.depth > maxDepth:
		return cli.Usagef("-t %d: the depth is 1 to %d", p.depth, maxDepth)
	case p.qps < 1 || p.qps > maxQPs:
		return cli.Usagef("-q %d: the number of QPs is 1 to %d", p.qps, maxQPs)
	case p.depth*p.qps > maxOutstanding:
		return cli.Usagef("-t %d times -q %d: at most %d messages can be outstanding", p.depth, p.qps, maxOutstanding)
	case p.iters > maxIters:
		return cli.Usagef("-n %d: at most %d messages", p.iters, maxIters)
	case p.duration < 0 || p.duration > maxDuration:
		return cli.Usagef("-D: at most %v", maxDuration)
	case (p.iters == 0) == (p.duration == 0):
		return cli.Usagef("a run ends after a number of messages or a time")
	case p.isLatency && p.bidirectional:
		return cli.Usagef("--lat goes there and back already: it does not go with -b")
	case p.isLatency && p.qps > 1:
		return cli.Usagef("--lat uses one QP: it does not go with -q")
	case p.isLatency && p.depth > 1:
		return cli.Usagef("--lat has one message outstanding at a time")
	case p.endMemory(false) > maxMemory: // a client needs no more than its server
		return cli.Usagef("-s %d with -q %d needs more than %dM of memory: take less of one", p.size, p.qps,
			maxMemory>>20)
	}
	return nil
}

// role says what one end does. An active end posts the requests that are measured, and a passive
// end's memory is their target. In a ping-pong, and with -b, an end is both.
type role struct{ active, passive bool }

func (p *params) roleOf(client bool) role {
	pong := p.bidirectional || p.isLatency && !p.verb.isPull()
	return role{active: client || pong, passive: !client || pong}
}

// The memory for messages in one direction, unless the command line sets it. It is enough for the
// outstanding messages, but little enough to stay in a cache. Sends need more, as each outstanding
// one needs its own receive buffer.
const (
	budgetTagged = 4 << 20
	budgetSend   = 16 << 20
	maxSlots     = 8192
)

// slotCount is how many messages have memory of their own on each QP. Message i uses slot i modulo
// slots.
func (p *params) slotCount() int {
	budget, least := budgetTagged, 1
	if p.verb == verbSend {
		budget, least = budgetSend, 2
	}
	most := p.depth
	if p.memoryOctets > 0 {
		budget, most = p.memoryOctets, maxSlots
	}
	return min(max(budget/p.qps/p.size, least), most)
}

// controlBuffers is how many control messages one end may have under way. That is two grants of
// credit, and one each of go, done, ack, verdict, report and notes.
const controlBuffers = 8

// recvBuffers returns the number and the length of one QP's receive buffers.
func (p *params) recvBuffers(client bool) (n, size int) {
	if !p.roleOf(client).passive {
		return controlBuffers, controlLen
	}
	switch p.verb {
	case verbSend:
		return p.slotCount() + controlBuffers, max(p.size, controlLen)
	case verbWrite:
		if p.isLatency {
			return 2 + controlBuffers, controlLen // the notifications
		}
	}
	return controlBuffers, controlLen
}

// hasSource and hasSink say which regions one end has: source holds data, sink takes it.
func (p *params) hasSource(client bool) bool {
	r := p.roleOf(client)
	return r.active && !p.verb.isPull() || r.passive && p.verb.isPull()
}

func (p *params) hasSink(client bool) bool {
	r := p.roleOf(client)
	return r.active && p.verb == verbRead || r.passive && p.verb == verbWrite
}

// sendQueueDepth is the depth of one end's send queue. A ping-pong posts two requests for each
// message.
func (p *params) sendQueueDepth(client bool) int {
	if !p.roleOf(client).active {
		return controlQueue
	}
	return 4*p.depth + controlQueue
}

// queueSizes are the queue sizes of one QP.
func (p *params) queueSizes(client bool) cli.Queues {
	n, _ := p.recvBuffers(client)
	send := p.sendQueueDepth(client)
	return cli.Queues{Send: send, Recv: n, Reads: max(p.readDepth(), 0), Completions: n + send, SGEs: 1, Inline: 64}
}

// runMemory is what one end of a run takes besides its QPs.
const runMemory = 64 << 10

// endMemory is how many octets one end needs, including queues and completions. A server counts
// them before it allocates.
func (p *params) endMemory(client bool) int64 {
	n, size := p.recvBuffers(client)
	total := int64(n)*int64(size) + p.queueSizes(client).Memory()
	region := int64(p.slotCount()) * int64(p.size)
	if p.hasSource(client) {
		total += region
	}
	if p.hasSink(client) {
		total += region
	}
	total = total*int64(p.qps) + runMemory
	if p.wantsNotes {
		total += notesMemory
	}
	if p.roleOf(client).active && p.hasPeak() {
		total += int64(p.iters) * int64(p.qps) * peakMessageOctets
	}
	return total
}

// readDepth is the number of RDMA Reads or atomics outstanding on a QP.
func (p *params) readDepth() int {
	if !p.verb.isPull() {
		return -1 // none
	}
	return min(p.depth, maxReads)
}

// One in so many messages, or so many octets, asks for a completion. The first number is
// perftest's, which polls for completions. ddpbench sleeps in between. Waking for each large
// message as well would cost a tenth of the bandwidth.
const (
	moderateCount  = 100
	moderateOctets = 16 << 20
)

// completionInterval is how many messages share one completion. The queue never drains for lack of
// one.
func (p *params) completionInterval() int {
	if p.cqModeration > 0 {
		return min(p.cqModeration, p.depth)
	}
	return max(1, min(moderateCount, p.depth/4, moderateOctets/p.size))
}

// target is memory that one end opens to the other.
type target struct {
	stag rdma.STag
	to   uint64
	qpn  uint32 // of the QP, for people
}

// hello is the private data of a client's request. There is one for each QP.
type hello struct {
	params
	run  uint64 // the same for all QPs of a run
	lane int    // which of them this is
	target
	notesTarget target // of the first: where notes go
}

const (
	magic     = "ddpbench"
	version   = 4
	helloLen  = len(magic) + 2 + 1 + 1 + 2 + 2 + 4 + 4 + 4 + 8 + 8 + 8 + 8 + 2*targetLen
	answerLen = len(magic) + targetLen
	targetLen = 4 + 8 + 4
)

const (
	flagLat = 1 << iota
	flagBoth
	flagVerify
	flagSwap
	flagNotes
)

func (h *hello) encode() []byte {
	var flags byte
	for _, f := range []struct {
		on  bool
		bit byte
	}{{h.isLatency, flagLat}, {h.bidirectional, flagBoth}, {h.verify, flagVerify}, {h.compareSwap, flagSwap},
		{h.wantsNotes, flagNotes}} {
		if f.on {
			flags |= f.bit
		}
	}
	be := binary.BigEndian
	b := append(make([]byte, 0, helloLen), magic...)
	b = be.AppendUint16(b, version)
	b = append(b, byte(h.verb), flags)
	b = be.AppendUint16(b, uint16(h.qps))
	b = be.AppendUint16(b, uint16(h.lane))
	b = be.AppendUint32(b, uint32(h.size))
	b = be.AppendUint32(b, uint32(h.memoryOctets))
	b = be.AppendUint32(b, uint32(h.depth))
	b = be.AppendUint64(b, h.iters)
	b = be.AppendUint64(b, uint64(h.duration))
	b = be.AppendUint64(b, h.run)
	b = be.AppendUint64(b, h.seed)
	return h.notesTarget.appendTo(h.target.appendTo(b))
}

// decode reads a client's request and checks its bounds. Its errors are sentences for the client.
func (h *hello) decode(b []byte) error {
	be := binary.BigEndian
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return cli.Usagef("a ddpbench listens here: the request is not from a ddpbench")
	}
	b = b[len(magic):]
	if v := be.Uint16(b); v != version {
		return cli.Usagef("the server's ddpbench speaks version %d, the client's version %d: use the same release",
			version, v)
	}
	if len(b) != helloLen-len(magic) {
		return cli.Usagef("the request is %d octets long, not %d", len(b)+len(magic), helloLen)
	}
	flags := b[3]
	*h = hello{params: params{
		verb: verb(b[2]), isLatency: flags&flagLat != 0, bidirectional: flags&flagBoth != 0,
		verify: flags&flagVerify != 0, compareSwap: flags&flagSwap != 0, wantsNotes: flags&flagNotes != 0,
		qps: int(be.Uint16(b[4:])), size: parseInt32(b[8:]), memoryOctets: parseInt32(b[12:]),
		depth: parseInt32(b[16:]),
		iters: be.Uint64(b[20:]), duration: time.Duration(be.Uint64(b[28:])), seed: be.Uint64(b[44:]),
	}, lane: int(be.Uint16(b[6:])), run: be.Uint64(b[36:])}
	h.target.decode(b[52:])
	h.notesTarget.decode(b[52+targetLen:])
	if err := h.checkBounds(); err != nil {
		return err
	}
	if h.lane >= h.qps {
		return cli.Usagef("QP %d of %d does not exist", h.lane, h.qps)
	}
	return nil
}

// parseInt32 reads a number that an int can hold on any machine.
func parseInt32(b []byte) int { return int(min(binary.BigEndian.Uint32(b), math.MaxInt32)) }

func (t *target) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(t.stag))
	b = binary.BigEndian.AppendUint64(b, t.to)
	return binary.BigEndian.AppendUint32(b, t.qpn)
}

func (t *target) decode(b []byte) {
	t.stag = rdma.STag(binary.BigEndian.Uint32(b))
	t.to = binary.BigEndian.Uint64(b[4:])
	t.qpn = binary.BigEndian.Uint32(b[12:])
}

// encodeAnswer returns the private data of a server's acceptance.
func (t *target) encodeAnswer() []byte {
	return t.appendTo(append(make([]byte, 0, answerLen), magic...))
}

func (t *target) decodeAnswer(b []byte) error {
	if len(b) != answerLen || string(b[:len(magic)]) != magic {
		return fmt.Errorf("what listens there is not a ddpbench")
	}
	t.decode(b[len(magic):])
	return nil
}
