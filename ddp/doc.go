// Package ddp is Direct Data Placement, RFC 5041: it cuts messages into segments that fit the lower
// layer, and places the payload of arriving segments straight into the memory that they name.
//
// The package is sans-IO: it opens no socket, reads no clock, starts no goroutine and takes no
// lock. A [Stream] is one DDP Stream and is used by one caller at a time. What several streams
// share, the STag [Table] and its [Region] values, is safe for concurrent use as their comments
// say.
//
// On the way in placement and delivery are apart (section 5.3). [Stream.Place] is called when a
// segment arrives, in any order: it makes the checks of section 7.1 and one copy from the packet
// into the memory of a tagged [Region] or of an untagged [RecvBuffer]. [Stream.Deliver] is called
// in the sender's order and tells the [ULP] of whole messages and of errors.
//
// On the way out the lower layer pulls: [Stream.NextSegment] cuts the next segment of at most
// MULPDU octets at the moment it can be sent, referring to the user's memory, and [Stream.Acked]
// completes messages. Nothing is queued below this package and no payload is copied.
package ddp
