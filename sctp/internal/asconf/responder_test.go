package asconf_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

// responses writes down what an ASCONF-ACK says: ids, and the causes of those that have failed.
func responses(t testing.TB, ack []byte) string {
	t.Helper()
	if ack == nil {
		return "none"
	}
	c := must.Get(wire.AsAsconfAck(chunkOf(t, ack)))(t)
	var out []string
	ps := c.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		r := must.Get(wire.AsAddrResponse(p))(t)
		if r.Success() {
			out = append(out, fmt.Sprintf("%d ok", r.CorrelationID()))
			continue
		}
		causes := r.Causes()
		cause, ok := causes.Next()
		must.That(t, ok, "an error without a cause")
		out = append(out, fmt.Sprintf("%d %#x", r.CorrelationID(), uint16(cause.Code())))
	}
	must.OK(t, ps.Err())
	return strings.Join(out, ", ")
}

func TestRequestsArePerformedInOrder(t *testing.T) {
	// req 5061-5.2-2: in order, with the ids of the requests
	// req 5061-5.3-3
	// req 5061-4.3-1
	// req 5061-5.4-1
	any4 := netip.IPv4Unspecified()
	for _, c := range []struct {
		name, want, does string
		source           byte
		parts            []part
	}{
		{"nothing", "", "", 1, nil},
		{"add", "", "+192.0.2.4", 1, []part{{t: wire.ParamAddIP, id: 7, addr: addr(4)}}},
		{"add what is there", "", "", 1, []part{{t: wire.ParamAddIP, id: 7, addr: addr(2)}}},
		{"add the source", "", "+192.0.2.9", 9, []part{{t: wire.ParamAddIP, id: 7, addr: any4}}},
		{"delete", "", "-192.0.2.2", 1, []part{{t: wire.ParamDeleteIP, id: 7, addr: addr(2)}}},
		{"delete what is not there", "", "", 1, []part{{t: wire.ParamDeleteIP, id: 7, addr: addr(8)}}},
		{"delete the source", "7 0xa2", "", 2, []part{{t: wire.ParamDeleteIP, id: 7, addr: addr(2)}}},
		{"delete all but the source", "", "-192.0.2.1 -192.0.2.3", 2, []part{{t: wire.ParamDeleteIP, id: 7, addr: any4}}},
		{"delete all but a source that is not confirmed", "7 0xa1", "", 3, []part{{t: wire.ParamDeleteIP, id: 7, addr: any4}}},
		{"delete all but a source that is not there", "7 0xa1", "", 9, []part{{t: wire.ParamDeleteIP, id: 7, addr: any4}}},
		{"delete down to the last", "9 0xa0", "-192.0.2.3 -192.0.2.2", 1, []part{
			{t: wire.ParamDeleteIP, id: 7, addr: addr(3)}, {t: wire.ParamDeleteIP, id: 8, addr: addr(2)},
			{t: wire.ParamDeleteIP, id: 9, addr: addr(1)}}},
		{"delete the last that is confirmed", "8 0xa1", "-192.0.2.1", 3, []part{
			{t: wire.ParamDeleteIP, id: 7, addr: addr(1)}, {t: wire.ParamDeleteIP, id: 8, addr: addr(2)}}},
		{"no room, then all fail", "8 0xa1, 9 0xa1, 10 ok, 11 0xa1", "+192.0.2.4 !192.0.2.2", 1, []part{
			{t: wire.ParamAddIP, id: 7, addr: addr(4)}, {t: wire.ParamAddIP, id: 8, addr: addr(5)},
			{t: wire.ParamDeleteIP, id: 9, addr: addr(2)}, {t: wire.ParamSetPrimary, id: 10, addr: addr(2)},
			{t: wire.ParamAddIP, id: 11, addr: addr(2)}}},
		{"primary", "", "!192.0.2.2", 1, []part{{t: wire.ParamSetPrimary, id: 7, addr: addr(2)}}},
		{"primary that is unknown", "7 0x5", "", 1, []part{{t: wire.ParamSetPrimary, id: 7, addr: addr(8)}}},
		{"primary that is added before", "", "+192.0.2.4 !192.0.2.4", 1, []part{{t: wire.ParamAddIP, id: 7, addr: addr(4)},
			{t: wire.ParamSetPrimary, id: 8, addr: addr(4)}}},
		{"an unknown parameter", "258 0x8, 8 ok", "-192.0.2.2", 1, []part{
			{raw: []byte{0xc0, 0x77, 0, 8, 0, 0, 1, 2}}, {t: wire.ParamDeleteIP, id: 8, addr: addr(2)}}},
		{"an unknown parameter that ends it", "0 0x8", "", 1, []part{
			{raw: []byte{0x40, 0x77, 0, 4}}, {t: wire.ParamDeleteIP, id: 8, addr: addr(2)}}},
		{"one that is to be skipped", "", "-192.0.2.2", 1, []part{
			{raw: []byte{0x80, 0x77, 0, 4}}, {t: wire.ParamDeleteIP, id: 8, addr: addr(2)}}},
		// req 5061-4.2-1
		{"parameters that belong elsewhere", "", "", 1, []part{{raw: []byte{0xc0, 5, 0, 8, 0, 0, 1, 2}},
			{raw: []byte{0xc0, 6, 0, 8, 0, 0, 1, 2}}}},
		{"a request without an address", "258 0x7", "", 1, []part{{raw: []byte{0xc0, 1, 0, 8, 0, 0, 1, 2}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := three()
			ack := asconf.NewResponder(50).Handle(asconfOf(t, 50, c.parts...), true, addr(c.source), 1000, p)
			check.Equal(t, "responses", responses(t, ack), c.want)
			check.Equal(t, "performed", strings.Join(p.log, " "), c.does)
		})
	}
}

// Each ASCONF is performed once, in the order of the numbers, and answered alike each time.
func TestSequenceNumbersOfThePeer(t *testing.T) {
	// req 5061-5.2-2
	// req 5061-5.1-1
	p := three()
	r := asconf.NewResponder(0)
	add := asconfOf(t, 0, part{t: wire.ParamAddIP, id: 1, addr: addr(4)})
	next := asconfOf(t, 1, part{t: wire.ParamDeleteIP, id: 2, addr: addr(1)})
	handle := func(c wire.Asconf, isFirst bool) []byte { return r.Handle(c, isFirst, addr(1), 1000, p) }
	check.Equal(t, "before its turn", responses(t, handle(next, true)), "none")
	first := bytes.Clone(handle(add, true))
	check.That(t, bytes.Equal(handle(add, true), first), "another answer when it comes again")
	second := bytes.Clone(handle(next, false))
	check.Equal(t, "second", responses(t, second), "2 0xa2")
	check.That(t, bytes.Equal(handle(add, true), first) && bytes.Equal(handle(next, false), second), "not cached")
	third := asconfOf(t, 2)
	check.Equal(t, "third", responses(t, handle(third, true)), "")
	check.Equal(t, "one that the peer has the answer to", responses(t, handle(add, true)), "none")
	check.Slice(t, "performed", p.log, []string{"+192.0.2.4"})
	for seq := uint32(3); seq < 100; seq++ {
		handle(asconfOf(t, seq, part{t: wire.ParamDeleteIP, id: seq, addr: addr(1)}), false)
	}
	check.That(t, r.Held() < 2000, "%d octets are kept", r.Held())
	check.Equal(t, "a recent one", responses(t, handle(asconfOf(t, 95), true)), "95 0xa2")
}

// The last ASCONF is the one that most likely comes again: it is not performed again, and one of
// before the first is not performed at all.
func TestLastAsconfIsPerformedOnce(t *testing.T) {
	// req 5061-5.2-2
	p := three()
	r := asconf.NewResponder(7)
	primary := func(seq uint32) wire.Asconf {
		return asconfOf(t, seq, part{t: wire.ParamSetPrimary, id: seq, addr: addr(2)}, part{t: wire.ParamDeleteIP, id: 1,
			addr: addr(1)})
	}
	handle := func(seq uint32, isFirst bool) string {
		return responses(t, r.Handle(primary(seq), isFirst, addr(1), 1000, p))
	}
	check.Equal(t, "before the first", handle(6, true), "none")
	check.Slice(t, "performed", p.log, nil)
	check.Equal(t, "octets kept", r.Held(), 0)
	for range 3 {
		check.Equal(t, "the first", handle(7, true), "1 0xa2")
		check.Slice(t, "performed", p.log, []string{"!192.0.2.2"})
	}
	one := r.Held()
	check.That(t, one > 0, "what is kept takes %d octets", one)
	for seq := uint32(8); seq < 15; seq++ { // eight answers are kept
		check.Equal(t, "a next", handle(seq, false), "1 0xa2")
		check.Equal(t, "octets kept", r.Held(), one*int(seq-6))
	}
	check.Equal(t, "the first of eight", handle(7, false), "1 0xa2")
	check.Equal(t, "the ninth", handle(15, false), "1 0xa2")
	check.Equal(t, "the first of nine", handle(7, false), "none")
	check.Equal(t, "the second of nine", handle(8, false), "1 0xa2")
	check.Equal(t, "octets kept", r.Held(), 8*one)
	check.Equal(t, "performed", len(p.log), 9)
	check.Equal(t, "one that leaves one out", handle(17, true), "none")
	check.Equal(t, "performed", len(p.log), 9)
	check.Equal(t, "the first of a packet", handle(16, true), "1 0xa2")
	check.Equal(t, "octets kept", r.Held(), one)
}

// What an answer quotes is what it is about, if that is short; one has room for a response more.
func TestWhatAnAnswerQuotes(t *testing.T) {
	unknown := func(octets int) part {
		return part{raw: append([]byte{0xc0, 0x77, byte(octets >> 8), byte(octets), 0, 0, 0, 9}, make([]byte, octets-8)...)}
	}
	for octets, want := range map[int]int{8: 8, 28: 28, 32: 0} {
		ack := asconf.NewResponder(1).Handle(asconfOf(t, 1, unknown(octets)), true, addr(1), 1000, three())
		c := must.Get(wire.AsAsconfAck(chunkOf(t, ack)))(t)
		ps := c.Params()
		prm, _ := ps.Next()
		r := must.Get(wire.AsAddrResponse(prm))(t)
		causes := r.Causes()
		cause, _ := causes.Next()
		check.That(t, r.CorrelationID() == 9 && cause.Code() == wire.CauseUnrecognizedParams && len(cause.Info()) == want,
			"of %d octets %d are quoted: % x", octets, len(cause.Info()), ack)
	}
	six := asconfOf(t, 1, part{t: wire.ParamSetPrimary, id: 7, addr: addr(2)})
	for room, want := range map[int]string{88: "", 87: "7 0xa1"} { // 8 of the chunk, and two responses of 40
		p := three()
		check.Equal(t, "room for two responses", responses(t, asconf.NewResponder(1).Handle(six, true, addr(1), room, p)), want)
		check.Equal(t, "performed", len(p.log) == 1, want == "")
		odd := asconf.NewResponder(1).Handle(asconfOf(t, 1, unknown(8)), true, addr(1), room, p)
		check.Equal(t, "said of an unknown one", responses(t, odd), map[string]string{"": "9 0x8", "7 0xa1": ""}[want])
	}
}

// An answer is not longer than a packet. What it has no room for has failed.
func TestLongAsconf(t *testing.T) {
	var parts []part
	for id := range uint32(60) {
		parts = append(parts, part{t: wire.ParamSetPrimary, id: id, addr: addr(200)})
	}
	p := three()
	parts = append(parts, part{t: wire.ParamDeleteIP, id: 99, addr: addr(2)})
	ack := asconf.NewResponder(1).Handle(asconfOf(t, 1, parts...), true, addr(1), 500, p)
	check.That(t, len(ack) <= 500, "%d octets", len(ack))
	got := strings.Split(responses(t, ack), ", ")
	check.That(t, strings.HasSuffix(got[len(got)-1], "0xa1") && len(p.log) == 0, "%v %v", got, p.log)
}
