// Package ddp is Direct Data Placement (RFC 5041), over any lower layer. It is sans-IO.
//
//   - In: [Stream.Place] takes a segment as it arrives, in any order. It makes the checks of
//     section 7.1, and the one copy from the packet into a tagged [Region] or an untagged
//     [RecvBuffer]. [Stream.Deliver], in the sender's order, reports whole messages and errors to
//     the [ULP].
//   - Out: [Stream.NextSegment] cuts the next segment when it can be sent. It refers to the user's
//     memory; [Stream.Acked] completes messages.
//   - Invariant: no octet is written but where an STag or a posted buffer allows, and none once
//     [Region.Invalidate] has returned.
//   - Read first: place.go, region.go. A Stream has one caller at a time, the [Table] has many.
package ddp
