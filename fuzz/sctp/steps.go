package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// doStep does one thing to the victim.
func (l *fuzzBed) doStep(op byte, arg []byte) {
	v := l.victim
	if op < 200 {
		if len(arg) > 0 {
			l.attackPacket(op, arg[0], arg[1:])
		}
		return
	}
	wait := time.Duration(0)
	if len(arg) > 0 {
		wait = time.Duration(arg[0]) * time.Duration(arg[0]) * 2 * time.Millisecond // up to two minutes
	}
	switch {
	case op < 220: // time passes
		l.now = l.now.Add(wait)
		for range 20 {
			if v.a == nil || v.down || v.a.NextTimeout() > l.now {
				break
			}
			v.a.HandleTimeout(l.now)
			l.collectPackets(v)
		}
	case v.a == nil || v.down:
	case op < 235: // the user reads
		if r, ok := v.a.Receive(); ok {
			r.CopyTo(make([]byte, 100), 0)
			v.a.Release(r)
		}
	case op < 245: // and writes
		m := assoc.Message{Body: [2][]byte{make([]byte, 1+len(arg)*20)}, Unordered: len(arg)%2 == 0}
		if len(arg)%3 == 1 {
			m.Expires = l.now.Add(wait)
			m.Path, _ = v.a.PathTo(l.peer.Addrs[len(l.peer.Addrs)-1])
		}
		if l.cfg.PartialReliability {
			m.Policy, m.Limit = assoc.AbandonPolicy(len(arg)%4), uint32(len(arg)/4%3)
		}
		v.a.Send(l.now, &m) // refused in many states
	case op < 246 && l.cfg.StreamReset != 0 && len(arg) > 0:
		l.askForStreams(arg)
	case op < 247: // and has a wish about a path; refused if there is none
		v.a.SetPrimary(l.peer.Addrs[len(arg)%len(l.peer.Addrs)])
		v.a.RequestHeartbeat(l.now, l.peer.Addrs[len(arg)/2%len(l.peer.Addrs)])
	case op < 250:
		v.a.Shutdown(l.now)
	case op < 252:
		v.a.Abort(l.now, arg)
	case op < 254 && len(arg) > 2:
		l.reportICMP(arg)
	default: // the good peer gets its say
		l.exchangePackets(1)
	}
	l.collectPackets(v)
}

// askForStreams has the victim's user ask the peer for something. It is refused in many states.
func (l *fuzzBed) askForStreams(arg []byte) {
	r := assoc.StreamRequest{ResetOut: arg[0]&1 != 0, ResetIn: arg[0]&2 != 0}
	for _, s := range arg[1:] {
		r.Streams = append(r.Streams, wire.StreamID(s%16))
	}
	switch arg[0] >> 2 % 4 {
	case 1:
		r = assoc.StreamRequest{ResetTSNs: true}
	case 2:
		r = assoc.StreamRequest{AddOut: len(arg) % 3, AddIn: len(arg) / 3 % 3}
	}
	if id, err := l.victim.a.StartInTurn(l.now, r); err == nil && arg[0]&64 != 0 {
		l.victim.a.StopWaiting(l.now, id)
	}
}

// Checksums of an attacker's packet. All other values of its octet mean a right one.
const (
	zeroChecksum   = 6
	wrongChecksum  = 7
	checksumsDrawn = 8
)

// attackPacket delivers a packet. With a tag that is not the association's it changes nothing
// (section 8.5), and ends nothing. Nor does one with a wrong checksum, which 0 is where the link
// does not detect errors, or nobody has said that it may be 0 (RFC 9653 section 5.3).
func (l *fuzzBed) attackPacket(op, how byte, chunks []byte) {
	v := l.victim
	var before assoc.Stats
	a, up := v.a, v.a != nil && !v.down
	if up {
		before = a.Stats()
	}
	out, known := len(v.out), v.Endpoint.Len()
	pkt := l.wrapChunks(how, chunks)
	dropped := false
	switch op % checksumsDrawn {
	case zeroChecksum:
		wire.PutChecksum(pkt.data, 0)
		dropped = (v.Detects == rawio.NoErrorDetection || known == 0) && !wire.Packet(pkt.data).ChecksumOK()
	case wrongChecksum:
		pkt.data[8] ^= 1
		dropped = wire.Packet(pkt.data).Checksum() != 0
	}
	l.deliverPacket(v, pkt)
	if dropped && (len(v.out) != out || v.Endpoint.Len() != known) {
		l.Fatalf("a packet with a wrong checksum was taken: %x", pkt.data)
	}
	// One packet is answered by one packet of control chunks, beside the DATA it sets free.
	if n := len(v.out) - out; n > 64 {
		l.Fatalf("one packet was answered by %d", n)
	}
	if up && (dropped || how == wrongTag || how%4 == 3) {
		after := a.Stats()
		if v.down || after.State != before.State || after.Unacked < before.Unacked ||
			after.Buffered != before.Buffered {
			l.Fatalf("a packet with a wrong tag or checksum made %+v of %+v", after, before)
		}
	}
}

// reportICMP delivers what an ICMP message says about a packet of the victim's: its beginning,
// perhaps with another octet.
func (l *fuzzBed) reportICMP(arg []byte) {
	v := l.victim
	pkt := sentPacket{from: l.peer.Addrs[int(arg[0]>>4)%len(l.peer.Addrs)], to: v.Addrs[0],
		kind: rawio.KindProtoUnreachable}
	if arg[0]&1 != 0 {
		pkt.kind, pkt.mtu = rawio.KindPacketTooBig, int(arg[1])*8
	}
	tag := uint32(0)
	if arg[0]&2 != 0 {
		tag = v.a.PeerTag()
	}
	pkt.data = wire.AppendHeader(nil, victimPort, peerPort, tag)
	pkt.data = append(pkt.data, wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: v.a.LocalTag()})...)
	if arg[0]&4 != 0 {
		pkt.data[int(arg[2])%len(pkt.data)] ^= arg[1]
	}
	pkt.data = pkt.data[:max(8, len(pkt.data)-int(arg[2]>>3))]
	l.deliverPacket(v, pkt)
}
