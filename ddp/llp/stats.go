package llp

// StreamStats counts the messages of one session, segments and control messages, but for the peer's
// request.
type StreamStats struct {
	In, Out uint64
	// Messages in that took a slower way than others (RFC 5042 section 6.4.4). Over TCP there are
	// none.
	OutOfOrder uint64 // waited for an earlier one
	Fragmented uint64 // came in several DATA chunks and were put together first
	Early      uint64 // came before the session was accepted and were kept
}
