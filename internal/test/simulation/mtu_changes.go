package simulation

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// mtus are what paths carry, in octets at IP level.
var mtus = []int{576, 1280, 1500, 1500, 1500, 9000, 65535}

// mtuChanges changes the MTU of the network while the world runs, in one direction at a time.
type mtuChanges struct {
	next rawio.Time
	left int // changes to come
}

// newWeather draws how restless a world is. Most stay as they are.
func newWeather(w *World) mtuChanges {
	if w.rand.IntN(4) != 0 {
		return mtuChanges{next: rawio.Never}
	}
	return mtuChanges{next: w.drawSoon(), left: 1 + w.rand.IntN(5)}
}

func (w *World) drawSoon() rawio.Time {
	return w.now.Add(time.Duration(w.rand.IntN(10_000)) * time.Millisecond)
}

// changeMTU makes the change that is due.
func (x *mtuChanges) changeMTU(w *World) {
	if w.now < x.next {
		return
	}
	from, to := w.a.connectAddr(), w.b.connectAddr()
	if w.rand.IntN(2) == 0 {
		from, to = to, from
	}
	w.setMTU(from, to, mtus[w.rand.IntN(len(mtus))], w.rand.IntN(2)*64)
	w.coverage.MTUs++
	x.next = w.drawSoon()
	if x.left--; x.left == 0 {
		x.next = rawio.Never
	}
}

// setMTU changes the MTU of one direction. quote is what reports quote of packets above it, 0 for
// none.
func (w *World) setMTU(from, to netip.Addr, mtu, quote int) {
	p, _ := w.net.Link(from, to)
	p.MTU, p.Quote = leastMTU(to, mtu), quote
	w.net.SetLink(from, to, p)
}
