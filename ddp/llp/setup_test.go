package llp

import (
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSetupWord(t *testing.T) {
	const all = RTRSend | RTRWrite | RTRRead
	for _, row := range []struct {
		name string
		s    Setup
		word uint32
	}{
		// req 6581-9-1, 6581-9-2, 6581-9.2-1
		{"nothing", Setup{}, 0},
		{"IRD", Setup{IRD: 0x1234}, 0x12340000},
		{"ORD", Setup{ORD: 0x2345}, 0x00002345},
		{"largest depths", Setup{IRD: MaxDepth, ORD: MaxDepth}, 0x3FFE3FFE},
		{"depths left to the upper layer", Setup{IRD: NotNegotiated, ORD: NotNegotiated}, 0x3FFF3FFF},
		// req 6581-9.2-2
		{"peer to peer, every indication", Setup{PeerToPeer: true, RTR: all}, 0xC000C000},
		{"B is Send", Setup{PeerToPeer: true, RTR: RTRSend}, 0xC0000000},
		{"C is RDMA Write", Setup{PeerToPeer: true, RTR: RTRWrite}, 0x80008000},
		{"D is RDMA Read", Setup{PeerToPeer: true, RTR: RTRRead}, 0x80004000},
		{"all at once", Setup{1, 2, true, all}, 0xC001C002},
	} {
		check.Equal(t, row.name, row.s.encodeWord(), row.word)
		got := parseWord(row.word)
		check.That(t, got == row.s, "%s: %08x is %+v, want %+v", row.name, row.word, got, row.s)
	}
	// req 6581-9.2-11, 6581-9.2-13: in the client-server model no indication is named.
	check.Equal(t, "B, C or D without A", (Setup{RTR: all, IRD: 1}).encodeWord(), 0x00010000)
	// req 6581-9.2-14: and none is looked at.
	check.Equal(t, "B, C and D without A", parseWord(0x4001C002), (Setup{IRD: 1, ORD: 2}))
	b := JoinSetup(Setup{IRD: 0x0102, ORD: 0x0304}, []byte("private"))
	check.Slice(t, "message", b, []byte("\x01\x02\x03\x04private"))
}

func TestAnswerIsCutToWhatBothCan(t *testing.T) {
	const no = NotNegotiated
	for _, row := range []struct {
		name              string
		asked, own, reply Setup
	}{
		// req 6581-9.1-4, 6581-9.1-2
		{"the own ORD is cut to the initiator's IRD", Setup{IRD: 3, ORD: 9}, Setup{IRD: 16, ORD: 16, RTR: RTRWrite}, Setup{IRD: 16, ORD: 3}},
		{"the own ORD is less anyway", Setup{IRD: 30, ORD: 9}, Setup{IRD: 16, ORD: 16, RTR: RTRWrite}, Setup{IRD: 16, ORD: 16}},
		{"the own IRD is less than what is asked for: it is what there is", Setup{IRD: 30, ORD: 90}, Setup{IRD: 4, ORD: 5, RTR: RTRWrite}, Setup{IRD: 4, ORD: 5}},
		{"nothing at all", Setup{}, Setup{RTR: RTRWrite}, Setup{}},
		// req 6581-9.1-12, 6581-9.1-13
		{"the initiator leaves its ORD open", Setup{IRD: 3, ORD: no}, Setup{IRD: 16, ORD: 16, RTR: RTRWrite}, Setup{IRD: no, ORD: 3}},
		// req 6581-9.1-15
		{"the initiator leaves its IRD open", Setup{IRD: no, ORD: 3}, Setup{IRD: 16, ORD: 16, RTR: RTRWrite}, Setup{IRD: 16, ORD: no}},
		{"the responder leaves both open", Setup{IRD: 3, ORD: 3}, Setup{IRD: no, ORD: no, RTR: RTRWrite}, Setup{IRD: no, ORD: no}},
		// req 6581-9.2-4, 6581-9.2-5
		{"peer to peer: each that both support", Setup{PeerToPeer: true, RTR: RTRSend | RTRRead | RTRWrite}, Setup{RTR: RTRWrite | RTRRead}, Setup{PeerToPeer: true, RTR: RTRWrite | RTRRead}},
		{"peer to peer: the one that both support", Setup{PeerToPeer: true, RTR: RTRSend | RTRRead}, Setup{RTR: RTRWrite | RTRRead}, Setup{PeerToPeer: true, RTR: RTRRead}},
		// req 6581-9.2-6
		{"peer to peer: none in common, so the own ones", Setup{PeerToPeer: true, RTR: RTRSend}, Setup{RTR: RTRWrite | RTRRead}, Setup{PeerToPeer: true, RTR: RTRWrite | RTRRead}},
		// req 6581-9.2-3
		{"peer to peer: there is always one", Setup{PeerToPeer: true, RTR: RTRSend}, Setup{}, Setup{PeerToPeer: true, RTR: RTRWrite}},
		// req 6581-9.2-12
		{"client and server: so be it", Setup{}, Setup{PeerToPeer: true, RTR: RTRWrite}, Setup{}},
	} {
		reply := parseWord(row.own.Answer(row.asked).encodeWord())
		check.Equal(t, row.name, reply, row.reply)
	}
}

func TestConclusionRefusesWhatWasNotAskedFor(t *testing.T) {
	const no = NotNegotiated
	const all = RTRSend | RTRWrite | RTRRead
	for _, row := range []struct {
		name       string
		own, reply Setup
		ord        uint16
		first      RTR
		err        error
	}{
		// req 6581-9.1-9, 6581-9.1-2
		{"ORD is cut to the responder's IRD", Setup{IRD: 8, ORD: 9}, Setup{IRD: 4, ORD: 8}, 4, 0, nil},
		{"ORD is less anyway", Setup{IRD: 8, ORD: 9}, Setup{IRD: 40, ORD: 0}, 9, 0, nil},
		// req 6581-9.1-8, 6581-9.1-10
		{"more reads than IRD", Setup{IRD: 8, ORD: 9}, Setup{IRD: 40, ORD: 9}, 9, 0, ErrInsufficientIRD},
		{"more reads than IRD, from one that asks for none", Setup{IRD: 8, ORD: no}, Setup{IRD: 40, ORD: 9}, no, 0, ErrInsufficientIRD},
		{"more reads than IRD, from one that leaves its own open", Setup{IRD: 8, ORD: 9}, Setup{IRD: no, ORD: 9}, no, 0, ErrInsufficientIRD},
		{"any number of reads where the IRD is left open", Setup{IRD: no, ORD: 9}, Setup{IRD: 40, ORD: 0x3FFE}, 9, 0, nil},
		// req 6581-9.1-12, 6581-9.1-14
		{"the responder leaves its IRD open", Setup{IRD: 8, ORD: 9}, Setup{IRD: no, ORD: 8}, no, 0, nil},
		// req 6581-9.1-16
		{"the responder leaves its ORD open", Setup{IRD: 8, ORD: 9}, Setup{IRD: 5, ORD: no}, 5, 0, nil},
		{"the initiator left both open", Setup{IRD: no, ORD: no}, Setup{IRD: 5, ORD: 5}, no, 0, nil},
		// req 6581-9.2-8, 6581-9.3-1
		{"RDMA Write is preferred", Setup{ORD: 1, PeerToPeer: true, RTR: all}, Setup{IRD: 1, PeerToPeer: true, RTR: all}, 1, RTRWrite, nil},
		{"then RDMA Read", Setup{ORD: 1, PeerToPeer: true, RTR: all}, Setup{IRD: 1, PeerToPeer: true, RTR: RTRRead | RTRSend}, 1, RTRRead, nil},
		{"no RDMA Read where none may be pending", Setup{ORD: 1, PeerToPeer: true, RTR: all}, Setup{PeerToPeer: true, RTR: RTRRead | RTRSend}, 0, RTRSend, nil},
		{"RDMA Read with an ORD of the upper layer's", Setup{ORD: no, PeerToPeer: true, RTR: all}, Setup{IRD: no, PeerToPeer: true, RTR: RTRRead}, no, RTRRead, nil},
		// req 6581-9.2-9
		{"none in common", Setup{PeerToPeer: true, RTR: RTRWrite}, Setup{PeerToPeer: true, RTR: RTRRead | RTRSend}, 0, 0, ErrNoRTR},
		{"the responder knows none", Setup{PeerToPeer: true, RTR: all}, Setup{PeerToPeer: true}, 0, 0, ErrNoRTR},
		{"the responder has another model in mind", Setup{PeerToPeer: true, RTR: all}, Setup{}, 0, 0, ErrNoRTR},
		{"the responder wants a model that was not asked for", Setup{RTR: all}, Setup{PeerToPeer: true, RTR: all}, 0, 0, ErrNoRTR},
	} {
		ord, first, err := row.own.Conclude(row.reply)
		check.That(t, ord == row.ord && first == row.first && err == row.err,
			"%s: ORD %d, first %d, %v; want %d, %d, %v", row.name, ord, first, err, row.ord, row.first, row.err)
	}
}

// Whatever the two ends have, neither may ask for more than the other serves.
func TestNegotiationHolds(t *testing.T) {
	// req 6581-9.1-2, 6581-12-1
	rnd := rand.New(rand.NewPCG(6581, 1))
	depth := func() uint16 {
		if rnd.IntN(4) == 0 {
			return NotNegotiated
		}
		return uint16(rnd.IntN(20))
	}
	for range 20_000 {
		asked := Setup{IRD: depth(), ORD: depth(), PeerToPeer: rnd.IntN(2) == 0, RTR: RTR(rnd.IntN(8))}
		own := Setup{IRD: depth(), ORD: depth(), RTR: RTR(rnd.IntN(8))}
		reply := parseWord(own.Answer(parseWord(asked.encodeWord())).encodeWord())
		ord, first, err := asked.Conclude(reply)
		must.That(t, err != ErrInsufficientIRD, "%+v answered by %+v: %v", asked, reply, err)
		must.That(t, (ord == NotNegotiated || ord <= asked.ORD && ord <= own.IRD) &&
			(reply.ORD == NotNegotiated || reply.ORD <= own.ORD && reply.ORD <= asked.IRD),
			"%+v and %+v: initiator's ORD %d, reply %+v", asked, own, ord, reply)
		must.That(t, (err != nil || (first != 0) == asked.PeerToPeer) && reply.PeerToPeer == asked.PeerToPeer &&
			reply.PeerToPeer == (reply.RTR != 0),
			"%+v answered by %+v: first %d", asked, reply, first)
	}
}

// FuzzSetup takes connection data apart and puts it together again. What two ends make of each
// other's keeps the promises of RFC 6581.
func FuzzSetup(f *testing.F) {
	f.Add(uint32(0x40070009), uint32(0x80070009))
	f.Add(uint32(0x3FFF3FFF), uint32(0x00010001))
	f.Add(uint32(0xC0000000), uint32(0xC000C000))
	f.Fuzz(func(t *testing.T, w, other uint32) {
		asked := parseWord(w)
		want := w
		if w&bitA == 0 {
			want &^= bitB | bitC | bitD
		}
		must.That(t, asked.encodeWord() == want, "%#x became %+v and %#x", w, asked, asked.encodeWord())
		checkNegotiation(t, asked, parseWord(other))
	})
}

// checkNegotiation holds the promises of RFC 6581 section 9: neither end has more Reads pending
// than the other serves, and an indication is one that both ends support.
func checkNegotiation(t *testing.T, asked, own Setup) {
	reply := parseWord(own.Answer(asked).encodeWord())
	ord, first, err := asked.Conclude(reply)
	must.That(t, reply.PeerToPeer == asked.PeerToPeer, "%+v is answered by %+v: another model", asked, reply)
	if err != nil {
		return
	}
	must.That(t, (ord == NotNegotiated || reply.IRD == NotNegotiated || ord <= own.IRD) &&
		(reply.ORD == NotNegotiated || asked.IRD == NotNegotiated || reply.ORD <= asked.IRD),
		"%+v and %+v agree on %+v and ORD %d", asked, own, reply, ord)
	must.That(t, (first != 0) == asked.PeerToPeer && first&^(asked.RTR&reply.RTR) == 0, "%+v and %+v begin with %d",
		asked, reply, first)
}

// Private data of an enhanced message begins with connection data, and the upper layer's follows.
func TestPrivateDataIsTakenApart(t *testing.T) {
	for _, row := range []struct {
		name    string
		octets  string
		setup   *Setup
		private string
	}{
		{"connection data alone", "\x00\x01\x00\x02", &Setup{IRD: 1, ORD: 2}, ""},
		{"connection data and the upper layer's", "\x00\x01\x00\x02hi", &Setup{IRD: 1, ORD: 2}, "hi"},
		{"too short for connection data", "abc", nil, "abc"},
		{"nothing", "", nil, ""},
	} {
		setup, private := SplitSetup([]byte(row.octets))
		check.That(t, (setup == nil) == (row.setup == nil) && (setup == nil || *setup == *row.setup) &&
			string(private) == row.private, "%s: %+v and %q", row.name, setup, private)
	}
}

// What does not fit the connection data, or behind it, is refused before anything is sent.
func TestSetupIsChecked(t *testing.T) {
	longest := make([]byte, MaxEnhancedPrivateData)
	for _, row := range []struct {
		name    string
		s       Setup
		private []byte
		want    error
	}{
		{"nothing", Setup{}, nil, nil},
		{"the most", Setup{IRD: MaxDepth, ORD: MaxDepth}, longest, nil},
		{"left to the upper layer", LeftToULP, longest, nil},
		{"an IRD that does not fit", Setup{IRD: NotNegotiated + 1}, nil, ErrDepth},
		{"an ORD that does not fit", Setup{ORD: NotNegotiated + 1}, nil, ErrDepth},
		{"long private data", Setup{}, append(longest, 0), ErrPrivateDataTooLong},
	} {
		check.Equal(t, row.name, CheckSetup(row.s, row.private), row.want)
	}
}
