package tx_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/internal/tx/model"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A peer that lies is sent no more than an honest one gets over a road without loss, its octets
// open no more window than they would there, and no more than twice as many go again as go. A lie
// that would be found out is not where it yields next to nothing.
func TestPeerThatLiesGainsNothing(t *testing.T) {
	race.Alone(t)
	const lasts = 8 * time.Second
	for _, control := range []cc.Factory{cc.NewReno, cc.NewCubic, cc.NewBBR} {
		road := model.Bottleneck{Rate: 1_250_000, Trip: 40 * time.Millisecond, Control: control, Peer: model.HonestPeer}
		most := road.Transfer(t, 1, lasts)
		// what is measured may be a little less than the line
		most.SentOctets = max(most.SentOctets, int(road.Rate*int64(lasts/time.Second)))
		road.QueueOctets = int(road.Rate / 25)
		for _, l := range model.CheatingPeers() {
			road.Peer = l.Peer
			got := road.Transfer(t, 2, lasts)
			var lie *tx.UnsentTSNError
			check.That(t, got.SentOctets <= most.SentOctets && got.SentOctets >= most.SentOctets/40 &&
				got.CwndExcess <= 0 && got.ResentOctets <= 2*(got.SentOctets-got.ResentOctets)+32<<10 &&
				(errors.As(got.Err, &lie) == l.Detected || got.SentOctets <= most.SentOctets/20),
				"%s: %+v, an honest peer %+v", l.Name, got, most)
		}
	}
}

// narrowWindows are those of receivers that have room for few packets of 1448 octets of user data,
// and the messages that are sent.
var narrowWindows = []struct {
	name            string
	window, message int
	finds           bool // two packets are in flight, so that one is found to be missing
	then            int  // the window after a second, if it is another
}{
	{"one octet", 1, 1, false, 0},
	{"less than a packet", 700, 100, true, 0},
	{"one packet", 1440, 0, false, 0},
	{"one packet and a half", 2160, 0, false, 0},
	{"two packets", 2880, 0, true, 0},
	{"three packets", 4320, 0, true, 0},
	{"what was never found out", 8400, 0, true, 0},
	{"ten packets", 14400, 0, true, 0},
	{"short messages", 8400, 60, true, 0},
	{"shrinks to two packets", 1 << 16, 0, true, 2880},
	{"shrinks to one", 1 << 16, 0, false, 1440},
}

// A peer with a narrow window that acknowledges all that was sent as if it had come is sent one
// window in each round trip that it has proved, and is found out as soon as one is held back that
// others follow on. One that is honest loses nothing that shows.
func TestNarrowWindowBuysNoMoreThanOneInAProvedTrip(t *testing.T) {
	race.Alone(t)
	all := model.CheatingPeers()[0]
	const trip = 40 * time.Millisecond
	for _, control := range []cc.Factory{cc.NewReno, cc.NewCubic, cc.NewBBR} {
		for _, w := range narrowWindows {
			road := model.Bottleneck{Rate: 12_500_000, Trip: trip, Control: control, Peer: all.Peer, Message: w.message,
				Window: func(now rawio.Time) int {
					if w.then > 0 && now >= rawio.Time(time.Second) {
						return w.then
					}
					return w.window
				}}
			lasts := 100 * time.Second
			if w.then > 0 {
				road.Peer = func(x *model.PeerView, came []wire.TSN) {
					if x.Ticks < 1100 {
						model.HonestPeer(x, came)
					} else {
						all.Peer(x, came)
					}
				}
			}
			got := road.Transfer(t, 3, lasts)
			var lie *tx.UnsentTSNError
			found := errors.As(got.Err, &lie)
			check.Equal(t, w.name+": found out", found, w.finds)
			if w.then == 0 {
				most := w.window * int(1+time.Duration(got.EndAt)/trip)
				check.That(t, got.Data <= most, "%s: %d octets in %v, where a window in each round trip is %d",
					w.name, got.Data, time.Duration(got.EndAt), most)
				check.That(t, !found || got.Packets <= 2048, "%s: found out behind %d packets", w.name, got.Packets)
			}
			if testing.Short() && w.window > 3000 {
				continue
			}
			road.Peer = model.HonestPeer
			tried := road.Transfer(t, 3, lasts)
			road.TrustsPeer = true
			trusted := road.Transfer(t, 3, lasts)
			check.That(t, tried.Err == nil && tried.Data >= trusted.Data*98/100,
				"%s: an honest peer is sent %d octets, and %d where it is not tried: %v", w.name, tried.Data,
				trusted.Data, tried.Err)
		}
	}
}
