package sched_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/sched"
)

// sendInTurn has streams send messages of one chunk for as long as they have some, and returns the
// streams in the order of their chunks.
func sendInTurn(s sched.Scheduler, messages map[uint16]int, octets func(uint16) int, most int) string {
	var order []string
	for stream := range uint16(10) {
		if messages[stream] > 0 {
			s.Activate(stream)
		}
	}
	left := 0
	for _, n := range messages {
		left += n
	}
	for ; left > 0 && len(order) < most; left-- {
		id, ok := s.Next(false)
		if again, _ := s.Next(false); !ok || again != id {
			return fmt.Sprintf("%v, then %d and %d without Sent", order, id, again)
		}
		order = append(order, fmt.Sprint(id))
		s.Sent(id, octets(id), true)
		if messages[id]--; messages[id] == 0 {
			s.Deactivate(id)
		}
	}
	return strings.Join(order, " ")
}

func TestStreamsSendInTheOrderOfTheScheduler(t *testing.T) {
	// req 8260-3-1
	// req 8260-3-2
	// req 8260-3-4
	// req 8260-3-5
	same := func(uint16) int { return 100 }
	for _, c := range []struct {
		name      string
		scheduler sched.Scheduler
		values    map[uint16]uint16
		octets    func(uint16) int
		most      int
		want      string
	}{
		{"round robin", sched.RoundRobin(), nil, same, 100, "1 2 3 1 2 3 1 3 3"},
		{"round robin per packet", sched.RoundRobinPerPacket(), nil, same, 100, "1 2 3 1 2 3 1 3 3"},
		{"no priority is all of one rank", sched.Priority(), nil, same, 100, "1 2 3 1 2 3 1 3 3"},
		{"a higher value is less important", sched.Priority(), map[uint16]uint16{1: 7}, same, 100, "2 3 2 3 3 3 1 1 1"},
		{"three ranks", sched.Priority(), map[uint16]uint16{1: 2, 3: 1}, same, 100, "2 2 3 3 3 3 1 1 1"},
		{"fair by octets", sched.FairCapacity(), nil, func(id uint16) int { return 100 * int(id) }, 7, "1 2 3 1 2 1 3"},
		{"fair ignores weights", sched.FairCapacity(), map[uint16]uint16{1: 9}, same, 100, "1 2 3 1 2 3 1 3 3"},
		{"weights", sched.WeightedFairQueueing(), map[uint16]uint16{3: 2}, same, 8, "1 2 3 3 1 2 3 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for id, v := range c.values {
				c.scheduler.SetValue(id, v)
			}
			messages := map[uint16]int{1: 3, 2: 2, 3: 4}
			if strings.HasPrefix(c.name, "fair by") {
				messages[1] = 100
			}
			check.Equal(t, "order", sendInTurn(c.scheduler, messages, c.octets, c.most), c.want)
		})
	}
}

func TestPacketHasChunksOfOneStream(t *testing.T) {
	// req 8260-3-3
	s := sched.RoundRobinPerPacket()
	s.Activate(1)
	s.Activate(2)
	for _, want := range []uint16{1, 2, 1} {
		id, ok := s.Next(false)
		if id != want || !ok {
			t.Fatalf("a packet begins with stream %d, %v; want %d", id, ok, want)
		}
		s.Sent(id, 10, true)
		if again, ok := s.Next(true); again != want || !ok {
			t.Fatalf("the packet goes on with stream %d, %v; want %d", again, ok, want)
		}
		s.Sent(id, 10, true)
	}
	s.Deactivate(1)
	if id, ok := s.Next(true); ok {
		t.Errorf("the packet of a stream that is empty goes on with stream %d", id)
	}
	if id, ok := s.Next(false); id != 2 || !ok {
		t.Errorf("the next packet begins with stream %d, %v", id, ok)
	}
}

func TestPriorityChangesWhileAStreamIsActive(t *testing.T) {
	// req 8260-3-4
	s := sched.Priority()
	s.Activate(1)
	s.Activate(2)
	for _, c := range []struct{ stream, value, want uint16 }{{1, 5, 2}, {2, 6, 1}, {2, 0, 2}, {1, 0, 2}, {2, 1, 1}} {
		s.SetValue(c.stream, c.value)
		if id, _ := s.Next(false); id != c.want {
			t.Errorf("stream %d has value %d: stream %d is next, want %d", c.stream, c.value, id, c.want)
		}
	}
	s.SetValue(3, 9) // it is not active, and so is never next
	s.Deactivate(1)
	s.Deactivate(2)
	s.Activate(3)
	if id, _ := s.Next(false); id != 3 {
		t.Errorf("stream %d is next, and only 3 is active", id)
	}
}

func TestWeightsShareTheOctets(t *testing.T) {
	// req 8260-3-5
	s := sched.WeightedFairQueueing()
	sent := map[uint16]int{}
	for id, w := range map[uint16]uint16{1: 0, 2: 3, 3: 16} {
		s.SetValue(id, w)
	}
	for id := uint16(1); id <= 3; id++ {
		s.Activate(id)
	}
	size := map[uint16]int{1: 1400, 2: 90, 3: 700}
	for range 20000 {
		id, _ := s.Next(false)
		sent[id] += size[id]
		s.Sent(id, size[id], true)
	}
	for id, weight := range map[uint16]float64{2: 3, 3: 16} {
		if got := float64(sent[id]) / float64(sent[1]); got < 0.99*weight || got > 1.01*weight {
			t.Errorf("a stream of weight %v got %.2f octets for each of weight 1", weight, got)
		}
	}
}

// A stream that was silent does not catch up, and one that stops for a moment gains nothing.
func TestSilenceSavesNothingUp(t *testing.T) {
	s := sched.FairCapacity()
	s.Activate(1)
	for range 1000 {
		s.Sent(1, 1000, true)
	}
	s.Activate(2)
	sent := map[uint16]int{}
	for range 100 {
		id, _ := s.Next(false)
		sent[id]++
		s.Sent(id, 1000, true)
		if id == 1 { // it has nothing more for a moment
			s.Deactivate(1)
			s.Activate(1)
		}
	}
	check.Equal(t, "turns of stream 2 in a hundred", sent[2], 50)
}

// When all streams have been silent, nobody is ahead of others, and each has the weight that it
// had.
func TestAfterASilenceAllBeginAnew(t *testing.T) {
	for name, row := range map[string]struct {
		s    sched.Scheduler
		want string
	}{
		"fair":     {sched.FairCapacity(), "1 2 1 2 1 2"},
		"weighted": {sched.WeightedFairQueueing(), "1 2 2 1 2 2"},
	} {
		for _, others := range []uint16{0, 200} { // which are forgotten
			row.s.SetValue(2, 2)
			for id := range others {
				row.s.Activate(1000 + id)
			}
			for id := range others {
				row.s.Sent(1000+id, 10, true)
				row.s.Deactivate(1000 + id)
			}
			row.s.Activate(1)
			for range 100 {
				row.s.Sent(1, 1000, true)
			}
			row.s.Deactivate(1)
			got := sendInTurn(row.s, map[uint16]int{1: 50, 2: 50}, func(uint16) int { return 1000 }, 6)
			check.Equal(t, name, got, row.want)
			row.s.Deactivate(1)
			row.s.Deactivate(2)
		}
	}
	s := sched.WeightedFairQueueing() // a weight is changed, and taken back, at any time
	s.SetValue(2, 3)
	s.Activate(1)
	s.Activate(2)
	for _, row := range []struct {
		value uint16
		want  string
	}{{2, "1 2 2 1 2 2"}, {1, "1 2 1 2"}, {3, "1 2 2 2"}, {0, "1 2 1 2"}} {
		s.SetValue(2, row.value)
		s.Deactivate(1)
		s.Deactivate(2)
		s.Activate(1)
		s.Activate(2)
		var order []string
		for range len(row.want)/2 + 1 {
			id, _ := s.Next(false)
			order = append(order, fmt.Sprint(id))
			s.Sent(id, 1000, true)
		}
		check.Equal(t, fmt.Sprint("weight ", row.value), strings.Join(order, " "), row.want)
	}
}

func TestManyStreamsInEveryScheduler(t *testing.T) {
	for name, s := range map[string]sched.Scheduler{"round robin": sched.RoundRobin(),
		"per packet": sched.RoundRobinPerPacket(), "priority": sched.Priority(), "fair": sched.FairCapacity(),
		"weighted": sched.WeightedFairQueueing()} {
		t.Run(name, func(t *testing.T) {
			const streams = 1000
			for id := range uint16(streams) {
				s.SetValue(id, id%3)
				s.Activate(id)
			}
			for range streams {
				id, ok := s.Next(false)
				if !ok {
					t.Fatal("there is a stream, and none is next")
				}
				s.Sent(id, 10, true)
				s.Deactivate(id)
			}
			s.Activate(7)
			if id, ok := s.Next(false); id != 7 || !ok {
				t.Errorf("stream %d is next, %v; only 7 is active", id, ok)
			}
			allocs := testing.AllocsPerRun(100, func() { s.Next(false); s.Sent(7, 10, true) })
			check.Equal(t, "allocations of a chunk", allocs, 0)
		})
	}
}
