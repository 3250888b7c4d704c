package assoc

import (
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// TxBatch is a reusable set of packets ready for rawio.Link.WriteBatch: Pkts, checksums stored.
// Headers and control chunks live in the batch; user data is referenced. So write the batch before
// the association is called again, then Reset it.
type TxBatch = pack.Batch

// NewTxBatch returns a batch that holds up to packets packets.
func NewTxBatch(packets int) *TxBatch { return pack.NewBatch(packets) }

// Outbox is a bounded queue of packets that need no association. They are answers to INITs and to
// packets out of the blue, and last packets.
type Outbox struct {
	packets []outPacket
	buf     []byte // the chunks of all queued packets
	dropped uint64
}

type outPacket struct {
	src, dst      uint16
	tag           uint32
	start, end    int // in Outbox.buf
	local, remote netip.AddrPort
	mark          pack.Mark
	sealer        pack.Sealer // nil: it goes in the clear
}

// maxOutboxPackets bounds the packets that wait; further answers are dropped and the peer asks
// again.
const maxOutboxPackets = 128

// openPacket starts a packet. Append its chunks to the result, and queue it with queuePacket or
// queueAnswer.
func (o *Outbox) openPacket() (b []byte, ok bool) {
	if ok = len(o.packets) < maxOutboxPackets; !ok {
		o.dropped++
	}
	return o.buf, ok
}

// Dropped returns how many answers found the queue full and were not given.
func (o *Outbox) Dropped() uint64 { return o.dropped }

func (o *Outbox) isEmpty() bool { return len(o.packets) == 0 }

// queueAnswer queues the chunks in b for where p came from.
func (o *Outbox) queueAnswer(p *rawio.Packet, tag uint32, b []byte) {
	o.queueMarkedAnswer(p, tag, pack.Mark{}, b)
}

func (o *Outbox) queueMarkedAnswer(p *rawio.Packet, tag uint32, m pack.Mark, b []byte) {
	pkt := wire.Packet(p.Data)
	o.queuePacket(outPacket{src: pkt.DstPort(), dst: pkt.SrcPort(), tag: tag, local: p.Local, remote: p.Remote,
		mark: m}, b)
}

func (o *Outbox) queuePacket(q outPacket, b []byte) {
	q.start, q.end = len(o.buf), len(b)
	o.packets, o.buf = append(o.packets, q), b
}

// PollTransmit moves packets to the batch and says whether some are left.
func (o *Outbox) PollTransmit(out *TxBatch) (more bool) {
	if o.isEmpty() {
		return false
	}
	n := 0
	for n < len(o.packets) && !out.Full() {
		q := &o.packets[n]
		out.Begin(q.src, q.dst, q.tag, q.local, q.remote, wire.CommonHeaderLen+q.end-q.start)
		out.SetMark(q.mark)
		out.Seal(q.sealer)
		out.Commit(append(out.Tail(), o.buf[q.start:q.end]...))
		out.End()
		n++
	}
	rest := copy(o.packets, o.packets[n:])
	clear(o.packets[rest:])
	o.packets = o.packets[:rest]
	if len(o.packets) == 0 {
		if o.buf = o.buf[:0]; cap(o.buf) > maxSpareOctets {
			o.buf = nil
		}
	}
	return len(o.packets) > 0
}
