package assoc_test

import (
	"bytes"
	"errors"
	"math/rand"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Until there are keys the program waits, and nothing is sent but key management.
func TestNothingButKeysBeforeProtection(t *testing.T) {
	// req dtlschunk-5.1-14
	// req dtlskeys-4-1
	// req dtlschunk-6-3
	// req dtlschunk-1-1
	w, _, _ := keyWorld(t)
	for _, h := range w.Hosts {
		h.Source = &endless{}
	}
	a := w.Connect(protected)
	must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return a.State() == assoc.Established }), "%v", a.State())
	check.Error(t, "Send before there are keys", a.Send(w.Now, &assoc.Message{Body: [2][]byte{{1}}}), assoc.ErrNotUp)
	_, up := w.Hosts[0].Event(assoc.EventUp)
	check.That(t, !up && !a.IsProtected(), "the association is up without keys")
	w.RunUntil(w.Now.Add(time.Second), a.IsProtected)
	w.Each(func(s sctptest.Capture, c wire.Chunk) {
		check.That(t, c.Type() <= wire.ChunkCookieAck && c.Type() != wire.ChunkError || c.Type() == wire.ChunkDTLS, "%v", c.Type())
		if d, err := wire.AsData(c); err == nil {
			check.That(t, d.PPID() == 4242 && d.Stream() == 0 && !d.U(), "DATA in the clear: stream %d, PPID %d", d.Stream(), d.PPID())
		}
	})
	w.Run(time.Second)
	check.Error(t, "PPID of key management", a.Send(w.Now, &assoc.Message{PPID: 4242, Body: [2][]byte{{1}}}), assoc.ErrReservedPPID)
	for _, h := range w.Hosts {
		check.That(t, h.Source.(*endless).acked > 10, "%d messages of the Source are acknowledged", h.Source.(*endless).acked)
	}
}

// Whatever is lost in the handshake, there are keys in the end; and nothing else is.
func TestLossesInTheHandshake(t *testing.T) {
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		w, _, _ := keyWorld(t)
		w.Hosts[1].Reads = true
		a := w.Connect(protected)
		w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
			delay := time.Duration(rnd.Intn(40)) * time.Millisecond
			if rnd.Intn(100) < 12 {
				return 0, 0
			}
			return 1 + rnd.Intn(2), delay
		}
		must.That(t, w.RunUntil(w.Now.Add(40*time.Second), a.IsProtected), "seed %d: %v, %v", seed, w.Hosts[0].Events, w.Hosts[1].Events)
		w.Send(a, 0, []byte("x"))
		w.Run(time.Minute)
		check.Equal(t, "received", w.Hosts[1].Received.String(), "x")
	}
}

// What somebody adds in the clear before there are keys ends the set-up, or changes nothing. It
// never takes the place of what the peer seals later.
func TestForgeriesBeforeProtection(t *testing.T) {
	forward := wire.AppendForwardTSN(nil, 1<<20, nil)
	for _, c := range []struct {
		name string
		ends string // "" : the association comes up as if nothing had been
		make func(next wire.TSN) []byte
	}{
		{"DATA of a program", "not key management", func(next wire.TSN) []byte { return sctptest.DataChunk(next, 0, 9, "forged") }},
		{"DATA of a program, later", "not key management", func(next wire.TSN) []byte { return sctptest.DataChunk(next+9, 3, 0, "forged") }},
		{"key management on stream 1", "stream 0", func(next wire.TSN) []byte {
			c := keyData(next, 3, "forg")
			c[9] = 1
			return c
		}},
		{"unordered key management", "stream 0", func(next wire.TSN) []byte { return keyData(next, 7, "forg") }},
		{"a message that is none", "malformed", func(next wire.TSN) []byte { return keyData(next, 3, "forg") }},
		{"a message of a later epoch", "key management", func(next wire.TSN) []byte { return keyData(next, 3, "\x05\x16\x03\x03\x00\x01\x02") }},
		{"Protection Established", "key management", func(next wire.TSN) []byte { return keyData(next, 3, "\x83\x01") }},
		{"a control message of a later draft", "key management", func(next wire.TSN) []byte { return keyData(next, 3, "\x83\x07") }},
		{"a fragment in the middle", "fragment", func(next wire.TSN) []byte { return keyData(next, 0, "forg") }},
		{"what the peer is to send next but one", "", func(next wire.TSN) []byte { return keyData(next+40, 3, "\x03\x16\x03\x03\x00\x01\x02") }},
		{"FORWARD TSN", "-", func(next wire.TSN) []byte { return forward }},
		{"I-DATA", "-", func(next wire.TSN) []byte {
			return append(wire.AppendIDataHeader(nil, wire.IDataFields{Flags: 3, TSN: next, PPID: 4242, PayloadLen: 4}), 1, 2, 3, 4)
		}},
		{"RE-CONFIG", "-", func(next wire.TSN) []byte {
			return wire.CloseChunk(wire.AppendOutgoingReset(wire.AppendReconfig(nil), 1, 2, 3, nil), 0)
		}},
	} {
		for to := range 2 {
			t.Run(c.name+" to host "+string(rune('0'+to)), func(t *testing.T) {
				w, _, _ := keyWorld(t)
				w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
				a := w.Connect(protected)
				must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return len(w.Seen(0, wire.ChunkData)) > 0 }), "no ClientHello")
				w.Run(sctptest.Latency / 2)
				ends := [2]*assoc.Assoc{a, w.Peer()}
				x := ends[to]
				deliver(w, to, resum(sctptest.Packet(ends[1-to].LocalPort(), x.LocalPort(), x.LocalTag(), c.make(x.CumTSN()+1))))
				w.Run(2 * time.Minute)
				if c.ends == "-" {
					must.That(t, a.IsProtected() && x.Stats().Unprotected == 1, "%v %v", w.Hosts[0].Events, w.Hosts[1].Events)
					w.Send(a, 0, []byte("x"))
					w.Run(time.Second)
					check.Equal(t, "received", w.Hosts[1].Received.String(), "x")
					return
				}
				err, ended := w.Hosts[to].DownErr()
				must.That(t, ended && strings.Contains(err.Error(), c.ends), "%v", err)
				check.That(t, w.Hosts[0].Received.Len()+w.Hosts[1].Received.Len() == 0, "something was delivered")
				_, up := w.Hosts[to].Event(assoc.EventUp)
				check.That(t, !up, "it came up")
			})
		}
	}
}

// An attacker knows the TSNs, and adds records behind the client's last flight before the server
// has looked at it. That is found out: else the TSN of the first sealed message would be taken.
func TestRecordsBehindTheHandshake(t *testing.T) {
	for behind, want := range []string{1: "follows the end of the handshake", 2: "follows the end of the handshake"} {
		if behind == 0 {
			continue
		}
		w, _, server := keyWorld(t)
		a := w.Connect(protected)
		w.Hosts[1].OnRecv = func(now rawio.Time, b *assoc.Assoc) {
			if f := server; len(f.todo) > 0 && f.log[0] == "server" && len(w.Seen(0, wire.ChunkData)) == 2 {
				w.Hosts[1].OnRecv = nil
				deliver(w, 1, resum(sctptest.Packet(sctptest.PortA, sctptest.PortB, b.LocalTag(),
					keyData(b.CumTSN()+wire.TSN(behind), 3, "\x03\x17\x03\x03\x00\x01\x02"))))
			}
		}
		w.Run(time.Minute)
		err, _ := w.Hosts[1].DownErr()
		check.That(t, strings.Contains(err.Error(), want), "%d behind: %v", behind, err)
		check.Equal(t, "state of the client", a.State(), assoc.Closed)
	}
}

// A server that does not accept its client says so by an alert, which arrives before the ABORT.
func TestRefusedClient(t *testing.T) {
	w, _, server := keyWorld(t)
	server.refuses = errors.New("not this one")
	a := w.Connect(protected)
	w.Run(10 * time.Second)
	for i, want := range []string{"alert of the peer", "not this one"} {
		err, ok := w.Hosts[i].DownErr()
		check.That(t, ok && strings.Contains(err.Error(), want), "host %d: %v", i, err)
		_, up := w.Hosts[i].Event(assoc.EventUp)
		check.That(t, !up, "host %d came up", i)
	}
	check.Equal(t, "state", a.State(), assoc.Closed)
}

// A handshake that the peer does not go on with ends the association in time.
func TestHandshakeTimeout(t *testing.T) {
	w, _, server := keyWorld(t)
	a := w.Connect(protected)
	w.Hosts[1].Work = nil // its TLS does nothing
	_ = server
	w.Run(29 * time.Second)
	check.Equal(t, "state", a.State(), assoc.Established)
	w.Run(3 * time.Second)
	err, _ := w.Hosts[1].DownErr() // which has waited a little longer
	check.That(t, err != nil && strings.Contains(err.Error(), "not ended in time"), "%v", err)
	check.Equal(t, "state", a.State(), assoc.Closed)
}

// A peer that crashes in the handshake, and begins anew, is a new peer.
func TestRestartInTheHandshake(t *testing.T) {
	w, _, _ := keyWorld(t)
	w.Connect(protected)
	must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return len(w.Hosts[1].Assocs) == 1 }), "no association")
	w.Hosts[0].Reboot(99, 0)
	w.Hosts[0].Assocs = nil
	attachTLS(w.Hosts[0])
	a := w.Connect(protected)
	w.Run(10 * time.Second)
	b := w.Peer()
	must.That(t, a.IsProtected() && b.IsProtected() && b.Incarnation() == 2, "%v %v life %d: %v", a.State(), b.State(),
		b.Incarnation(), w.Hosts[1].Events)
	var kinds []assoc.EventKind
	for _, e := range w.Hosts[1].Events {
		kinds = append(kinds, e.Kind)
	}
	check.Slice(t, "events", kinds, []assoc.EventKind{assoc.EventUp})
	w.Send(a, 0, []byte("x"))
	w.Run(time.Second)
	check.Equal(t, "received", string(bytes.Join(sctptest.Drain(b), nil)), "x")
}

// Rekeys of either side, with losses and messages under way: nothing is lost, no record comes
// twice.
func TestRekeysUnderLoad(t *testing.T) {
	// req dtlskeys-6.2.2-2, dtlskeys-6.2.2-6
	w, a, b := protectedPair(t)
	rnd := rand.New(rand.NewSource(3))
	w.Filter = func(int, wire.Packet) (int, time.Duration) {
		if rnd.Intn(100) < 3 {
			return 0, 0
		}
		return 1, time.Duration(rnd.Intn(20)) * time.Millisecond
	}
	ends := [2]*assoc.Assoc{a, b}
	var got [2]bytes.Buffer
	var sent [2]bytes.Buffer
	for round := range 40 {
		ends[round%2].Rekey(w.Now)
		if round%5 == 0 {
			ends[1-round%2].Rekey(w.Now)
		}
		for range 20 {
			for i, x := range ends {
				m := make([]byte, 1+rnd.Intn(4000))
				rnd.Read(m)
				sent[i].Write(m)
				w.Send(x, 0, m)
			}
			w.Run(time.Second)
			for i, x := range ends {
				for _, m := range sctptest.Drain(x) {
					got[1-i].Write(m)
				}
			}
		}
		w.Run(110 * time.Second)
	}
	w.Run(time.Minute)
	for i, x := range ends {
		for _, m := range sctptest.Drain(x) {
			got[1-i].Write(m)
		}
	}
	for i := range ends {
		check.That(t, bytes.Equal(got[i].Bytes(), sent[i].Bytes()), "host %d: %d octets of %d", i, got[i].Len(), sent[i].Len())
		_, down := w.Hosts[i].DownErr()
		check.That(t, !down, "host %d: the association has ended", i)
	}
	seen := map[string]bool{}
	epochs := map[byte]bool{}
	for _, s := range w.Sent {
		if isSealed(s.Pkt) {
			must.That(t, !seen[string(s.Pkt)], "a record was sent twice")
			seen[string(s.Pkt)], epochs[s.Pkt[17]] = true, true
		}
	}
	check.Equal(t, "epochs, modulo 4", len(epochs), 4)
}

// A shutdown does not wait for key management, whatever that waits for.
func TestShutdownInARekey(t *testing.T) {
	// req dtlschunk-5.3-1
	w, a, b := protectedPair(t)
	w.Hosts[1].Work = nil // its TLS does not answer
	a.Rekey(w.Now)
	w.Send(b, 0, []byte("last"))
	w.Run(time.Second)
	must.OK(t, b.Shutdown(w.Now))
	w.Run(time.Second)
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v", i, err)
	}
	check.Equal(t, "received", string(bytes.Join(sctptest.Drain(a), nil)), "last")
}

// An association that rests, and has given memory back, goes on.
func TestProtectedIdle(t *testing.T) {
	w, a, b := protectedPair(t)
	for range 3 {
		w.Run(time.Minute)
		check.That(t, a.GoIdle() && b.GoIdle(), "not idle")
		w.Send(b, 0, []byte("x"))
		w.Run(time.Second)
		check.Equal(t, "received", string(bytes.Join(sctptest.Drain(a), nil)), "x")
	}
}

// Sealed packets are no longer than the path carries, also while that is searched for; and a record
// is not longer than it may be.
func TestMTUOfSealedPackets(t *testing.T) {
	// req dtlschunk-5.2-7
	// req dtlschunk-3.2-3: probes too
	// req dtlschunk-5.2-1, dtlschunk-5.2-2
	// req dtlschunk-5.2-3
	for _, c := range []struct {
		name       string
		addrs      [2]netip.AddrPort
		link, path int
		want       int // IP packet
	}{
		{"Ethernet", sctptest.IPv4, 1500, 0, 1500},
		{"over UDP", sctptest.UDP, 1500, 0, 1500},
		{"a path below the link", sctptest.IPv4, 9000, 4000, 4000},
		{"a link beyond a record", sctptest.IPv4, 65535, 0, 20 + wire.CommonHeaderLen + seal.MaxContent + seal.Overhead},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, c.addrs, c.link, simnet.Params{MTU: c.path})
			attachTLS(r.Hosts[0])
			attachTLS(r.Hosts[1])
			a, b := r.Join(protected, protected)
			must.That(t, r.RunUntil(r.Now.Add(10*time.Second), func() bool { return a.IsProtected() && b.IsProtected() }), "no keys")
			before := len(r.Sent)
			r.Run(2 * time.Minute)
			all := r.Talk(0, 50, 100_000)
			r.Run(time.Minute)
			check.That(t, bytes.Equal(r.Hosts[1].Received.Bytes(), all), "%d octets of %d", r.Hosts[1].Received.Len(), len(all))
			longest := 0
			for _, s := range r.Sent[before:] {
				must.That(t, isSealed(s.Pkt), "%v in the clear", sctptest.ChunkTypes(s.Pkt))
				if c.path == 0 {
					must.That(t, len(s.Pkt)+rawio.Overhead(s.Remote) <= min(c.link, c.want), "a packet of %d octets", len(s.Pkt))
				}
				if longest = max(longest, len(s.Pkt)+rawio.Overhead(s.Remote)); s.Fragment > 0 {
					t.Fatalf("a packet of %d octets in fragments", len(s.Pkt))
				}
			}
			got := a.PathStats(0).MTU
			check.That(t, got <= c.want && got > c.want-80, "MTU %d, want %d or a little less", got, c.want)
			check.That(t, longest <= c.want || c.path > 0, "the longest packet has %d octets", longest)
		})
	}
}

// openedBy returns the packets for which the client's sealed ones stand, of the first epoch. None
// has padding of DTLS.
func openedBy(t *testing.T, w *sctptest.World, client *fakeTLS) (list []wire.Packet) {
	t.Helper()
	o := must.Get(seal.NewOpener(0, &client.used[keymgmt.ByClient], seal.FirstEpoch, seal.MaxReplayWindow))(t)
	for _, s := range w.Sent {
		if s.From != 0 || !isSealed(s.Pkt) {
			continue
		}
		d := must.Get(wire.AsDTLS(sctptest.ChunkOf(s.Pkt, wire.ChunkDTLS)))(t)
		content := must.Get(o.Open(0, bytes.Clone(d.Record()), nil))(t)
		check.Equal(t, "octets of a record beside its chunks", len(d.Record())-len(content), 3+1+16)
		list = append(list, append(bytes.Clone(s.Pkt[:wire.CommonHeaderLen]), content...))
	}
	return list
}

// Probes are padded by a PAD chunk within the record, and no record is padded by DTLS.
func TestSealedProbesHavePADChunks(t *testing.T) {
	// req dtlschunk-3.2-4
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 9000, simnet.Params{MTU: 4000})
	client := attachTLS(r.Hosts[0])
	attachTLS(r.Hosts[1])
	a, b := r.Join(protected, protected)
	must.That(t, r.RunUntil(r.Now.Add(10*time.Second), func() bool { return a.IsProtected() && b.IsProtected() }), "no keys")
	r.Run(2 * time.Minute)
	probes := 0
	for _, pkt := range openedBy(t, r.World, client) {
		if len(pkt) < 1000 {
			continue
		}
		probes++
		check.Slice(t, "chunks of a probe", sctptest.ChunkTypes(pkt), []wire.ChunkType{wire.ChunkHeartbeat, wire.ChunkPad})
	}
	check.That(t, probes > 0, "no probes")
}

// ICMP ends nothing under protection.
func TestUnreachableUnderProtection(t *testing.T) {
	w, a, _ := protectedPair(t)
	w.Run(time.Hour) // nothing was heard for long
	quote := wire.AppendHeader(nil, sctptest.PortA, sctptest.PortB, a.PeerTag())
	w.Hosts[0].Receive(w.Now, &rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: quote, Local: w.Hosts[0].Addr, Remote: w.Hosts[1].Addr})
	check.Equal(t, "state", a.State(), assoc.Established)
	check.Equal(t, "reports ignored", a.Stats().ICMPIgnored, 1)
}

// SACKs of the server's flight that are lost keep nobody from having keys.
func TestFlightWithoutSacks(t *testing.T) {
	w, _, _ := keyWorld(t)
	a := w.Connect(protected)
	sealedFrom := w.Now.Add(3 * time.Second) // before that what says that there are keys is lost, too
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && sctptest.Has(pkt, wire.ChunkSack) || isSealed(pkt) && w.Now < sealedFrom {
			return 0, 0
		}
		return 1, 0
	}
	must.That(t, w.RunUntil(w.Now.Add(10*time.Second), a.IsProtected), "%v %v", w.Hosts[0].Events, w.Hosts[1].Events)
}

// Messages of key management hold a bounded amount of memory, and the program does not hear of
// them.
func TestKeyMessagesAreBoundedAndUnheard(t *testing.T) {
	w, client, _ := keyWorld(t)
	a := w.Connect(protected)
	must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return len(client.log) > 0 }), "no handshake")
	w.Flush()
	next := a.CumTSN() + 1
	for i := range wire.TSN(140) {
		flags := uint8(0)
		if i == 0 {
			flags = wire.FlagB
		}
		deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, a.LocalTag(),
			keyData(next+i, flags, strings.Repeat("x", 1000)))))
		check.That(t, i > 128 || a.State() == assoc.Established, "%v after %d fragments", a.State(), i)
	}
	w.Flush()
	err, ok := w.Hosts[0].DownErr()
	check.That(t, ok && strings.Contains(err.Error(), "131072"), "%v", err)
	check.Equal(t, "messages that have failed, to the program", len(w.Hosts[0].Tokens(assoc.EventSendFailed)), 0)
}

// A DTLS chunk with another behind it is not even opened.
func TestBundledRecord(t *testing.T) {
	// req dtlschunk-5.2-8
	w, a, b := protectedPair(t)
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && isSealed(pkt) {
			before := b.Stats()
			deliver(w, 1, resum(append(bytes.Clone(pkt), wire.AppendCookieAck(nil)...)))
			after := b.Stats()
			check.That(t, after.Unprotected == before.Unprotected+1 && after.Keys == before.Keys, "%+v", after.Keys)
		}
		return 1, 0
	}
	w.Send(a, 0, []byte("x"))
	w.Run(time.Second)
	check.Equal(t, "received", string(bytes.Join(sctptest.Drain(b), nil)), "x")
}
