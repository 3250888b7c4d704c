package simulation

import (
	"time"

	"github.com/rddp-go/rddp/rawio/simnet"
)

// injectFault is what a fuzzer does to the network, by four octets: for how long, to which
// direction, and what. good is what the network is like without.
func (w *World) injectFault(b []byte, good [2]simnet.Params) {
	from, to := w.a.connectAddr(), w.b.connectAddr()
	p := good[b[1]&1]
	if b[1]&1 != 0 {
		from, to = to, from
	}
	set := func(p simnet.Params) {
		now, _ := w.net.Link(from, to)
		p.MTU, p.Quote = now.MTU, now.Quote // which the weather changes
		w.net.SetLink(from, to, p)
	}
	level := float64(b[3]) / 255
	change := func(x *simnet.Params, level float64) {
		switch b[1] >> 1 % 8 {
		case 0:
			x.Loss = level
		case 1:
			x.Duplicate = level
		case 2:
			x.Reorder, x.ReorderDelay = level, time.Second
		case 3:
			x.Corrupt = level
		case 4:
			x.Delay += time.Duration(level * float64(time.Second))
		case 5:
			x.Rate, x.Queue = 50_000+int64(level*1e6), 20_000
		case 6:
			x.Loss, x.Burst = 0, simnet.Burst{Enter: level / 10, Leave: 0.2, Loss: 1}
		case 7:
			x.Mark = level
		}
	}
	change(&p, level)
	set(p)
	// An association outlives some seconds of it.
	w.scheduleAfter(time.Duration(b[2])*10*time.Millisecond, func() { set(good[b[1]&1]) })
}

// maxTroubles bounds the time in which the network can be down.
const maxTroubles = 8
