package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
)

// controlQueue holds control chunks that wait for PollTransmit. All answers to one received packet
// share one entry and so one packet (section 12.4). What a peer can make the queue hold is bounded.
type controlQueue struct {
	entries     []controlEntry
	entryIsOpen bool   // the last entry answers the packet that is being handled
	buf         []byte // the chunks of all entries
}

// controlEntry holds the control chunks of one packet to come.
type controlEntry struct {
	path       *path
	local      netip.AddrPort // where the packet it answers came to; invalid: the path's own address
	start, end int            // in controlQueue.buf
}

const (
	maxControlEntries = 64      // entries
	maxControlOctets  = 1 << 17 // beyond them no further entry is begun
	maxReport         = 256     // octets of somebody else's data that an error cause quotes
)

// closeEntry says that chunks queued from now on answer another packet.
func (q *controlQueue) closeEntry() { q.entryIsOpen = false }

// queueReply queues the chunks that the caller appended to control.buf, to be sent on p. They go
// from local, or from the path's own address if local is invalid. If the answer to the current
// packet would need a second packet, they are dropped and counted.
func (a *Assoc) queueReply(p *path, local netip.AddrPort, b []byte) {
	q := &a.control
	end, room := len(b), p.MTU()-headerRoom
	switch last := len(q.entries) - 1; {
	case q.entryIsOpen && q.entries[last].path == p && end-q.entries[last].start <= room:
		q.entries[last].end = end
	case !q.entryIsOpen && len(q.entries) < maxControlEntries && len(q.buf) < maxControlOctets &&
		end-len(q.buf) <= room:
		q.entries = append(q.entries, controlEntry{path: p, local: local, start: len(q.buf), end: end})
		q.entryIsOpen = true
	default:
		a.rareCounters().RepliesDropped++
		return
	}
	q.buf = b
}

// clear forgets all chunks.
func (q *controlQueue) clear() {
	if q.entries, q.buf, q.entryIsOpen = q.entries[:0], q.buf[:0], false; cap(q.buf) > maxSpareOctets {
		q.buf = nil
	}
}

// moveNextTo moves the chunks of the oldest entry into the open packet.
func (q *controlQueue) moveNextTo(out *TxBatch) {
	e := q.entries[0]
	if wire.ChunkType(q.buf[e.start]) == wire.ChunkAsconf { // "MUST have the correct CRC32c" (RFC 9653 section 5.2)
		out.SetZeroChecksum(false)
	}
	out.Commit(append(out.Tail(), q.buf[e.start:e.end]...))
	q.entries = q.entries[:copy(q.entries, q.entries[1:])]
	if len(q.entries) == 0 {
		q.clear()
	}
}
