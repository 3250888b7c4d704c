package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// A snapshot has each stream that ordered messages have used, however many there are and however
// far apart, and what waits there for the message before.
func TestSnapshotHasEachStream(t *testing.T) {
	p := newPair(t)
	wide := &Config{OutStreams: 5000, InStreams: 5000, SendBuffer: 1 << 20}
	c, s := p.connect(t, wide, wide)
	want := map[uint16]uint16{4999: 2}
	for id := uint16(0); id < 3000; id += 2 {
		want[id] = 1
	}
	for id, n := range want {
		for range n {
			must.Get(c.WriteMsg([]byte("x"), SendInfo{Stream: id}))(t)
		}
	}
	must.Get(c.WriteMsg([]byte("x"), SendInfo{Stream: 1, Unordered: true}))(t)
	for range len(want) + 2 {
		readOne(t, s)
	}
	for side, tr := range map[string]*Transport{"sender": p.a, "receiver": p.b} {
		list := tr.Snapshot()
		must.Equal(t, "associations", len(list), 1)
		check.Equal(t, side+": streams", len(list[0].Streams), len(want))
		last := -1
		for _, st := range list[0].Streams {
			in, out := st.NextIn, st.NextOut
			if side == "sender" {
				in, out = out, in
			}
			must.That(t, in == want[st.ID] && out == 0 && int(st.ID) > last, "%s: %+v after stream %d", side, st, last)
			last = int(st.ID)
		}
		check.Equal(t, side+": paths", list[0].Paths[0].Remote.IsValid(), true)
	}
}

// A snapshot begins with the oldest association.
func TestSnapshotIsByAge(t *testing.T) {
	p := newPair(t)
	var want, got []uint16
	for range 8 {
		c, _ := p.connect(t, nil, nil)
		want = append(want, c.LocalAddr().(Addr).Port())
	}
	for _, s := range p.a.Snapshot() {
		got = append(got, s.LocalPort)
	}
	check.Slice(t, "own ports", got, want)
}

// What comes while somebody looks is not left lying.
func TestPeekLeavesNothingBehind(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	s.peekAssoc(func(*assoc.Assoc) {
		must.Get(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		until(t, "a packet waits", func() bool { return s.backlog.count.Load() > 0 })
	})
	check.Equal(t, "packets that wait", s.backlog.count.Load(), 0)
	readOne(t, s)
}
