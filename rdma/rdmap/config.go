package rdmap

import (
	"fmt"

	"github.com/rddp-go/rddp/ddp"
)

// MaxReads is the largest IRD and ORD. It is the largest value that the 14-bit fields of RFC 6581
// can carry, 0x3FFF being reserved.
const MaxReads = 0x3FFE

// MaxDepth is the largest queue depth, so that a mistaken size does not take all memory.
const MaxDepth = 1 << 20

const maxSGEs = 1024

// Host is the owner of a QP: the shell that joins it to a session of the lower layer. Its methods
// are called under the connection lock and do not call back into the QP.
type Host interface {
	// SharedRegion reports whether a stream other than this one may use r, a region without a
	// stream scope. A shared STag cannot be invalidated by the peer (section 8.1.1 item 7).
	SharedRegion(r *ddp.Region) bool
	// Detach makes the lower layer copy what its unacknowledged segments of this stream still
	// reference. That memory is about to go back to its owner. more says that it was only a part.
	Detach() (more bool)
	// FlushLater asks for a call of QP.Flush, once the lower layer has written out what it has
	// taken and others have had their turn. Requests then end, or receives complete, and memory is
	// the user's.
	FlushLater()
	// HighWater reports, once, that more receive buffers are in process than QP.SetHighWater
	// allows.
	HighWater()
	// Failed reports, once, that the stream fails. Flush completions follow.
	Failed(err *StreamError)
	// Broken reports that this code has contradicted itself. The association is to end before
	// anything else is placed or sent. Requests are flushed then.
	Broken(err *InternalError)
	// PeerClosed reports that the peer sends nothing more. Receive buffers have been flushed; what
	// has been posted for sending goes on. The user should Close.
	PeerClosed()
}

// SRQ is a shared receive queue as a QP sees it: a SharedQueue behind the lock of its owner.
type SRQ interface {
	ddp.BufferSource
	// ReleaseBuffer gives back a buffer that TakeBuffer lent, by its token, and returns the ID of
	// its work request.
	ReleaseBuffer(token uint64) (id uint64)
}

// Config describes a QP.
type Config struct {
	Table  *ddp.Table
	PD     ddp.PD
	Stream ddp.StreamID // unique among the streams of Table, not 0
	QPNum  uint32

	SendCQ, RecvCQ CQ
	SRQ            SRQ    // nil: the QP has a receive queue of its own
	RecvLock       Locker // a leaf lock, held for PostRecv; nil: PostRecv needs the connection lock
	Host           Host

	MaxSend   int // send requests posted and not completed
	MaxRecv   int // receives posted; with an SRQ the most shared buffers this stream holds at a time
	MaxSGE    int // pieces of memory in one request
	MaxInline int // octets of inline data in one request
	IRD       int // inbound RDMA Reads and atomics that may be pending (section 6.1); 0: the peer may do none
	ORD       int // outbound RDMA Reads and atomics that may be pending; further ones wait. 0: they are refused

	// NoAtomics and NoImmediate make the QP one without that part of RFC 7306. The peer's messages
	// of the kind are unexpected opcodes, which end the stream (section 1.1). To post them gives
	// ErrDisabled.
	NoAtomics, NoImmediate bool
}

// ConfigError says which field of a Config is out of range.
type ConfigError struct {
	Field    string
	Min, Max int
}

func (e *ConfigError) Error() string {
	if e.Max == 0 {
		return fmt.Sprintf("rdmap: Config.%s is missing", e.Field)
	}
	return fmt.Sprintf("rdmap: Config.%s must be between %d and %d", e.Field, e.Min, e.Max)
}

func (c *Config) checkFields() error {
	switch {
	case c.Table == nil:
		return &ConfigError{Field: "Table"}
	case c.Stream == 0:
		return &ConfigError{Field: "Stream"}
	case c.SendCQ == nil:
		return &ConfigError{Field: "SendCQ"}
	case c.RecvCQ == nil:
		return &ConfigError{Field: "RecvCQ"}
	case c.Host == nil:
		return &ConfigError{Field: "Host"}
	}
	for _, f := range [...]struct {
		name          string
		val, min, max int
	}{
		{"MaxSend", c.MaxSend, 1, MaxDepth},
		{"MaxRecv", c.MaxRecv, 1, MaxDepth},
		{"MaxSGE", c.MaxSGE, 1, maxSGEs},
		{"MaxInline", c.MaxInline, 0, 1 << 16},
		{"IRD", c.IRD, 0, MaxReads},
		{"ORD", c.ORD, 0, MaxReads},
	} {
		if f.val < f.min || f.val > f.max {
			return &ConfigError{Field: f.name, Min: f.min, Max: f.max}
		}
	}
	return nil
}
