package simulated

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// TwoPaths is two roads alike between two hosts with two addresses each, and what the client sends:
// messages with a number, whose order the server checks.
type TwoPaths struct {
	RTT    time.Duration
	Rate   int64         // octets a second, each way
	Hold   float64       // the queue, in round trips at that rate
	Jitter time.Duration // each way
	Loss   float64       // each way
	MTU    int           // of roads and interfaces; 0: MTU
	Size   int           // octets of a message, at least 8
	Every  time.Duration // between two messages; 0: in bulk
	Config assoc.Config
}

// Twins are the loads that failover is measured with: in bulk, and a message each 5 ms.
func Twins() (bulk, trickle TwoPaths) {
	bulk = TwoPaths{RTT: 20 * time.Millisecond, Rate: 12_500_000, Hold: 1, Size: 1 << 10}
	trickle = bulk
	trickle.Size, trickle.Every = 100, 5*time.Millisecond
	return bulk, trickle
}

// Shaky adds jitter of half the round trip, and 1 % loss.
func (t TwoPaths) Shaky() *TwoPaths {
	t.Jitter, t.Loss = t.RTT/2, 0.01
	return &t
}

// Jumbo has long packets.
func (t TwoPaths) Jumbo() *TwoPaths {
	t.MTU, t.Size = 9000, 8000
	return &t
}

func (t *TwoPaths) String() string {
	if t.Every == 0 {
		return "in bulk"
	}
	return fmt.Sprintf("a message each %v", t.Every)
}

// twoPathsRun is TwoPaths at work.
type twoPathsRun struct {
	*hostPair
	t        *TwoPaths
	rand     *rand.Rand
	params   simnet.Params
	body     []byte
	silent   bool // nothing new is sent
	sent     uint64
	arrived  uint64
	disorder error
	last     rawio.Time    // the last arrival
	longest  time.Duration // between two, since somebody has set it to 0
}

func (t *TwoPaths) startRun(seed uint64) (*twoPathsRun, error) {
	w := &twoPathsRun{hostPair: newPair(seed, 2), t: t, rand: rand.New(rand.NewPCG(seed, 7)),
		body: make([]byte, t.Size)}
	w.applications = w.runTraffic
	queue := max(15000, int(t.Hold*t.RTT.Seconds()*float64(t.Rate)))
	w.params = simnet.Params{Delay: t.RTT / 2, Jitter: t.Jitter, Rate: t.Rate, Queue: queue, Loss: t.Loss,
		MTU: cmp.Or(t.MTU, MTU)}
	for k := range 2 {
		w.setRoad(k, w.params, w.params)
	}
	ends := [2]assoc.Config{t.Config, t.Config}
	for i := range ends {
		w.hosts[i].Link = w.params.MTU
		ends[i].LocalAddrs = w.hosts[i].Addrs
	}
	w.silent = true
	if err := w.joinHosts(&ends[0], &ends[1]); err != nil {
		return nil, err
	}
	if !w.runUntil(w.now.Add(patience), w.isSettled) {
		return nil, errNoEnd
	}
	w.silent, w.last = false, w.now
	return w, nil
}

// isSettled says that both paths are active, and none is suspected.
func (w *twoPathsRun) isSettled() bool {
	for i := range w.senderAssoc().NumPaths() {
		if p := w.senderAssoc().PathStats(i); p.State != assoc.PathActive || p.Suspected {
			return false
		}
	}
	return w.senderAssoc().NumPaths() == 2
}

func (w *twoPathsRun) senderAssoc() *assoc.Assoc { return w.hosts[0].Assocs[0] }

// runTraffic is the client, which sends, and the server, which listens.
func (w *twoPathsRun) runTraffic() {
	if len(w.hosts[0].Assocs) == 0 || len(w.hosts[1].Assocs) == 0 {
		return
	}
	for a := w.senderAssoc(); !w.silent && a.State() == assoc.Established &&
		(w.t.Every == 0 || w.alarm == rawio.Never ||
			w.alarm <= w.now); {
		m := assoc.Message{Body: [2][]byte{binary.BigEndian.AppendUint64(nil, w.sent), w.body[8:]}}
		if w.t.Every > 0 {
			w.alarm = w.now.Add(w.t.Every)
		}
		if a.Send(w.now, &m) != nil {
			break
		}
		w.sent++
	}
	if w.silent {
		w.alarm = rawio.Never
	}
	for a, more := w.hosts[1].Assocs[0], true; more; {
		r, ok := a.Receive()
		if more = ok; ok {
			var number [8]byte
			r.CopyTo(number[:], 0)
			if n := binary.BigEndian.Uint64(number[:]); (n != w.arrived || r.Size != w.t.Size) && w.disorder == nil {
				w.disorder = fmt.Errorf("message %d of %d octets, want %d", n, r.Size, w.arrived)
			}
			w.arrived++
			a.Release(r)
			w.longest, w.last = max(w.longest, w.now.Sub(w.last)), w.now
		}
	}
}

func (w *twoPathsRun) passTime(d time.Duration) {
	w.runUntil(w.now.Add(d), func() bool { return false })
}

// drawBetween draws a duration.
func (w *twoPathsRun) drawBetween(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least)+1))
}

// drainAll waits until all has arrived.
func (w *twoPathsRun) drainAll() error {
	w.silent = true
	if !w.runUntil(w.now.Add(patience), func() bool { return w.arrived == w.sent }) {
		return fmt.Errorf("%d messages of %d have arrived", w.arrived, w.sent)
	}
	return w.disorder
}

// repeatEvents has something happen, so many times, each time that the client is ready for it, and
// returns how long the server heard nothing in so much time from then on, sorted. Every message has
// arrived.
func (t *TwoPaths) repeatEvents(seed uint64, times int, lasts time.Duration, ready func(*twoPathsRun) bool, begin,
	end func(*twoPathsRun)) (list []time.Duration, err error) {
	w, err := t.startRun(seed)
	if err != nil {
		return nil, err
	}
	for w.silent = true; ; {
		if !w.runUntil(w.now.Add(patience), func() bool { return ready(w) }) {
			return nil, errNoEnd
		}
		if len(list) == times {
			slices.Sort(list)
			return list, nil
		}
		w.silent = false
		w.passTime(w.drawBetween(time.Second, 2*time.Second))
		w.longest = 0
		begin(w)
		w.passTime(lasts)
		list = append(list, max(w.longest, w.now.Sub(w.last)))
		end(w)
		if err := w.drainAll(); err != nil {
			return nil, err
		}
	}
}

// Cuts cuts the road that data takes, so many times, at the client's own interface or farther on,
// and returns how long the server heard nothing each time, sorted.
func (t *TwoPaths) Cuts(seed uint64, cuts int, own bool) (silences []time.Duration, err error) {
	ends := func(w *twoPathsRun) (client, server netip.Addr) { return w.hosts[0].Addrs[0], w.hosts[1].Addrs[0] }
	return t.repeatEvents(seed, cuts, 2500*time.Millisecond, (*twoPathsRun).isSettled, func(w *twoPathsRun) {
		w.net.Partition(ends(w))
		if own {
			w.hosts[0].Down = w.hosts[0].Addrs[:1]
			w.senderAssoc().UsableFrom(w.now, w.hosts[0].Addrs[1:])
		}
	}, func(w *twoPathsRun) {
		w.net.Heal(ends(w))
		w.hosts[0].Down = nil
	})
}

// Falls has the MTU of the client's interfaces fall to that of Ethernet, so many times, and returns
// what Cuts does. Roads go on to carry what is longer.
func (t *TwoPaths) Falls(seed uint64, falls int) (silences []time.Duration, err error) {
	found := func(w *twoPathsRun) bool { return w.senderAssoc().PathStats(0).MaxPacket > MTU }
	return t.repeatEvents(seed, falls, time.Second, found, func(w *twoPathsRun) { w.hosts[0].Link = MTU },
		func(w *twoPathsRun) { w.hosts[0].Link = t.MTU })
}

// SpikeResult is what came of delay spikes.
type SpikeResult struct {
	Spikes    int
	Moves     uint64  // times that data has left a path
	Most      uint64  // of them because of one spike
	Again     float64 // share of the octets of user data that were sent more than once
	Timeouts  uint64
	PathsDown uint64
	Ended     bool
	Longest   time.Duration // silence of the server
}

// A spike holds what is on one road, or on both, back until it is over, as a handover does.
const (
	spikeLeast, spikeMost = 50 * time.Millisecond, 300 * time.Millisecond
	restLeast, restMost   = 5 * time.Second, 15 * time.Second
	spikeStep             = 5 * time.Millisecond
)

// Spikes has delays rise for so long.
func (t *TwoPaths) Spikes(seed uint64, d time.Duration) (*SpikeResult, error) {
	w, err := t.startRun(seed)
	if err != nil {
		return nil, err
	}
	s := &SpikeResult{}
	moves := func() uint64 { return w.senderAssoc().Stats().PathsSuspected }
	w.passTime(restLeast)
	for end := w.now.Add(d); w.now < end; s.Spikes++ {
		before := moves()
		which := 1 + w.rand.IntN(3) // a set of roads
		for left := w.drawBetween(spikeLeast, spikeMost); left > 0; left -= spikeStep {
			held := w.params
			held.Delay += left
			for k := range 2 {
				if which>>k&1 != 0 {
					w.setRoad(k, held, held)
				}
			}
			w.passTime(min(left, spikeStep))
		}
		for k := range 2 {
			w.setRoad(k, w.params, w.params)
		}
		w.passTime(w.drawBetween(restLeast, restMost))
		s.Most = max(s.Most, moves()-before)
	}
	err = w.drainAll()
	st := w.senderAssoc().Stats()
	s.Moves, s.Timeouts, s.PathsDown, s.Ended = st.PathsSuspected, st.Timeouts, st.PathsDown,
		w.senderAssoc().State() != assoc.Established
	s.Again, s.Longest = float64(st.Retransmits)/float64(st.DataOut), w.longest
	return s, err
}
