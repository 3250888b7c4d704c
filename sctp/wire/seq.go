package wire

// TSN is a Transmission Sequence Number. TSNs compare by serial number arithmetic with
// SERIAL_BITS = 32 (RFC 9260 section 1.6, RFC 1982).
type TSN uint32

// Less reports whether t comes before u: u is 1 to 2^31-1 ahead of t. Two TSNs that are exactly
// 2^31 apart have no order (RFC 1982 section 3.2), so neither is less than the other.
func (t TSN) Less(u TSN) bool { return serialLess32(uint32(t), uint32(u)) }

// LessEq reports whether t equals u or comes before it.
func (t TSN) LessEq(u TSN) bool { return uint32(u-t) < 1<<31 }

// Add returns the TSN n after t. It wraps from 2^32-1 to 0.
func (t TSN) Add(n uint32) TSN { return t + TSN(n) }

// Sub returns the signed distance from u to t: positive when t is after u.
func (t TSN) Sub(u TSN) int32 { return int32(t - u) }

// SSN is a Stream Sequence Number. SSNs compare by serial number arithmetic with SERIAL_BITS = 16
// (RFC 9260 section 1.6).
type SSN uint16

// Less reports whether s comes before u: u is 1 to 2^15-1 ahead of s.
func (s SSN) Less(u SSN) bool { return s != u && uint16(u-s) < 1<<15 }

// StreamID is a Stream Identifier, 0 to 65535.
type StreamID uint16

// MID is the Message Identifier of an I-DATA chunk. MIDs compare by serial number arithmetic with
// SERIAL_BITS = 32 (RFC 8260 section 2.1).
type MID uint32

// Less reports whether m comes before u: u is 1 to 2^31-1 ahead of m.
func (m MID) Less(u MID) bool { return serialLess32(uint32(m), uint32(u)) }

// FSN is the Fragment Sequence Number of an I-DATA chunk. FSNs compare by serial number arithmetic
// with SERIAL_BITS = 32 (RFC 8260 section 2.1).
type FSN uint32

// Less reports whether f comes before u: u is 1 to 2^31-1 ahead of f.
func (f FSN) Less(u FSN) bool { return serialLess32(uint32(f), uint32(u)) }

func serialLess32(a, b uint32) bool { return a != b && b-a < 1<<31 }
