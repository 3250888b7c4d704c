// Package mem joins two links inside one process. It needs no privilege and no operating system. It
// loses a packet only when the receiver does not keep up, like a network card.
//
// Each packet is copied once, from the sender's vector into a pooled buffer on the queue of the
// other side. UDP encapsulation ports (RFC 6951) are carried along but mean nothing here.
package mem
