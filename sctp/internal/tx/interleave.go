package tx

import "github.com/rddp-go/rddp/sctp/wire"

// messageNumbers numbers the messages of a stream, and the chunks of the one that is being sent
// (RFC 8260 section 2.1).
type messageNumbers struct {
	nextOrdered, nextUnordered wire.MID
	nextFSN                    wire.FSN
}

// begin begins with the next message.
func (c *messageNumbers) begin(unordered bool) {
	if c.nextFSN = 0; unordered {
		c.nextUnordered++
	} else {
		c.nextOrdered++
	}
}

// current returns the MID of the message that has begun.
func (c *messageNumbers) current(unordered bool) wire.MID {
	if unordered {
		return c.nextUnordered - 1
	}
	return c.nextOrdered - 1
}

// setExtra sets what I-DATA and PR-SCTP need of a new chunk of the message in the slot. A later
// chunk of I-DATA has its FSN where the first has the PPID (RFC 8260 section 2.1).
func (s *Sender) setExtra(t wire.TSN, r *chunkRecord) {
	m := &s.queue.current.msg
	x := chunkExtra{policy: m.Policy, limit: m.Limit, expiresAt: m.Expires}
	if s.Interleaves() {
		c := s.queue.streams.numbers.Use(uint16(m.Stream))
		if r.wireFlags |= flagIData; s.queue.current.offset == 0 {
			c.begin(m.Unordered)
		} else {
			r.ppid = uint32(c.nextFSN)
		}
		x.mid = c.current(m.Unordered)
		c.nextFSN++
	}
	*s.outstanding.extraOf(t) = x
}

// appendIDataHeader appends the header of a chunk that goes as I-DATA.
func (s *Sender) appendIDataHeader(b []byte, t wire.TSN, r *chunkRecord, flags uint8) []byte {
	return wire.AppendIDataHeader(b, wire.IDataFields{Flags: flags &^ flagIData, TSN: t, Stream: r.stream,
		MID: s.outstanding.extraOf(t).mid, PPID: r.ppid, FSN: wire.FSN(r.ppid), PayloadLen: int(r.size)})
}
