// Package rdma holds the fuzz target of QPs over TCP: octets of a hostile peer go to a connection
// of package rdma, raw or as FPDUs whose CRCs are right.
//
//   - In: which end the peer plays, how MPA is set up, and the octets.
//   - Out: nothing; a panic, memory that has changed outside of what is registered, or a goroutine
//     that does not end.
//   - Invariant: time is that of the bubble, so what waits for ever is found at once.
//   - Read first: connection_test.go.
package rdma
