// Package ddp is Direct Data Placement, RFC 5041. It cuts messages into segments that fit the lower
// layer. It places the payload of arriving segments straight into the memory that they name.
//
// The package is sans-IO: it opens no socket, reads no clock, starts no goroutine and takes no
// lock. A [Stream] is one DDP Stream and has one caller at a time. Streams share the STag [Table]
// and its [Region] values, which are safe for concurrent use as their comments say.
//
// In: placement and delivery are apart (section 5.3). [Stream.Place] is called when a segment
// arrives, in any order. It makes the checks of section 7.1, and one copy from the packet into a
// tagged [Region] or an untagged [RecvBuffer]. [Stream.Deliver] is called in the sender's order and
// reports whole messages and errors to the [ULP].
//
// Out: the lower layer pulls. [Stream.NextSegment] cuts the next segment, at most MULPDU octets,
// when it can be sent. The segment refers to the user's memory; [Stream.Acked] completes messages.
// Nothing is queued below this package, and no payload is copied.
package ddp
