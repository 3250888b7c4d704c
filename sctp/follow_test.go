package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
)

// pollFunc is a rawio.Poller.
type pollFunc func(pkts []rawio.Packet) int

func (f pollFunc) PollBatch(pkts []rawio.Packet) int { return f(pkts) }

// What comes while packets are handled is handled with them, and in a train the next packet is waited for, as long
// as it is not late; one that comes alone is not waited for.
func TestPacketsThatFollowEachOtherAreHandledTogether(t *testing.T) {
	link := newPair(t)
	for _, tt := range []struct {
		name   string
		n      int   // packets to begin with
		train  int   // packets without a gap, those included
		octets int   // of packets that are handled
		more   []int // what each poll brings, and nothing in the end
		polls  int
	}{
		{name: "one alone", n: 1, train: 1, more: []int{1}, polls: 0},
		{name: "many, and no more", n: rxMany, polls: 1},
		{name: "many, then many, then one", n: rxMany, more: []int{rxMany, 1, 1}, polls: 2},
		{name: "a train that stops", n: 1, train: rxTrain, polls: rxPolls},
		{name: "a train with short gaps", n: 1, train: rxTrain, more: []int{0, 0, 1, 0, 1}, polls: 5 + rxPolls},
		{name: "a train that one SACK cannot answer", n: 1, train: rxTrain, octets: rxMost, more: []int{1}, polls: 0},
	} {
		polls := 0
		r := receiver{t: link.a, pkts: make([]rawio.Packet, rxBatch), train: tt.train, octets: tt.octets}
		r.poller = pollFunc(func(pkts []rawio.Packet) (n int) {
			if polls < len(tt.more) {
				n = tt.more[polls]
			}
			polls++
			r.at = link.a.now().Add(1 << 40) // no gap, however slow this machine is
			for i := range n {
				pkts[i] = rawio.Packet{Data: make([]byte, 1000)} // which nobody takes
			}
			return n
		})
		r.follow(tt.n)
		check.Equal(t, tt.name+": polls", polls, tt.polls)
	}
}

// A train is of packets that follow each other closely.
func TestTrainIsOfPacketsThatFollowCloselyOnly(t *testing.T) {
	link := newPair(t)
	r := receiver{t: link.a, pkts: make([]rawio.Packet, rxBatch)}
	one := func(at rawio.Time) int {
		r.pkts[0] = rawio.Packet{Data: make([]byte, 1000)}
		r.at = at
		r.handle(1)
		return r.train
	}
	later := link.a.now().Add(1 << 40) // no gap, however slow this machine is
	for i := range rxTrain {
		must.Equal(t, "packets of a train", one(later), i+1)
	}
	check.Equal(t, "packets of the train after a gap", one(link.a.now().Add(-rxGap-1)), 1)
}
