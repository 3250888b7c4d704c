package sctp

import "github.com/rddp-go/rddp/rawio"

// The way of a packet, from the link to its association: next, run, handle, those, input, handle. There is no other, but for what waits for the owner
// of an association, and nothing else is here (internal/archtest). What goes before and after is in reader.go, which association a packet belongs to in
// demux.go.

// next waits for packets.
func (r *receiver) next() (n int, err error) {
	if r.waiter == nil {
		return r.queue.ReadBatch(r.pkts)
	}
	return r.pace.Next(r.waiter, r.pkts)
}

// run runs the first n of pkts to completion: demultiplex, handle, place, acknowledge, transmit. What comes meanwhile, or directly after
// them, goes with them: one SACK does for all, and one wake-up of who reads. It returns the error that next has, unless that is
// over with; then the link is good for nothing more.
func (r *receiver) run(n int, err error) error {
	r.begin()
	for r.handle(n); err == nil && r.follows(n); r.handle(n) {
		if n = r.poller.PollBatch(r.pkts); n == 0 && r.pace.Late(r.t.now()) {
			break
		}
	}
	return r.finish(err)
}

// handle handles the first n of pkts, those of one association after those of another, so that one SACK and
// one transmit batch do for all of them whatever came between. It leaves these to done.
func (r *receiver) handle(n int) {
	if n == 0 {
		return
	}
	r.arrived(n)
	if r.last == nil || !r.those(r.last, 0, n) { // it goes on where the packets before have ended
		r.done(false)
	}
	for i := range n {
		for c := r.whose(i, n); c != nil; c = r.whose(i, n) { // more than once if it has ended
			r.done(false)
			r.those(c, i, n)
		}
	}
	r.handledAll(n)
}

// those handles the packets of one association among those from the i-th to the n-th, and says whether there
// were any. It keeps no association, and the memory of its user, beyond its end.
func (r *receiver) those(c *Conn, i, n int) (any bool) {
	for k, n := 0, r.known(c, i, n); i < n; i++ {
		if r.conns[i] == c {
			if k, r.owned = c.input(r.at, r.row(c, i, n), r.owned); k == 0 {
				r.gone(c, i, n)
				break
			}
			if i, any = r.handled(c, i, k), true; r.owned && c.over(sliceTime/2) {
				r.yield(c, i, n)
				break
			}
		}
	}
	return any
}

// input handles the first of these packets of this association, with those that go with it, or leaves it to the owner, and returns how many these are:
// none where the association has ended. It reports whether the caller has become the owner; it then goes on with owned true and unlocks in the end.
func (c *Conn) input(now rawio.Time, row []rawio.Packet, owned bool) (n int, _ bool) {
	if owned = owned || c.tryOwn(); owned && !c.behind(now) {
		return c.handle(now, row), true
	}
	return c.leave(&row[0]), owned || c.tryOwn() // the owner may have left before it could see the packet
}

// handle is that of the association, whose owner the caller is. It returns 0 if that has ended.
func (c *Conn) handle(now rawio.Time, row []rawio.Packet) (n int) {
	n = c.a.HandlePackets(now, row)
	c.charges(n)
	if c.a.SackNow() {
		c.t.transmit(now, &c.a)
	}
	return n
}
