// Package reconfig is stream reconfiguration (RFC 6525) of one association, as a state machine
// without timers, packets or a clock.
//
//   - In: the user's requests ([Machine.StartInTurn]), RE-CONFIG chunks of the peer, and time.
//   - Out: RE-CONFIG chunks, and calls of a [Host], which is the association: its streams are held,
//     reset and added.
//   - Invariant: one own request is in flight at most, and of the peer's requests the last chunk is
//     remembered, so that nothing is performed twice. What the peer makes it keep is bounded by one
//     packet.
//   - Read first: machine.go, then own.go and peer.go.
package reconfig
