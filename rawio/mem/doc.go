// Package mem joins two links inside one process. It needs no privilege and no operating system.
//
//   - In, out: each packet is copied once, from the sender's vector into a pooled buffer on the
//     queue of the other side.
//   - Invariant: a packet is lost only when the receiver does not keep up, as with a network card.
//
// UDP encapsulation ports (RFC 6951) are carried along but mean nothing here.
package mem
