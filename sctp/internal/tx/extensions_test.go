package tx

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// extensionsWorld is a Sender with all extensions, its program and a peer, by chance.
type extensionsWorld struct {
	*extensionsLab
	r        *rand.Rand
	loss     int                // percent
	received map[wire.TSN]bool  // beyond cum
	cum      wire.TSN           // of the peer
	policies map[uint64]Message // of messages of which nothing was heard yet
	arrived  map[uint64]int     // octets of each message that have arrived
	sizes    map[uint64]int
}

// Whatever is lost, each message is heard of once: it is acknowledged, and then the peer has all of
// it, or it is abandoned, and then its policy allows that. A FORWARD TSN skips nothing else.
func TestWorldsWithAllExtensions(t *testing.T) {
	// req 3758-3.5-1
	// req 3758-3.5-3
	// req 3758-3.5-4
	// req 8260-2.2.2-2
	worlds := 400
	if testing.Short() {
		worlds = 60
	}
	for seed := range worlds {
		runExtensionsWorld(t, uint64(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runExtensionsWorld(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	l := newExtensionsLab(t, true, r.IntN(2) == 0)
	l.s.cfg.StrictRFC = r.IntN(2) == 0
	l.s.cfg.SendBuffer = 20000
	w := &extensionsWorld{extensionsLab: l, r: r, loss: r.IntN(40), received: map[wire.TSN]bool{},
		policies: map[uint64]Message{}, arrived: map[uint64]int{}, sizes: map[uint64]int{}}
	if r.IntN(2) == 0 {
		must.OK(t, l.s.AddPath(newLabPath(2)))
	}
	for range 300 {
		w.step()
		w.check()
		if t.Failed() {
			return
		}
	}
	w.loss = 0
	for n := 0; l.s.Outstanding() > 0 || l.s.Queued() > 0; n++ {
		must.That(t, n < 3000, "no end of it: %d outstanding, %d queued", l.s.Outstanding(), l.s.Queued())
		w.advance()
		w.exchange()
		w.hear()
		w.check()
	}
	must.That(t, len(w.policies) == 0, "nothing was heard of %d messages", len(w.policies))
	must.That(t, l.s.Buffered() == 0 && l.s.Flight() == 0, "buffered %d, in flight %d", l.s.Buffered(), l.s.Flight())
}

func newLabPath(i int) *Path {
	p := NewPath(rawio.Packet{}.Local, rawio.Packet{}.Remote, labMTU, labRTO, cc.RFC9260)
	p.State = Active
	return p
}

func (w *extensionsWorld) step() {
	switch w.r.IntN(10) {
	case 0, 1, 2, 3:
		w.write()
	case 4:
		schedulers := []func() sched.Scheduler{sched.RoundRobin, sched.Priority, sched.FairCapacity,
			sched.WeightedFairQueueing, sched.RoundRobinPerPacket, func() sched.Scheduler { return nil }}
		if w.r.IntN(4) == 0 {
			w.s.SetScheduler(schedulers[w.r.IntN(len(schedulers))]())
		}
		w.s.SetStreamValue(wire.StreamID(w.r.IntN(4)), uint16(w.r.IntN(3)))
	case 5, 6:
		w.advance()
	case 7:
		w.now += rawio.Time(w.r.IntN(100)) * ms
		w.expire()
	}
	w.exchange()
	w.hear()
}

// write gives a message to the sender.
func (w *extensionsWorld) write() {
	n := 1 + w.r.IntN(300)
	if w.r.IntN(4) == 0 {
		n = 1 + w.r.IntN(5000)
	}
	m := Message{Stream: wire.StreamID(w.r.IntN(4)), Unordered: w.r.IntN(3) == 0,
		Policy: AbandonPolicy(w.r.IntN(int(numPolicies)))}
	switch m.Policy {
	case AbandonExpired:
		m.Expires = w.now.Add(1 + 10*w.rangeMS(100))
	case AbandonResent, AbandonForRoom:
		m.Limit = uint32(w.r.IntN(4))
	}
	if m.Policy == AbandonForRoom {
		w.s.MakeRoom(w.now, n, m.Limit)
		w.hear()
	}
	w.token++
	m.Token = w.token
	m.Reserve = !w.s.HasRoom(n) && w.s.HasReserve(m.Stream, n)
	m.Body[0] = slices.Repeat([]byte{byte(w.token), byte(w.token >> 8)}, n/2+1)[:n]
	switch err := w.s.Enqueue(&m); err {
	case nil:
		w.policies[m.Token], w.sizes[m.Token] = m, n
	case ErrSendBufferFull:
	default:
		w.t.Errorf("Enqueue: %v", err)
	}
}

func (w *extensionsWorld) rangeMS(n int) (d time.Duration) { return time.Duration(w.r.IntN(n)) * 1e6 }

// advance lets the next timer expire.
func (w *extensionsWorld) advance() {
	at := w.s.NextTimeout()
	if at == rawio.Never {
		return
	}
	w.now = max(w.now, at)
	w.s.HandleTimeout(w.now)
	for w.s.HasMoreWork() {
		w.s.ContinueWork(w.now)
	}
	w.expire()
}

func (w *extensionsWorld) expire() {
	for _, f := range w.s.Expire(w.now) {
		w.fail(f)
	}
}

// hear takes what is reported.
func (w *extensionsWorld) hear() {
	w.expire()
	for _, f := range w.s.TakeAbandoned() {
		w.fail(f)
	}
	for _, token := range w.acked {
		m, ok := w.policies[token]
		if !ok {
			w.t.Errorf("message %d is acknowledged, and was heard of before", token)
		}
		_ = m
		delete(w.policies, token)
		if w.arrived[token] < w.sizes[token] {
			w.t.Errorf("message %d is acknowledged: %d of %d octets have arrived", token, w.arrived[token],
				w.sizes[token])
		}
	}
	w.acked = w.acked[:0]
}

func (w *extensionsWorld) fail(f FailedMessage) {
	m, ok := w.policies[f.Token]
	switch {
	case !ok:
		w.t.Errorf("message %d has failed, and was heard of before", f.Token)
	case m.Policy == AbandonNever:
		w.t.Errorf("message %d has failed, which has no policy", f.Token)
	case m.Policy == AbandonExpired && w.now.Before(m.Expires):
		w.t.Errorf("message %d has failed before its time", f.Token)
	}
	delete(w.policies, f.Token)
}

// exchange sends what may be sent. What is not lost arrives at once, and is acknowledged, if the
// SACK is not lost.
func (w *extensionsWorld) exchange() {
	w.expire()
	packets := w.sendPackets()
	if packets == "" {
		return
	}
	came := false
	for _, p := range w.b.Pkts {
		if w.r.IntN(100) < w.loss {
			continue
		}
		came = true
		pkt := must.Get(wire.ParsePacket(slices.Concat(p.Vec...)))(w.t)
		it := pkt.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			w.take(c)
		}
	}
	if !came || w.r.IntN(100) < w.loss {
		return
	}
	w.handleSack(w.makePeersSack())
}

// take is the peer that gets a chunk.
func (w *extensionsWorld) take(c wire.Chunk) {
	switch c.Type() {
	case wire.ChunkData:
		d := must.Get(wire.AsData(c))(w.t)
		w.takeData(d.TSN(), d.Payload())
	case wire.ChunkIData:
		d := must.Get(wire.AsIData(c))(w.t)
		w.takeData(d.TSN(), d.Payload())
	case wire.ChunkForwardTSN:
		w.skipTo(must.Get(wire.AsForwardTSN(c))(w.t).NewCumTSN())
	case wire.ChunkIForwardTSN:
		w.skipTo(must.Get(wire.AsIForwardTSN(c))(w.t).NewCumTSN())
	}
}

func (w *extensionsWorld) takeData(t wire.TSN, payload []byte) {
	if t.LessEq(w.cum) || w.received[t] {
		return
	}
	w.received[t] = true
	token := uint64(w.s.outstanding.recordOf(t).token)
	if w.s.outstanding.recordOf(t).state == stateAbandoned {
		return
	}
	w.arrived[token] += len(payload)
	w.moveCum()
}

func (w *extensionsWorld) moveCum() {
	for w.received[w.cum+1] {
		delete(w.received, w.cum+1)
		w.cum++
	}
}

// skipTo is the peer that gets a FORWARD TSN.
func (w *extensionsWorld) skipTo(to wire.TSN) {
	for w.cum.Less(to) {
		if t := w.cum + 1; !w.received[t] && w.s.outstanding.recordOf(t).state != stateAbandoned {
			w.t.Errorf("FORWARD TSN %d skips TSN %d, which is %v", to, t, w.s.outstanding.recordOf(t).state)
		}
		delete(w.received, w.cum+1)
		w.cum++
	}
	w.moveCum()
}

func (w *extensionsWorld) makePeersSack() wire.Sack {
	var tsns []wire.TSN
	for t := range w.received {
		tsns = append(tsns, t)
	}
	slices.SortFunc(tsns, func(a, b wire.TSN) int { return int(int32(a - b)) })
	var gaps []wire.GapBlock
	for _, t := range tsns {
		at := uint16(t - w.cum)
		if n := len(gaps); n > 0 && gaps[n-1].End == at-1 {
			gaps[n-1].End = at
		} else {
			gaps = append(gaps, wire.GapBlock{Start: at, End: at})
		}
	}
	if w.r.IntN(50) == 0 { // it takes back what it has not delivered
		for _, t := range tsns {
			delete(w.received, t)
		}
		gaps = nil
	}
	return makeSack(w.cum, 1<<20, gaps...)
}
