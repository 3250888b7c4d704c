// Package netconn makes a link of any connection that keeps packets apart: DTLS, an ICE connection,
// a Unix datagram socket, a WebSocket with one message a packet.
//
//   - In: what Read of a net.Conn, or ReadFrom of a net.PacketConn, returns, a packet a call.
//   - Out: a packet a Write. Each waits in a bounded queue, so a Write that blocks holds up nobody.
//   - Invariant: the connection leads to one peer (rawio.PointToPoint), and the link ends with it.
//   - Read first: [New], [Config]. Of the code: netconn.go, read.go, write.go.
//
// A link that is idle has no goroutine of its own; one writes while packets wait.
package netconn
