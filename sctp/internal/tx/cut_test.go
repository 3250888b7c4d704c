package tx

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// senderPair are two Senders that are given the same: by the one each packet is made by itself, by
// the other many in a run.
type senderPair struct {
	*testing.T
	ends       [2]*randomSource
	size       int                 // user data of a full chunk
	body       []byte              // what all user data is of
	sentBefore map[wire.TSN]string // the chunks that the other has sent
	runs       int                 // packets that were made in one
}

func newSenderPair(t *testing.T, seed uint64) *senderPair {
	r := rand.New(rand.NewPCG(seed, 2))
	c := &senderPair{T: t, body: make([]byte, 1<<19), sentBefore: map[wire.TSN]string{}}
	for i := range c.body {
		c.body[i] = byte(r.Uint32())
	}
	paths, burst, packets := 1+r.IntN(2), []int{0, 0, 4, 40}[r.IntN(4)], []int{1000, 1000, 2 + r.IntN(20)}[r.IntN(3)]
	less, mtu, cwnd := max(r.IntN(8)-4, 0), []int{labMTU, labMTU, labMTU, 20_000}[r.IntN(4)],
		[]int{0, 1 << 20, r.IntN(40) * counted}[r.IntN(3)]
	for i := range c.ends {
		l := newLab(t, paths)
		l.noFillMore, l.b = i == 0, pack.NewBatch(packets)
		for _, p := range l.s.Paths() {
			if p.SetMTU(mtu); mtu > labMTU {
				p.cc = newFixedWindow(1 << 20)
			} else if cwnd > 0 {
				p.cc = newFixedWindow(cwnd)
			}
		}
		c.ends[i], c.size = &randomSource{senderLab: l}, l.s.MaxPayload()-less
		l.s.Reconfigure(1<<20, burst, false, false, c.size)
	}
	return c
}

// describeOctets tells pieces of octets by their beginning, their length and their checksum,
// wherever one ends.
func describeOctets(pieces ...[]byte) string {
	b := slices.Concat(pieces...)
	return fmt.Sprintf("%x of %d, %08x", b[:min(len(b), 28)], len(b), crc32.ChecksumIEEE(b))
}

// randomMessage is one of any length, in one piece or two, with a head or none.
func (c *senderPair) randomMessage(r *rand.Rand, token uint64) (m Message) {
	m = Message{Stream: wire.StreamID(r.IntN(4)), PPID: r.Uint32(), Unordered: r.IntN(2) == 0,
		SackNow: r.IntN(4) == 0, NoBundle: r.IntN(8) == 0, Token: token}
	if r.IntN(2) == 0 {
		m.HeadLen = uint8(1 + r.IntN(HeadCap))
		copy(m.Head[:m.HeadLen], c.body[r.IntN(1000):])
	}
	n := c.size*r.IntN(min(40, len(c.body)/2/c.size)) + []int{-1, 0, 1, r.IntN(c.size)}[r.IntN(4)] - r.IntN(2)*int(
		m.HeadLen)
	n = max(n, 1)
	b := c.body[r.IntN(len(c.body)/4):][:n]
	cut := []int{n, 0, r.IntN(n), max(r.IntN(n)/c.size*c.size-int(m.HeadLen), 0), n - 1}[r.IntN(5)]
	m.Body = [2][]byte{b[:cut], b[cut:]}
	if r.IntN(6) == 0 {
		m.Path = uint8(r.IntN(len(c.ends[0].s.Paths()) + 1))
	}
	return m
}

// step does one of the things that may happen to a Sender; the same to each of two for the same r.
func (c *senderPair) step(k *randomSource, r *rand.Rand, token uint64) {
	k.now += rawio.Time(r.IntN(5)) * ms
	s := k.s
	switch what := r.IntN(16); what {
	case 0, 1, 2, 3:
		for range 1 + r.IntN(3) {
			m := c.randomMessage(r, token)
			if err := s.Enqueue(&m); err != ErrSendBufferFull {
				must.OK(c, err)
			}
		}
	case 4:
		s.SetSackNow(r.IntN(8) == 0)
	case 5:
		k.now += second
		s.HandleTimeout(k.now)
	case 6: // the packets of full chunks are long, or just not
		for _, p := range s.Paths() {
			p.BasePMTU = r.IntN(2) * (wire.CommonHeaderLen + wire.DataHeaderLen + wire.PaddedLen(c.size) - r.IntN(2))
		}
	case 7:
		if p := s.Paths()[len(s.Paths())-1]; len(s.Paths()) > 1 {
			p.State = Active + PathState(r.IntN(2))
		}
	case 8:
		s.SetECN(r.IntN(2) == 0)
	case 9: // the window closes for a while
		k.sack(r, uint32(r.IntN(20*c.size)))
	default:
		k.sack(r, 1<<20)
	}
}

// transmitted returns what a Sender transmits, and looks at what goes again: it is what went
// before.
func (c *senderPair) transmitted(k *randomSource) (told []string) {
	for _, p := range k.transmit() {
		told = append(told, fmt.Sprintf("%v %v %v %v", p.Remote, p.ECN, p.Fragment, describeOctets(p.Vec...)))
		if k.noFillMore {
			continue
		}
		if len(p.Vec) == 2 && len(p.Vec[1]) == c.size && cap(p.Vec[1]) == c.size {
			c.runs++
		}
		for _, d := range chunks(c.T, p) {
			is := fmt.Sprint(d.Flags()&^wire.FlagI, d.Stream(), d.SSN(), d.PPID(), describeOctets(d.Payload()))
			if was, ok := c.sentBefore[d.TSN()]; ok {
				must.That(c, was == is, "TSN %d goes again as\n%s\nand was\n%s", d.TSN(), is, was)
			}
			c.sentBefore[d.TSN()] = is
		}
	}
	return told
}

// outstandingRecords is what a Sender knows of what is outstanding, wherever the user's memory was
// cut.
func outstandingRecords(s *Sender) (told []string) {
	for t := s.outstanding.firstUnacked; t != s.outstanding.nextTSN; t++ {
		r := *s.outstanding.recordOf(t)
		data := describeOctets(r.head[:r.headLen()], r.body[0], r.body[1])
		r.body, r.head = [2][]byte{}, [HeadCap]byte{}
		told = append(told, fmt.Sprintf("%+v %v", r, data))
	}
	if l := &s.queue.current; l.loaded && l.offset > 0 {
		told = append(told, fmt.Sprint(l.fromQueue, l.offset, l.ssn))
	}
	return append(told, fmt.Sprint(s.Queued(), s.queue.bufferedOctets))
}

// Chunks from the midst of a long message that go in a run are those that go one by one, and so is
// what becomes of them.
func TestLongMessagesAreCutInRunsAsOneByOne(t *testing.T) {
	seeds, runs, made := 120, 0, 0
	if testing.Short() || race.Enabled {
		seeds /= 6
	}
	for seed := range uint64(seeds) {
		c := newSenderPair(t, seed)
		rands := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))}
		for step := range 60 {
			var wrote [2][]string
			for i, k := range c.ends {
				c.step(k, rands[i], uint64(step))
				wrote[i] = c.transmitted(k)
				err := k.s.Audit()
				must.That(t, err == nil, "seed %d, step %d: %v", seed, step, err)
			}
			one, many := c.ends[0], c.ends[1]
			at := fmt.Sprintf("seed %d, step %d: ", seed, step)
			must.Slice(t, at+"packets", wrote[1], wrote[0])
			must.Slice(t, at+"records", outstandingRecords(many.s), outstandingRecords(one.s))
			must.Slice(t, at+"acknowledged", many.acked, one.acked)
			must.Equal(t, at+"streams", streamChains(many.s), streamChains(one.s))
			must.Equal(t, at+"the Sender", many.s.DumpState(), one.s.DumpState())
			made += len(wrote[1])
		}
		runs += c.runs
	}
	check.That(t, runs >= made/4 && made >= 100*seeds, "%d packets were made, %d of them in runs", made, runs)
}

// A run has what lies together between the first chunk of a message and the last, as far as there
// is room.
func TestHowManyChunksOfALongMessageARunHas(t *testing.T) {
	queued := currentMessage{fromQueue: true, loaded: true}
	for _, row := range []struct {
		name          string
		head          int
		first, second int
		off, size, n  int
		packets, want int
		slot          currentMessage
	}{
		{"the last chunk is full", 0, 10 * full, 0, full, full, 100, 100, 8, queued},
		{"the last chunk is of one octet", 0, 10*full + 1, 0, full, full, 100, 100, 9, queued},
		{"no more are asked for", 0, 10 * full, 0, full, full, 3, 100, 3, queued},
		{"two are asked for", 0, 10 * full, 0, full, full, 2, 100, 2, queued},
		{"one is asked for", 0, 10 * full, 0, full, full, 1, 100, 0, queued},
		{"two are left", 0, 10 * full, 0, 7 * full, full, 100, 100, 2, queued},
		{"one is left", 0, 10 * full, 0, 8 * full, full, 100, 100, 0, queued},
		{"the last is left", 0, 10 * full, 0, 9 * full, full, 100, 100, 0, queued},
		{"the batch takes three", 0, 10 * full, 0, full, full, 100, 4, 3, queued},
		{"the batch takes one", 0, 10 * full, 0, full, full, 100, 2, 0, queued},
		{"the message begins", 0, 10 * full, 0, 0, full, 100, 100, 0, queued},
		{"the message begins with a head", 20, 10 * full, 0, 0, full, 100, 100, 0, queued},
		{"within a head", 20, 200, 0, 12, 12, 100, 100, 0, queued},
		{"just behind a head", 20, 200, 0, 20, 20, 100, 100, 9, queued},
		{"it is of the Source", 0, 10 * full, 0, full, full, 100, 100, 0, currentMessage{loaded: true}},
		{"they are padded", 0, 10 * full, 0, full - 3, full - 3, 100, 100, 0, queued},
		{"a head", HeadCap, 10 * full, 0, full, full, 100, 100, 9, queued},
		{"up to the second piece", 0, 5 * full, 5 * full, full, full, 100, 100, 4, queued},
		{"up to the chunk of both pieces", 0, 5*full + 7, 5*full - 7, full, full, 100, 100, 4, queued},
		{"the chunk of both pieces", 0, 5*full + 7, 5*full - 7, 5 * full, full, 100, 100, 0, queued},
		{"behind the chunk of both pieces", 0, 5*full + 7, 5*full - 7, 6 * full, full, 100, 100, 3, queued},
		{"a second piece of one octet", 0, 5 * full, 1, full, full, 100, 100, 4, queued},
		{"the second piece begins", 0, 5 * full, 5 * full, 5 * full, full, 100, 100, 4, queued},
		{"the second piece begins, with a head", 8, 5*full - 8, 5 * full, 5 * full, full, 100, 100, 4, queued},
		{"there is but a second piece", 0, 0, 10 * full, full, full, 100, 100, 8, queued},
		{"the second piece has one octet more", 0, 0, 10*full + 1, full, full, 100, 100, 9, queued},
	} {
		l := newLab(t, 1)
		p, b := l.pathAt(0), pack.NewBatch(row.packets)
		b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		b.End()
		row.slot.offset = row.off
		row.slot.msg = Message{HeadLen: uint8(row.head),
			Body: [2][]byte{make([]byte, row.first), make([]byte, row.second)}}
		l.s.queue.current = row.slot
		n := l.s.sendMessageRun(0, b, p, row.size, row.n)
		check.That(t, n == row.want && len(b.Pkts) == 1+n && l.s.queue.current.offset == row.off+n*row.size &&
			int(l.s.NextTSN()) == 1+n,
			"%s: a run of %d, want %d; there are %d packets, %d octets are sent, TSN %d is next", row.name, n,
			row.want, len(b.Pkts), l.s.queue.current.offset, l.s.NextTSN())
	}
}
