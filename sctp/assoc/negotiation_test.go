package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Partial reliability is there where both sides offer it. INIT and INIT ACK list FORWARD TSN once,
// beside the parameter of RFC 3758, and nothing where it is not offered.
func TestPartialReliabilityIsNegotiated(t *testing.T) {
	// req 5061-4.2.7-1
	// req 3758-3.1-1
	// req 3758-4.2-1
	for _, row := range []struct {
		name string
		a, b bool
	}{{"by nobody", false, false}, {"by the initiator", true, false}, {"by the other", false, true},
		{"by both", true, true}} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
			r.Join(&assoc.Config{PartialReliability: row.a}, &assoc.Config{PartialReliability: row.b})
			seen := 0
			for _, c := range r.Sent {
				for kind, offered := range map[wire.ChunkType]bool{wire.ChunkInit: row.a, wire.ChunkInitAck: row.b} {
					ch := sctptest.ChunkOf(c.Pkt, kind)
					if ch == nil {
						continue
					}
					seen++
					lists, params := 0, 0
					ps := must.Get(wire.AsInit(ch))(t).Params()
					for p, more := ps.Next(); more; p, more = ps.Next() {
						switch p.Type() {
						case wire.ParamSupportedExtensions:
							lists++
							check.Equal(t, kind.String()+" lists", string(p.Value()), string([]byte{byte(wire.ChunkForwardTSN)}))
						case wire.ParamForwardTSN:
							params++
							check.Equal(t, "length of the parameter", len(p), 4)
						}
					}
					want := 0
					if offered {
						want = 1
					}
					check.Equal(t, kind.String()+": Supported Extensions", lists, want)
					check.Equal(t, kind.String()+": Forward-TSN-Supported", params, want)
				}
			}
			check.That(t, seen >= 2, "%d of INIT and INIT ACK were seen", seen)
			var want assoc.Extensions
			if row.a && row.b {
				want = assoc.PartialReliability
			}
			for i, h := range r.Hosts {
				check.Equal(t, []string{"initiator", "other"}[i]+" has agreed on", h.Assocs[0].Extensions(), want)
			}
		})
	}
}

// I-DATA is used where both sides offer it, and nothing else then. Partial reliability is there
// with it if both list I-FORWARD-TSN too.
func TestInterleavingIsNegotiated(t *testing.T) {
	// req 8260-2.2.1-1
	// req 8260-2.2.1-2
	// req 8260-2.2.1-3
	// req 8260-2.3.1-2
	// req 8260-2-1
	const pr, il = assoc.PartialReliability, assoc.Interleaving
	listed := map[assoc.Extensions]string{0: "", pr: "\xc0", il: "\x40", pr | il: "\xc0\x40\xc2"}
	for a := range pr + il + 1 {
		for b := range pr + il + 1 {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
			r.Join(&assoc.Config{PartialReliability: a.Has(pr), Interleaving: a.Has(il)},
				&assoc.Config{PartialReliability: b.Has(pr), Interleaving: b.Has(il)})
			want := a & b
			for _, c := range r.Sent {
				for kind, offered := range map[wire.ChunkType]assoc.Extensions{wire.ChunkInit: a, wire.ChunkInitAck: b} {
					ch := sctptest.ChunkOf(c.Pkt, kind)
					if ch == nil {
						continue
					}
					list := ""
					if p := sctptest.ParamOf(must.Get(wire.AsInit(ch))(t), wire.ParamSupportedExtensions); p != nil {
						list = string(p.Value())
					}
					check.Equal(t, kind.String()+" lists", list, listed[offered])
				}
			}
			for _, h := range r.Hosts {
				check.Equal(t, "agreed on", h.Assocs[0].Extensions(), want)
				must.OK(t, h.Assocs[0].Send(r.Now, &assoc.Message{Body: [2][]byte{make([]byte, 4000)}}))
			}
			r.Run(time.Second)
			kind, other := wire.ChunkData, wire.ChunkIData
			if want.Has(il) {
				kind, other = other, kind
			}
			for i, h := range r.Hosts {
				check.Equal(t, "octets received", h.Received.Len(), 4000)
				check.That(t, len(r.Seen(i, kind)) >= 3 && len(r.Seen(i, other)) == 0, "%v with %v: %d packets with %v, %d with %v",
					a, b, len(r.Seen(i, kind)), kind, len(r.Seen(i, other)), other)
			}
		}
	}
}
