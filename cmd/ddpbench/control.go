package main

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Control messages are Sends with Solicited Event; data goes by plain Sends. They tell the active
// end of a QP and the passive one how far the other is:
//
//	active                           passive
//	go, from the client only
//	data ...
//	                                 grant: more Sends may come (verb send)
//	done: that was all
//	                                 ack: all is placed and was delivered
//	                                 verdict, with --verify
//	                                 report, from the server on the first QP, with -b
//	                                 notes, from the server on the first QP, for --report
type controlKind uint8

const (
	controlGo controlKind = 1 + iota
	controlGrant
	controlDone
	controlAck
	controlVerdict
	controlReport
	controlNotes
)

// control is a control message.
type control struct {
	kind      controlKind
	stopToo   bool   // done: the peer should stop too
	count     uint64 // grant: credits; done, ack: messages; verdict: bad ones; notes: octets
	bandwidth        // report
}

const controlLen = 40

// maxRate bounds what a peer may report. Sums of such figures can still be printed.
const maxRate = 1e12

func (c *control) encodeTo(b *[controlLen]byte) {
	clear(b[:])
	b[0] = byte(c.kind)
	if c.stopToo {
		b[1] = 1
	}
	binary.BigEndian.PutUint64(b[8:], c.count)
	for i, f := range []float64{c.peak, c.avg, c.rate} {
		binary.BigEndian.PutUint64(b[16+8*i:], math.Float64bits(f))
	}
}

func (c *control) decode(b []byte) error {
	if len(b) != controlLen || controlKind(b[0]) < controlGo || controlKind(b[0]) > controlNotes {
		return fmt.Errorf("the peer sent a message of %d octets that is not ddpbench's", len(b))
	}
	*c = control{kind: controlKind(b[0]), stopToo: b[1]&1 != 0, count: binary.BigEndian.Uint64(b[8:])}
	for i, f := range []*float64{&c.peak, &c.avg, &c.rate} {
		*f = math.Float64frombits(binary.BigEndian.Uint64(b[16+8*i:]))
		if !(*f >= 0 && *f <= maxRate) {
			return fmt.Errorf("the peer reports a bandwidth of %v", *f)
		}
	}
	return nil
}

// creditGranter counts the credits of a receiver of Sends. Its sender starts with a credit for each
// slot, and spends one on each Send. Grants give them back. A Send must never arrive without a
// buffer, as that ends the stream (RFC 5041 section 7.1).
type creditGranter struct{ slots, toGrant int }

// countArrival counts a Send that has come and whose buffer is posted again.
func (g *creditGranter) countArrival() { g.toGrant++ }

// takeGrant returns how many credits to grant now, often 0. A grant is at least half of all
// credits. So there are never more than two on the way, and the sender has buffers for two.
func (g *creditGranter) takeGrant() int {
	if g.toGrant < (g.slots+1)/2 {
		return 0
	}
	n := g.toGrant
	g.toGrant = 0
	return n
}
