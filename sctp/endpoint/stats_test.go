package endpoint_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/count"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Every counter counts, once for each packet that it is about: there is a row for each field.
func TestEveryCounterCounts(t *testing.T) {
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	const tag = 0x12345678
	rows := map[string]func(b *bench){
		"Malformed": func(b *bench) { b.receive(packet(0, localPort, tag, beat)) },
		"BadChecksum": func(b *bench) {
			pkt := packet(peerPort, localPort, tag, beat)
			pkt[9] ^= 1
			b.receive(pkt)
		},
		"BadAddress": func(b *bench) {
			b.receiveFrom(netip.MustParseAddrPort("239.1.2.3:0"), hostAddr, packet(peerPort, localPort, tag, beat))
		},
		"StrayReports": func(b *bench) {
			b.ep.Lookup(&rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: packet(localPort, peerPort, 7)[:8], Remote: peerAddr})
		},
		"InitsMalformed": func(b *bench) {
			f := goodInit
			f.Tag = 0
			b.receive(packet(peerPort, localPort, 0, initChunk(f)))
		},
		"BadCookies": func(b *bench) {
			b.receive(packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, []byte("forged"))))
		},
		"RateLimited": func(b *bench) {
			for range 4 {
				b.receive(packet(peerPort, localPort, tag, beat))
			}
		},
		"AnswersDropped": func(b *bench) {
			for i := range 129 { // without sending in between
				p := rawio.Packet{Data: packet(peerPort, localPort, tag, beat), Local: hostAddr,
					Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), 0)}
				b.ep.HandleUnmatched(b.now, &p)
			}
		},
		"OutOfBlue":    func(b *bench) { b.receive(packet(peerPort, localPort, tag, wire.AppendAbort(nil, false))) },
		"Reflected":    func(b *bench) { b.receive(packet(peerPort, localPort, tag, beat)) },
		"InitAcks":     func(b *bench) { b.cookieOf(goodInit) },
		"InitsRefused": func(b *bench) { b.receive(packet(peerPort, localPort+1, 0, initChunk(goodInit))) },
		"AddressesIgnored": func(b *bench) {
			var list []byte
			for i := range assoc.MaxPaths { // the packet's source is one too
				list = wire.AppendAddressParam(list, netip.AddrFrom4([4]byte{10, 2, 0, byte(i)}))
			}
			b.cookieOf(goodInit, list)
		},
		"StaleCookies": func(b *bench) {
			tag, cookie := b.cookieOf(goodInit)
			b.now = b.now.Add(2 * time.Minute)
			b.receive(packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
		},
		"CookiesRefused": func(b *bench) {
			tag, cookie := b.cookieOf(goodInit)
			b.ep.Unlisten(localPort)
			b.receive(packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
		},
		"AssocsRefused": func(b *bench) {
			for port := range uint16(2) {
				b.establish(peerAddr, peerPort+port)
			}
		},
		"AssocsAccepted": func(b *bench) { b.establish(peerAddr, peerPort) },
	}
	count.Each(endpoint.Stats{}, func(name string, _ uint64) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, endpoint.Config{MaxAnswers: 3, MaxPerSource: 1})
			if err := b.ep.Listen(localPort, nil); err != nil {
				t.Fatal(err)
			}
			drive := rows[name]
			if drive == nil {
				t.Fatal("nothing here makes it count")
			}
			drive(b)
			count.Each(b.ep.Stats(), func(other string, v uint64) {
				if other == name && v != 1 {
					t.Errorf("it is %d, want 1", v)
				}
			})
		})
	})
}

// establish goes through the handshake of a peer and returns the association, nil if it was refused.
func (b *bench) establish(from netip.AddrPort, port uint16) *assoc.Assoc {
	b.t.Helper()
	list, _ := b.receiveFrom(from, hostAddr, packet(port, localPort, 0, initChunk(goodInit)))
	tag, cookie := b.cookieIn(list)
	if cookie == nil {
		b.t.Fatal("no cookie")
	}
	_, a := b.receiveFrom(from, hostAddr, packet(port, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
	return a
}

// An address may set up so many associations and no more; the next is refused by ABORT with Out of Resource
// until one of them ends, and others are not concerned.
func TestAssociationsOfOneSource(t *testing.T) {
	b := newBench(t, endpoint.Config{MaxPerSource: 2})
	if err := b.ep.Listen(localPort, nil); err != nil {
		t.Fatal(err)
	}
	other := netip.MustParseAddrPort("10.0.0.10:0")
	first, second := b.establish(peerAddr, 1), b.establish(peerAddr, 2)
	b.ep.Refresh(second) // as on EventUp
	if first == nil || second == nil || b.establish(peerAddr, 3) != nil {
		t.Fatal("not two of them")
	}
	if b.establish(other, 1) == nil {
		t.Error("another source was refused")
	}
	b.ep.Remove(first)
	if b.establish(peerAddr, 3) == nil {
		t.Error("refused although one has ended")
	}
	if s := b.ep.Stats(); s.AssocsRefused != 1 || s.AssocsAccepted != 4 {
		t.Errorf("%d accepted, %d refused", s.AssocsAccepted, s.AssocsRefused)
	}
}

// A source gets so many answers in a second; what it sends beyond is dropped, others get theirs, and with the
// next second it has answers again.
func TestAnswersOfOneSource(t *testing.T) {
	b := newBench(t, endpoint.Config{MaxAnswers: 10, AnswerKey: 0x0123456789abcdef})
	if err := b.ep.Listen(localPort, nil); err != nil {
		t.Fatal(err)
	}
	other := netip.MustParseAddrPort("10.0.0.10:0")
	init := packet(peerPort, localPort, 0, initChunk(goodInit))
	blue := packet(peerPort, localPort, 7, wire.AppendHeartbeat(nil, []byte("x")))
	answers := func(from netip.AddrPort) (n int) {
		for range 10 {
			for _, pkt := range [][]byte{init, blue} {
				list, _ := b.receiveFrom(from, hostAddr, pkt)
				n += len(list)
			}
		}
		return n
	}
	for second := range 3 {
		if n, m := answers(peerAddr), answers(other); n != 10 || m != 10 {
			t.Errorf("second %d: %d and %d answers", second, n, m)
		}
		b.now = b.now.Add(time.Second)
	}
	if s := b.ep.Stats(); s.RateLimited != 60 {
		t.Errorf("%d packets counted as too many", s.RateLimited)
	}
}
