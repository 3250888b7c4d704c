// Package rddplayers has layers for gopacket (github.com/google/gopacket): DDP segments and session
// control messages (RFC 5043, RFC 6581), DDP headers (RFC 5041), and RDMAP messages (RFC 5040, RFC
// 7306).
//
//   - In: packets that gopacket decodes, or one DATA chunk ([FromData], [Decode]).
//   - Out: the layers [SegmentChunk], [DDP], [RDMAP] and [Control]. All can be serialized again.
//   - Invariant: it shares no code with the stack, so that it can judge it. Reserved bits keep
//     their values.
//
// # Two ways to decode
//
// gopacket takes all that follows a DATA chunk for its payload, further chunks included. There are
// two ways around it:
//
//   - [Enable] replaces gopacket's decoder of DATA chunks, for the whole program. Packets then have
//     all their chunks. The layers of this package follow each DATA chunk of payload protocol 16
//     or 17.
//   - [FromData] decodes the message in one DATA layer of gopacket's own decoder.
//
// A DDP segment becomes the layers [SegmentChunk], [DDP], [RDMAP] and, for the user's octets,
// gopacket's Payload. A session control message becomes [Control]. All can be serialized again:
// reserved bits keep their values. Messages in several DATA chunks are not put together; [Decode]
// takes a whole one.
package rddplayers
