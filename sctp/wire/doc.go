// Package wire is the codec of SCTP packets: the common header, every chunk, parameter and error
// cause of RFC 9260, and those of its extensions for authentication (RFC 4895), padding
// (RFC 4820), partial reliability (RFC 3758), dynamic addresses (RFC 5061), stream
// re-configuration (RFC 6525) and message interleaving (RFC 8260).
//
// # Reading
//
// Everything read is a view: a named []byte over the received packet with one getter for each
// field. Nothing is copied and nothing is allocated, so a view lives only as long as the packet's
// memory. [ParsePacket] checks the common header, [Packet.Chunks] walks the chunks, and a function
// such as [AsData] or [AsSack] turns a [Chunk] into the view of its type after it has checked every
// length and count that the getters rely on. A getter of a view that came from such a function
// cannot leave the packet, and cannot panic except for an index past the count the view reports.
//
// Only the form is judged here. Whether a value makes sense (an Initiate Tag of 0, a gap block that
// starts at 1, a DATA chunk without user data) depends on the state of the association, and each
// such case has its own answer in the RFC, so the view hands the value on as it is.
//
// # Writing
//
// Encoders have the form AppendX(b, fields) and return the grown slice; they allocate only when b
// has no room left. They write network byte order and zero padding to a multiple of 4 octets.
// Chunks that end in parameters or error causes are complete as appended; after appending
// parameters to one, [CloseChunk] writes the new chunk length:
//
//	start := len(b)
//	b = wire.AppendInit(b, wire.ChunkInit, fields)
//	b = wire.AppendAddressParam(b, addr)
//	b = wire.CloseChunk(b, start)
//
// User data is never copied: [AppendDataHeader] writes the 16 octets in front of it, and the
// payload and its [Padding] are separate pieces of the vector that [Checksum] runs over.
//
// # Errors
//
// All errors are [FormatError] constants. They compare with ==, carry no memory, and their text
// says what the RFC asks the receiver to do.
package wire
