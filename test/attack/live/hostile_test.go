//go:build linux

package main

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testpriv"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// TestMain lets the test's own binary be the victim and the honest client.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--role" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestReactionsAreNamed(t *testing.T) {
	term := rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: 5}
	segment := forge.Numbered(3, forge.Untagged(rdmap.OpTerminate, rdmap.QueueTerminate, 1, 0, term.Append(nil)))
	data := func(ppid uint32, b []byte) []byte { return dataChunk(nil, 1, whole|wire.FlagU, 0, 0, ppid, b) }
	for _, row := range []struct {
		name   string
		chunks []byte
		want   []string
	}{
		{"an ABORT with its causes", wire.CloseChunk(wire.AppendCause(wire.AppendAbort(nil, true), wire.CauseProtocolViolation, []byte("x")), 0), []string{"ABORT 13"}},
		{"an ABORT without", wire.AppendAbort(nil, false), []string{"ABORT"}},
		{"an ERROR", wire.CloseChunk(wire.AppendStaleCookieCause(wire.AppendError(nil), 1), 0), []string{"ERROR 3"}},
		{"each chunk of a packet, but not PAD", wire.AppendPad(wire.AppendHeartbeat(wire.AppendCookieAck(nil), nil), 40), []string{"COOKIE ACK", "HEARTBEAT"}},
		{"a Terminate by layer, type and code", data(ddpadapt.PPIDSegment, segment), []string{"Terminate 1/2/5"}},
		{"a Session Terminate", data(ddpadapt.PPIDControl, forge.Control(0, forge.Terminate, nil)), []string{"session Terminate"}},
		{"an Accept", data(ddpadapt.PPIDControl, forge.Control(0, forge.Accept, nil)), []string{"Accept"}},
		{"a Read Response", data(ddpadapt.PPIDSegment, forge.Numbered(0, forge.Tagged(rdmap.OpReadResponse, 1, 2, []byte("data")))), []string{"Read Response"}},
		{"other DATA", data(0, []byte("hello")), []string{"DATA"}},
	} {
		check.Slice(t, row.name, chunkNames(forge.Packet(1, 2, 3, row.chunks)), row.want)
	}
}

func TestAnswersAreCountedByWhomTheyReach(t *testing.T) {
	for f, headers := range map[*family]uint64{&ipv4: 20, &ipv6: 40} {
		w := &wireTap{}
		r := newRecord(f)
		to := func(a netip.Addr, chunks []byte) {
			r.noteIPPacket(w.carrySCTP(f.victimAddr, a, 0, forge.Packet(portSCTP, 7, 1, chunks)), false)
		}
		to(hostAddr(f.attackers, 3), wire.AppendCookieAck(nil))
		to(hostAddr(f.innocents, 300), wire.AppendAbort(nil, true))
		check.That(t, !r.leaked, "something leaked")
		to(hostAddr(f.attackers, 3), dataChunk(nil, 1, whole, 0, 0, 0, append([]byte("x"), secret...)))
		got, want := r.kindsSeen(nil), []string{"ABORT" + third, "COOKIE ACK", "DATA"}
		check.That(t, slices.Equal(got, want), "%s: seen %q, want %q", f.name, got, want)
		own, _ := r.volumeTo(false)
		away, octets := r.volumeTo(true)
		check.That(t, own == 2 && away == 1 && octets == headers+12+4 && r.leaked,
			"%s: %d packets to the attacker, %d of %d octets to others, leaked %v", f.name, own, away, octets, r.leaked)
	}
}

// What the kernel says to its neighbours is no reaction, and a first fragment is the packet that it
// begins.
func TestPacketsOfIPv6(t *testing.T) {
	from, to := ipv6.victimAddr, hostAddr(ipv6.attackers, 3)
	solicitation := append([]byte{135, 0, 0, 0}, make([]byte, 20)...)
	listener := append([]byte{58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0}, make([]byte, 4)...)
	ack := forge.Packet(portSCTP, 7, 1, wire.AppendCookieAck(nil))
	for _, row := range []struct {
		name   string
		packet []byte
		want   []string
	}{
		{"a Neighbor Solicitation", buildPacket(ipHeaderOf(from, to, layers.IPProtocolICMPv6), gopacket.Payload(solicitation)), nil},
		{"a report of groups", buildPacket(ipHeaderOf(from, netip.MustParseAddr("ff02::16"), layers.IPProtocolIPv6HopByHop), gopacket.Payload(listener)), nil},
		{"SCTP for a group", (&wireTap{}).carrySCTP(from, netip.MustParseAddr("ff02::1"), 0, ack), []string{"COOKIE ACK" + third}},
		{"an ICMPv6 error", buildPacket(ipHeaderOf(from, to, layers.IPProtocolICMPv6), gopacket.Payload([]byte{1, 4, 0, 0, 0, 0, 0, 0})), []string{"ICMP 1/4"}},
		{"a first fragment", ipFragment(from, to, 1, 0, true, ack), []string{"COOKIE ACK"}},
		{"a later one", ipFragment(from, to, 1, 8, false, ack), nil},
	} {
		r := newRecord(&ipv6)
		r.noteIPPacket(row.packet, false)
		check.Slice(t, row.name, r.kindsSeen(nil), row.want)
	}
}

// Over IPv6 a receiver drops datagrams whose checksum field is zero (RFC 8200 section 8.1).
func TestNoDatagramIsWithoutChecksum(t *testing.T) {
	for _, f := range []*family{&ipv4, &ipv6} {
		for i := range 1 << 16 {
			b := udpDatagram(f.victimAddr, f.friendAddr, 1, []byte{byte(i >> 8), byte(i)})
			must.That(t, b[len(b)-4] != 0 || b[len(b)-3] != 0, "%s: %x", f.name, b)
		}
	}
}

func TestTableTakesItsPlaceInADocument(t *testing.T) {
	r := &report{Rate: 7, Rows: []*row{{Name: "one", RFC: "5062 1", Base: 2, Attack: 0.9, Control: 1,
		Failures: []string{"memory"}}}}
	first := insertSection("# Reliability\n", r.docSection())
	r.Rate = 8
	second := insertSection(first+"\nafter\n", r.docSection())
	for _, want := range []string{"# Reliability\n", "| one | 5062 1 |", "90%", "FAILS: memory", "8 packets a second",
		"1 attacks, 1 failed", "\nafter\n"} {
		check.That(t, strings.Contains(second, want), "%q is missing in\n%s", want, second)
	}
	check.That(t, !strings.Contains(second, "7 packets a second") && strings.Count(second, docsBegin) == 1,
		"the old table is still there:\n%s", second)
}

// A throughput below 80% fails, unless packets for nobody take as much.
func TestThroughputVerdict(t *testing.T) {
	for _, c := range []struct {
		attack, control float64
		want            bool
	}{{0.81, 1, true}, {0.79, 1, false}, {0.79, 0.81, false}, {0.6, 0.7, true}, {0.5, 0.7, false}} {
		got := (&arena{}).keepsThroughput(&row{Attack: c.attack, Control: c.control})
		check.That(t, got == c.want, "%v beside the attack, %v beside nobody's packets: %v", c.attack, c.control, got)
	}
}

// Each window is compared with the undisturbed ones around it, so that a machine that becomes
// slower does not count.
func TestSharesOfThroughput(t *testing.T) {
	v := []float64{100, 45, 80, 72, 80, 30, 40, 36, 40}
	base, control, attack := flowShares(v)
	check.That(t, base == 80 && control == 0.5 && attack == 0.9, "base %v, control %v, attack %v", base, control,
		attack)
}

// The whole thing, and that a wrong reaction does not pass: the victim answers INITs.
func TestAttacksOverTheWire(t *testing.T) {
	testpriv.Require(t, "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_NET_RAW")
	for _, f := range []*family{&ipv4, &ipv6} {
		t.Run(f.name, func(t *testing.T) { attackSome(t, f) })
	}
}

func attackSome(t *testing.T, f *family) {
	all := allAttacks(f)
	pick := func(name string) attack {
		return all[slices.IndexFunc(all, func(a attack) bool { return a.name == name && !a.udp })]
	}
	wrong := pick("INIT flood, nothing follows")
	wrong.name, wrong.must = "INIT flood that is to be dropped silently", nil
	r := &report{}
	o := options{rate: 2000, quiet: 40 * time.Millisecond}
	must.OK(t, attackOver(f, o, false, []attack{pick("INIT flood, nothing follows"), wrong,
		pick("Write past the end of a region")}, r))
	nothing := func(r *row) bool { return r.Packets == 0 || r.PeakRSS == 0 }
	if len(r.Rows) != 3 || slices.ContainsFunc(r.Rows, nothing) || len(r.Rows[0].Failures) != 0 ||
		len(r.Rows[2].Failures) != 0 {
		r.writeText(t.Output())
		t.Error("verdicts")
	}
	check.Slice(t, "an answer that is not to be", r.Rows[1].Failures, []string{"INIT ACK"})
}
