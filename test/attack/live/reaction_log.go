//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// third marks what went to the innocent.
const third = " to a third party"

// reactionLog is what was seen of the victim's reaction: how often each kind of chunk, and how much
// of it went to whom.
type reactionLog struct {
	*family
	mu     sync.Mutex
	ignore map[string]bool // kinds that belong to the honest client
	suffix string          // of all kinds
	kinds  map[string]int
	octets map[bool]uint64 // of IP packets, by whether they went to the innocent
	leaked bool            // a secret of the victim was in one

	packets map[bool]uint64
	rows    *rowTracker // or nil: nothing that comes is late
}

// rowTracker keeps the attacks apart: each sends from SCTP ports that no other before it did, and
// an answer to a port of an earlier one is late, and says nothing about this one.
type rowTracker struct {
	now  atomic.Uint32
	last [1 << 16]atomic.Uint32 // the row that has sent from a port last, 0: none
}

func (r *rowTracker) beginRow() { r.now.Add(1) }

// noteSource notes where an SCTP packet of the attacker's says it comes from.
func (r *rowTracker) noteSource(sctp []byte) {
	if r != nil && len(sctp) >= 2 {
		r.last[binary.BigEndian.Uint16(sctp)].Store(r.now.Load())
	}
}

// ignorePort has answers to a port count for no row.
func (r *rowTracker) ignorePort(port uint16) { r.last[port].Store(math.MaxUint32) }

// isLate says whether an SCTP packet of the victim's is about an earlier row. The honest client's
// own ports belong to all.
func (r *rowTracker) isLate(sctp []byte) bool {
	if r == nil {
		return false
	}
	port := binary.BigEndian.Uint16(sctp[2:])
	n := r.last[port].Load()
	return n != 0 && n != r.now.Load() && port != friendSCTP
}

func newRecord(f *family) *reactionLog {
	r := &reactionLog{family: f}
	r.resetLog()
	return r
}

func (r *reactionLog) resetLog() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds, r.octets, r.packets, r.leaked = make(map[string]int), make(map[bool]uint64), make(map[bool]uint64), false
}

// noteIPPacket takes in one IP packet of the victim. It returns the SCTP packet in it, if there is
// one.
func (r *reactionLog) noteIPPacket(b []byte, udp bool) (src, dst netip.Addr, sctp []byte) {
	src, dst, proto, payload := decodeIP(b)
	if !src.IsValid() || isKernelTraffic(proto, payload) {
		return
	}
	var kinds []string
	switch {
	case proto == layers.IPProtocolSCTP && !udp:
		sctp = payload
	case proto == layers.IPProtocolUDP && udp && len(payload) > 8:
		sctp = payload[8:]
	case (proto == layers.IPProtocolICMPv4 || proto == layers.IPProtocolICMPv6) && len(payload) > 1:
		kinds = []string{fmt.Sprintf("ICMP %d/%d", payload[0], payload[1])}
	}
	if len(sctp) < wire.CommonHeaderLen {
		sctp = nil
	} else {
		kinds = chunkNames(sctp)
	}
	innocent := r.innocents.Contains(dst) || dst.IsMulticast()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaked = r.leaked || secretIn(b); sctp != nil && r.rows.isLate(sctp) {
		return src, dst, sctp
	}
	foreign := len(kinds) == 0
	for _, k := range kinds {
		if !r.ignore[k] {
			if k += r.suffix; innocent {
				k += third
			}
			r.kinds[k]++
			foreign = true
		}
	}
	if foreign {
		r.octets[innocent] += uint64(len(b))
		r.packets[innocent]++
	}
	return src, dst, sctp
}

// decodeIP takes the IP header off, and over IPv6 that of a first fragment.
func decodeIP(b []byte) (src, dst netip.Addr, proto layers.IPProtocol, payload []byte) {
	var v4 layers.IPv4
	var v6 layers.IPv6
	switch {
	case v4.DecodeFromBytes(b, gopacket.NilDecodeFeedback) == nil && v4.Version == 4:
		src, _ = netip.AddrFromSlice(v4.SrcIP)
		dst, _ = netip.AddrFromSlice(v4.DstIP)
		return src, dst, v4.Protocol, v4.Payload
	case v6.DecodeFromBytes(b, gopacket.NilDecodeFeedback) == nil && v6.Version == 6:
		src, _ = netip.AddrFromSlice(v6.SrcIP)
		dst, _ = netip.AddrFromSlice(v6.DstIP)
		proto, payload = v6.NextHeader, v6.Payload
		if proto == layers.IPProtocolIPv6Fragment && len(payload) >= 8 && binary.BigEndian.Uint16(payload[2:])&^7 == 0 {
			proto, payload = layers.IPProtocol(payload[0]), payload[8:]
		}
	}
	return src, dst, proto, payload
}

// isKernelTraffic tells whether a packet is the kernel's own: of Multicast Listener Discovery (RFC
// 3810), the only one with hop-by-hop options, or of Neighbor Discovery (RFC 4861), which for IPv4
// is not in IP.
func isKernelTraffic(proto layers.IPProtocol, payload []byte) bool {
	return proto == layers.IPProtocolIPv6HopByHop || proto == layers.IPProtocolICMPv6 && len(payload) > 0 &&
		payload[0] >= layers.ICMPv6TypeRouterSolicitation && payload[0] <= layers.ICMPv6TypeRedirect
}

// chunkNames names the chunks of a packet.
func chunkNames(sctp []byte) (kinds []string) {
	pkt, err := wire.ParsePacket(sctp)
	if err != nil {
		return nil
	}
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		switch c.Type() {
		case wire.ChunkPad: // it goes with a HEARTBEAT that probes the path MTU
		case wire.ChunkData:
			kinds = append(kinds, describeData(c))
		case wire.ChunkAbort:
			if a, err := wire.AsAbort(c); err == nil {
				kinds = append(kinds, "ABORT"+causeNames(a.Causes()))
			}
		case wire.ChunkError:
			if e, err := wire.AsError(c); err == nil {
				kinds = append(kinds, "ERROR"+causeNames(e.Causes()))
			}
		default:
			kinds = append(kinds, c.Type().String())
		}
	}
	return kinds
}

func causeNames(cs wire.Causes) string {
	var s string
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if s += fmt.Sprintf(" %d", c.Code()); len(s) > 8 {
			return s + " and more" // one such packet is like another
		}
	}
	return s
}

// describeData names what a DATA chunk carries.
func describeData(c wire.Chunk) string {
	d, err := wire.AsData(c)
	if err != nil || !d.B() || !d.E() {
		return "DATA"
	}
	b := d.Payload()
	switch {
	case d.PPID() == ddpadapt.PPIDControl && len(b) >= 4:
		switch binary.BigEndian.Uint16(b[2:]) {
		case forge.Accept:
			return "Accept"
		case forge.Terminate:
			return "session Terminate"
		}
		return "control"
	case d.PPID() == ddpadapt.PPIDSegment && len(b) >= 2+ddp.TaggedHeaderLen:
		seg := b[2:]
		switch op := rdmap.Opcode(seg[1] & 0xF); {
		case op == rdmap.OpReadResponse:
			return "Read Response"
		case op == rdmap.OpTerminate && len(seg) >= ddp.UntaggedHeaderLen:
			t, err := rdmap.ParseTerminate(ddp.UntaggedView(seg).Payload())
			if err == nil {
				return fmt.Sprintf("Terminate %d/%d/%d", t.Layer, t.EType, t.Code)
			}
		default:
			return fmt.Sprintf("opcode %d", op)
		}
	}
	return "DATA"
}

// kindsSeen returns the kinds seen but for those that are to be left out, the most frequent first.
func (r *reactionLog) kindsSeen(without []string) (kinds []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range maps.Keys(r.kinds) {
		if !slices.Contains(without, k) {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if d := r.kinds[b] - r.kinds[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return kinds
}

// volumeTo returns the packets and octets that went to the attacker and to the innocent.
func (r *reactionLog) volumeTo(innocent bool) (packets, octets uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packets[innocent], r.octets[innocent]
}
