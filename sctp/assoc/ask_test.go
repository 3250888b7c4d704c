package assoc_test

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What a program may ask of the peer about streams, in the order in which it asks.

func resetStreams(a *assoc.Assoc, now rawio.Time, out, in bool, list []wire.StreamID) error {
	_, err := a.StartInTurn(now, assoc.StreamRequest{ResetOut: out, ResetIn: in, Streams: list})
	return err
}

func resetTSNs(a *assoc.Assoc, now rawio.Time) error {
	_, err := a.StartInTurn(now, assoc.StreamRequest{ResetTSNs: true})
	return err
}

func addStreams(a *assoc.Assoc, now rawio.Time, out, in int) error {
	_, err := a.StartInTurn(now, assoc.StreamRequest{AddOut: out, AddIn: in})
	return err
}
