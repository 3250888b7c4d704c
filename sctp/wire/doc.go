// Package wire is the codec of SCTP packets: the common header, and every chunk, parameter and
// error cause of RFC 9260 and of its extensions.
//
//   - In: octets of a packet. [ParsePacket], [Packet.Chunks] and others give views over them.
//   - Out: octets. Encoders have the form AppendX(b, fields) and return the grown slice.
//   - Invariant: a view cannot leave its packet or panic, except for an index past the count that
//     it reports. Nothing is copied or allocated.
//   - Read first: packet.go, then data.go.
//
// The extensions are authentication (RFC 4895), padding (RFC 4820), partial reliability (RFC 3758),
// dynamic addresses (RFC 5061), stream re-configuration (RFC 6525), message interleaving (RFC 8260)
// and zero checksums (RFC 9653).
//
// # Reading
//
// Everything read is a view: a named []byte over the received packet with one getter for each
// field. Nothing is copied and nothing is allocated, so a view lives only as long as the packet's
// memory. [ParsePacket] checks the common header, and [Packet.Chunks] walks the chunks. A function
// such as [AsData] or [AsSack] turns a [Chunk] into the view of its type. It first checks every
// length and count that the getters rely on. So a getter of that view cannot leave the packet. It
// cannot panic except for an index past the count that the view reports.
//
// Only the form is judged here. A value may make no sense: an Initiate Tag of 0, a gap block that
// starts at 1, a DATA chunk without user data. That depends on the state of the association, and
// the RFC has an answer for each such case. So the view hands the value on as it is.
//
// # Writing
//
// Encoders have the form AppendX(b, fields) and return the grown slice. They allocate only when b
// has no room left. They write network byte order and zero padding to a multiple of 4 octets.
// Chunks that end in parameters or error causes are complete as appended. After appending
// parameters to one, [CloseChunk] writes the new chunk length:
//
//	start := len(b)
//	b = wire.AppendInit(b, wire.ChunkInit, fields)
//	b = wire.AppendAddressParam(b, addr)
//	b = wire.CloseChunk(b, start)
//
// User data is never copied. [AppendDataHeader] writes the 16 octets in front of it. The payload
// and its [Padding] are separate pieces of the vector that [Checksum] runs over.
//
// # Errors
//
// All errors are [FormatError] constants. They compare with ==, carry no memory, and their text
// says what the RFC asks the receiver to do.
package wire
