package tx

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

const quick = 100 * time.Microsecond

// busyLab returns a lab with n full packets in flight, TSNs 1 to n, over a path with that round
// trip.
func busyLab(t *testing.T, n int, srtt time.Duration) *senderLab {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.enqueueMany(n, full)
	must.Equal(t, "packets sent", len(l.transmit()), n)
	l.pathAt(0).rttEst.minRTT.current = srtt
	return l
}

func TestShortPacketWaitsWhileEnoughIsInFlight(t *testing.T) {
	for _, tt := range []struct {
		name     string
		inFlight int
		srtt     time.Duration
		story    func(l *senderLab)
		waits    bool
	}{
		{"four packets in flight", 5, quick, nil, true},
		{"three", 3, quick, nil, false},
		{"nothing", 0, quick, nil, false},
		{"a round trip that would be felt", 5, time.Millisecond, nil, false},
		{"a round trip not known yet", 5, 0, nil, false},
		{"NoDelay", 5, quick, func(l *senderLab) { l.s.cfg.NoDelay = true }, false},
		{"shutting down", 5, quick, func(l *senderLab) { l.s.SetSackNow(true) }, false},
		{"a message that is to go alone", 5, quick, func(l *senderLab) { l.s.queue.current.msg.NoBundle = true }, false},
		{"a message whose SACK is asked for", 5, quick, func(l *senderLab) { l.s.queue.current.msg.SackNow = true }, false},
	} {
		l := busyLab(t, tt.inFlight, tt.srtt)
		l.enqueueMany(1, 100)
		if tt.story != nil {
			tt.story(l)
		}
		n := len(l.transmit())
		check.That(t, (n == 0) == tt.waits, "%s: %d packets sent", tt.name, n)
	}
}

// What a user gives that is about to give more goes together: all of it, some of it, or after a
// moment. So does what comes while two short packets are in flight.
func TestAFewShortMessagesGoTogether(t *testing.T) {
	l := busyLab(t, 0, quick)
	l.s.Expect(true)
	l.enqueueMany(3, 100)
	l.expectTSNs("more is to come", "")
	check.Equal(t, "when it goes at the latest", l.s.NextTimeout(), l.now.Add(coalesceTimeout))
	l.s.Expect(false)
	l.expectTSNs("no more is to come", "1 2 3")
	l.s.Expect(true)
	l.enqueueMany(maxCoalesced-1, 100)
	l.expectTSNs("some", "")
	l.enqueueMany(1, 100)
	l.expectTSNs("enough", "4 5 6 7 8 9 10 11")
	l.enqueueMany(1, 100)
	l.expectTSNs("too long ago", "")
	l.now = l.s.NextTimeout()
	l.s.HandleTimeout(l.now)
	l.expectTSNs("too long ago", "12")
	l.sack(12)
	for i, want := range []string{"13", "14", ""} {
		l.now = l.now.Add(time.Microsecond)
		l.enqueueMany(1, 100)
		l.expectTSNs(fmt.Sprintf("message %d", i), want)
	}
	l.sack(13)
	l.expectTSNs("a SACK", "15")
	l.s.cfg.NoDelay = true
	l.s.Expect(true)
	l.enqueueMany(1, 100)
	l.expectTSNs("NoDelay", "16")
}

// What waits goes when a SACK comes, but for a short packet while messages keep coming; or when
// there is a train.
func TestWhatEndsTheWait(t *testing.T) {
	l := busyLab(t, 20, quick)
	l.enqueueMany(2, full)
	l.enqueueMany(1, 10)
	l.expectTSNs("less than a train", "")
	l.sack(2)
	l.expectTSNs("a SACK; a message has come before it", "21 | 22")
	l.sack(4)
	l.expectTSNs("the second SACK, and no message since the first", "23")
	l.enqueueMany(1, 10)
	l.expectTSNs("waits", "")
	l.sack(20)
	l.expectTSNs("little is in flight", "24")

	l = busyLab(t, 20, quick)
	l.enqueueMany(1, full)
	l.expectTSNs("less than a train", "")
	l.sack(2)
	l.expectTSNs("a SACK, and nothing that is short", "21")

	l = busyLab(t, 20, quick)
	l.enqueueMany(trainOctets/full, full)
	l.expectTSNs("less than a train", "")
	l.enqueueMany(1, trainOctets-trainOctets/full*full-1)
	l.expectTSNs("an octet less than a train", "")
	l.enqueueMany(1, 1)
	check.Equal(t, "packets of a train", len(l.transmit()), trainOctets/full)

	l = busyLab(t, 20, quick)
	l.enqueueMany(trainOctets/full, full)
	l.expectTSNs("less than a train", "")
	l.enqueueMany(1, full+10)
	n := len(l.transmit())
	check.That(t, n == trainOctets/full+1 && l.s.Queued() == 10,
		"of a train and a bit %d packets went, %d octets are left", n, l.s.Queued())
	l.expectTSNs("the bit waits", "")
	l.runNextTimeout()
	check.Equal(t, "packets after T3-rtx", len(l.transmit()), 1)
}

// Opportunities that let everything wait leave their packets to the one in which a train goes.
func TestMaxBurstOfOpportunitiesThatWait(t *testing.T) {
	// req 9260-6.1-11
	l := busyLab(t, 20, quick)
	l.s.cfg.MaxBurst = 4
	l.pathAt(0).SetMTU(1036) // a train is 64 packets, which are not enough
	l.enqueueMany(200, full)
	k := trainOctets / l.pathAt(0).pmdcs / 4
	for range k {
		l.expectTSNs("too few packets for a train", "")
	}
	for _, want := range []int{4 * (k + 1), 0} {
		check.Equal(t, "packets", len(l.transmit()), want)
	}
	l.sack(21)
	n := len(l.transmit())
	check.That(t, n <= 4*(1+21/2)+4, "%d packets for a SACK of 21", n)
	l = busyLab(t, 20, quick)
	l.s.cfg.MaxBurst = 4
	l.enqueueMany(1, full)
	for range 100 {
		l.expectTSNs("less than a train", "")
	}
	l.enqueueMany(200, full)
	l.s.cfg.NoDelay = true
	for _, want := range []int{4 + trainOctets/l.pathAt(0).pmdcs + 1, 4} {
		check.Equal(t, "packets", len(l.transmit()), want)
	}
}

func TestShortestTripIsForgotten(t *testing.T) {
	var s minRTTFilter
	check.Equal(t, "a trip before the first", s.get(), 0)
	for i, tt := range []struct{ trips, each, want int }{
		{1, 50, 50}, {1, 20, 20}, {minRTTWindow - 2, 90, 20}, {minRTTWindow, 60, 20}, {1, 70, 60}, {1, 10, 10},
	} {
		for range tt.trips {
			s.addSample(time.Duration(tt.each))
		}
		got := s.get()
		check.That(t, got == time.Duration(tt.want), "step %d: %d, want %d", i, got, tt.want)
	}
}

// Source is not for deferring: what it has can be sent now.
func TestSourceIsNotDeferred(t *testing.T) {
	l := busyLab(t, 5, quick)
	u := &countedSource{n: 1, size: 100}
	l.s.SetUpper(u, l)
	check.Equal(t, "packets", len(l.transmit()), 1)
}

// Messages that take several chunks anyway begin in the packet where the one before ends; others
// stay whole.
func TestLongMessagesFillPackets(t *testing.T) {
	// req 9260-6.9-5, 9260-6.10-4
	for _, tt := range []struct {
		name  string
		sizes []int
		want  string // octets of chunks
	}{
		{"long ones", []int{1500, 1500, 1500}, "968 | 532 420 | 968 | 112 840 | 660"},
		{"one that fits a packet", []int{1500, 900, 30}, "968 | 532 | 900 30"},
		{"too little room is left", []int{1888, 1500}, "968 | 920 | 968 | 532"},
		{"a short one and a long one", []int{100, 1500}, "100 852 | 648"},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(1 << 20)
		for i, n := range tt.sizes {
			must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{bytes.Repeat([]byte{byte(i)}, n)}}))
		}
		var packets []string
		got := make([]int, len(tt.sizes))
		for _, p := range l.transmit() {
			check.That(t, p.Len() <= labMTU-wire.SackLen(0, 0), "%s: a packet of %d octets has no room for a SACK",
				tt.name, p.Len())
			var sizes []string
			for _, d := range chunks(t, p) {
				body := d.Payload()
				sizes = append(sizes, fmt.Sprint(len(body)))
				i := int(d.SSN())
				check.That(t, d.B() == (got[i] == 0) && bytes.Count(body, []byte{byte(i)}) == len(body),
					"%s: message %d is mixed up at %d", tt.name, i, got[i])
				got[i] += len(body)
				check.That(t, d.E() == (got[i] == tt.sizes[i]), "%s: message %d ends at %d", tt.name, i, got[i])
			}
			packets = append(packets, strings.Join(sizes, " "))
		}
		check.Equal(t, tt.name, strings.Join(packets, " | "), tt.want)
	}
}
