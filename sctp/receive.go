package sctp

import "github.com/rddp-go/rddp/rawio"

// The way of a packet, from the link to its association: waitBatch, runBatch, dispatchBatch,
// deliverToConn, deliverOrQueue, processPackets. There is no other, but for the backlog of an
// association, and nothing else is here (test/arch). What goes before and after is in reader.go,
// which association a packet belongs to in demux.go.

// waitBatch waits for packets, as the policy says.
func (r *receiver) waitBatch() (n int, err error) {
	return r.policy.WaitBatch(r.pkts)
}

// runBatch runs the first n of pkts to completion: demultiplex, handle, place, acknowledge,
// transmit. Packets that come meanwhile, or directly after them, go with them. One SACK and one
// wake-up of the reader do for all. It returns the error of waitBatch, unless that is over with.
// After an error the link is good for nothing more.
func (r *receiver) runBatch(n int, err error) error {
	r.beginRun()
	for r.dispatchBatch(n); err == nil && r.expectsMore(n); r.dispatchBatch(n) {
		if n = r.poller.PollBatch(r.pkts); n == 0 && r.policy.TrainIsLate(r.t.now()) {
			break
		}
	}
	return r.finishRun(err)
}

// dispatchBatch handles the first n of pkts, one association after the other. So one SACK and one
// transmit batch do for all packets of an association, whatever came between. It leaves these to
// releaseConn.
func (r *receiver) dispatchBatch(n int) {
	if n == 0 {
		return
	}
	r.beginBatch(n)
	if r.lastConn == nil || !r.deliverToConn(r.lastConn, 0, n) { // it goes on where the packets before have ended
		r.releaseConn(false)
	}
	for i := range n {
		for c := r.connFor(i, n); c != nil; c = r.connFor(i, n) { // more than once if it has ended
			r.releaseConn(false)
			r.deliverToConn(c, i, n)
		}
	}
	r.finishBatch(n)
}

// deliverToConn handles the packets of one association among those from the i-th to the n-th, and
// says whether there were any. It keeps no association, and the memory of its user, beyond its end.
func (r *receiver) deliverToConn(c *Conn, i, n int) (any bool) {
	for k, n := 0, r.firstDeferred(c, i, n); i < n; i++ {
		if r.conns[i] == c {
			if k, r.holdsLock = c.deliverOrQueue(r.arrivedAt, r.consecutivePackets(c, i, n), r.holdsLock); k == 0 {
				r.dropEndedConn(c, i, n)
				break
			}
			if i, any = r.markHandled(c, i, k), true; r.holdsLock && c.sliceIsOver(sliceTime/2) {
				r.handOffConn(c, i, n)
				break
			}
		}
	}
	return any
}

// deliverOrQueue handles the first of these packets of this association, with those that go with
// it, or leaves it in the backlog. It returns how many packets these are, none if the association
// has ended. It reports whether the caller now holds the lock. The caller then goes on with owned
// true and unlocks in the end.
func (c *Conn) deliverOrQueue(now rawio.Time, row []rawio.Packet, owned bool) (n int, _ bool) {
	if owned = owned || c.tryLock(); owned && !c.drainBacklogFirst(now) {
		return c.processPackets(now, row), true
	}
	return c.enqueueBacklog(&row[0]), owned || c.tryLock() // the owner may have left before it could see the packet
}

// processPackets handles the packets for a caller that holds the lock. It returns 0 if the
// association has ended.
func (c *Conn) processPackets(now rawio.Time, row []rawio.Packet) (n int) {
	n = c.core.HandlePackets(now, row)
	c.chargePackets(n)
	if c.core.SackNow() {
		c.t.transmitBatch(now, &c.core)
	}
	return n
}
