package tx_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/race"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/internal/tx/model"
)

// A peer that lies is sent no more than an honest one gets over a road without loss, its octets open no more window than they would there, and no more than twice
// as many go again as go. A lie that would be found out is not where it yields next to nothing.
func TestPeerThatLiesGainsNothing(t *testing.T) {
	race.Alone(t)
	const lasts = 8 * time.Second
	for _, control := range []cc.Factory{cc.NewReno, cc.NewCubic, cc.NewBBR} {
		road := model.Road{Rate: 1_250_000, Trip: 40 * time.Millisecond, Control: control, Peer: model.Honest}
		most := road.Carry(t, 1, lasts)
		most.Sent = max(most.Sent, int(road.Rate*int64(lasts/time.Second))) // what is measured may be a little less than the line
		road.Queue = int(road.Rate / 25)
		for _, l := range model.Lies() {
			road.Peer = l.Peer
			got := road.Carry(t, 2, lasts)
			var lie *tx.UnsentTSNError
			check.That(t, got.Sent <= most.Sent && got.Sent >= most.Sent/40 && got.Beyond <= 0 && got.Again <= 2*(got.Sent-got.Again)+32<<10 && (errors.As(got.Err, &lie) == l.Found || got.Sent <= most.Sent/20),
				"%s: %+v, an honest peer %+v", l.Name, got, most)
		}
	}
}
