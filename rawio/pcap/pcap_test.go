package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/mem"
)

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	tap := must.Get(Create(a, filepath.Join(t.TempDir(), "file")))(t)
	linktest.AtOnce(t, tap, b, rawio.Packet{Vec: [][]byte{make([]byte, 40)}, Remote: b.LocalAddrs()[0]}, func() { tap.Skipped(); tap.Flush(); tap.PollBatch(nil) })
}

// record is one packet of a file, with its headers decoded.
type record struct {
	intf     int
	at       time.Time
	src, dst netip.AddrPort
	udp      bool
	ecn      uint8
	sctp     []byte
}

// readBack decodes a file and checks every length and checksum in it. Wireshark reads one too, in test/wireshark.
func readBack(t *testing.T, file io.Reader) (recs []record) {
	t.Helper()
	data := must.Get(io.ReadAll(file))(t)
	var kinds []uint32
	for len(data) > 0 {
		n := le.Uint32(data[4:])
		must.That(t, n%4 == 0 && int(n) <= len(data) && le.Uint32(data[n-4:]) == n, "a block of %d octets, of %d", n, len(data))
		kinds = append(kinds, le.Uint32(data))
		b := data[8 : n-4]
		data = data[n:]
		switch i := len(kinds) - 1; i {
		case 0:
			must.That(t, bytes.HasPrefix(b, []byte("\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")) && bytes.HasSuffix(b, []byte("\x04\x00\x04\x00rddp\x00\x00\x00\x00")), "section %x", b)
		case 1, 2:
			name := [...]string{"\x04\x00sent", "\x08\x00received"}[i-1]
			must.Equal(t, "interface", string(b), "\x65\x00\x00\x00\x00\x00\x00\x00\x02\x00"+name+"\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00")
		default:
			size := le.Uint32(b[12:])
			must.That(t, le.Uint32(b[16:]) == size && int(size+3)&^3 == len(b)-20, "capture lengths %d and %d in %d octets", size, le.Uint32(b[16:]), len(b)-20)
			rec := decode(t, b[20:20+size])
			rec.intf, rec.at = int(le.Uint32(b)), time.Unix(0, int64(le.Uint32(b[4:]))<<32|int64(le.Uint32(b[8:])))
			recs = append(recs, rec)
		}
	}
	must.That(t, len(kinds) >= 3 && kinds[0] == 0x0a0d0d0a && kinds[1] == 1 && kinds[2] == 1, "blocks %x", kinds)
	for _, k := range kinds[3:] {
		must.Equal(t, "block", k, 6)
	}
	return recs
}

func decode(t *testing.T, data []byte) (rec record) {
	t.Helper()
	var proto byte
	var pseudo []byte
	if data[0] == 0x45 {
		must.That(t, int(binary.BigEndian.Uint16(data[2:])) == len(data) && sum(data[:20]) == 0 && data[6] == 0x40 && data[7] == 0 && data[8] == 64,
			"IPv4 header %x in front of %d octets", data[:20], len(data))
		proto, rec.ecn, pseudo, rec.sctp = data[9], data[1], slices.Clone(data[12:20]), data[20:]
	} else {
		must.That(t, data[0] == 0x60 && int(binary.BigEndian.Uint16(data[4:])) == len(data)-40 && data[7] == 64, "IPv6 header %x in front of %d octets", data[:40], len(data))
		proto, rec.ecn, pseudo, rec.sctp = data[6], data[1]>>4, slices.Clone(data[8:40]), data[40:]
	}
	src, _ := netip.AddrFromSlice(pseudo[:len(pseudo)/2])
	dst, _ := netip.AddrFromSlice(pseudo[len(pseudo)/2:])
	var srcPort, dstPort uint16
	if proto == 17 {
		udp := rec.sctp
		pseudo = append(pseudo, 0, 0, udp[4], udp[5], 0, 0, 0, 17) // RFC 8200 section 8.1; the sum is RFC 768's too
		must.Equal(t, "UDP length", int(binary.BigEndian.Uint16(udp[4:])), len(udp))
		must.That(t, udp[6]|udp[7] != 0 && sum(append(pseudo, udp...)) == 0, "UDP checksum %x is wrong", udp[6:8])
		srcPort, dstPort = binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[2:])
		rec.udp, rec.sctp = true, udp[8:]
	} else {
		must.Equal(t, "IP protocol", proto, 132)
	}
	rec.src, rec.dst = netip.AddrPortFrom(src, srcPort), netip.AddrPortFrom(dst, dstPort)
	return rec
}

// sum is the internet checksum (RFC 1071): 0 over data that contains its own.
func sum(b []byte) uint16 {
	var s uint32
	for i, o := range b {
		s += uint32(o) << (8 * (1 - i%2))
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

func octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func TestWriterReadsBack(t *testing.T) {
	for _, row := range []struct {
		name          string
		local, remote string
		wantL, wantR  string // as recorded, where that differs
		size          int
	}{
		{"IPv4", "192.0.2.1:0", "192.0.2.2:0", "", "", 100},
		{"IPv6", "[2001:db8::1]:0", "[2001:db8::2]:0", "", "", 100},
		{"IPv4 and UDP", "192.0.2.1:9899", "192.0.2.2:40000", "", "", 101},
		{"IPv6 and UDP", "[2001:db8::1]:9899", "[2001:db8::2]:40000", "", "", 101},
		{"an unknown UDP port is the registered one", "192.0.2.1:0", "192.0.2.2:40000", "192.0.2.1:9899", "192.0.2.2:40000", 12},
		{"IPv4-mapped addresses are IPv4", "[::ffff:192.0.2.1]:0", "192.0.2.2:0", "192.0.2.1:0", "192.0.2.2:0", 12},
		{"longest over IPv4", "192.0.2.1:0", "192.0.2.2:0", "", "", 65515},
		{"longest over IPv4 and UDP", "192.0.2.1:9899", "192.0.2.2:9899", "", "", 65507},
		{"longest over IPv6", "[2001:db8::1]:0", "[2001:db8::2]:0", "", "", 65535},
		{"longest over IPv6 and UDP", "[2001:db8::1]:9899", "[2001:db8::2]:9899", "", "", 65527},
		{"empty", "192.0.2.1:0", "192.0.2.2:0", "", "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var file bytes.Buffer
			w := must.Get(NewWriter(&file))(t)
			local, remote := netip.MustParseAddrPort(row.local), netip.MustParseAddrPort(row.remote)
			data := octets(row.size)
			t1, t2 := time.Unix(1700000000, 123456789), time.Unix(1700000001, 1)
			must.OK(t, w.Sent(t1, &rawio.Packet{Vec: [][]byte{data[:row.size/3], nil, data[row.size/3:]}, Local: local, Remote: remote, ECN: 2}))
			must.OK(t, w.Received(t2, &rawio.Packet{Data: data, Local: local, Remote: remote, ECN: 3}))
			must.OK(t, w.Flush())

			if row.wantL != "" {
				local, remote = netip.MustParseAddrPort(row.wantL), netip.MustParseAddrPort(row.wantR)
			}
			recs := readBack(t, &file)
			must.That(t, len(recs) == 2 && w.Skipped() == 0, "%d records, %d skipped", len(recs), w.Skipped())
			for i, want := range []record{
				{sent, t1, local, remote, local.Port() != 0, 2, data},
				{received, t2, remote, local, local.Port() != 0, 3, data},
			} {
				got := recs[i]
				if got.intf != want.intf || !got.at.Equal(want.at) || got.src != want.src || got.dst != want.dst ||
					got.udp != want.udp || got.ecn != want.ecn {
					t.Errorf("record %d: interface %d at %v, %v to %v, UDP %v, ECN %d", i, got.intf, got.at, got.src, got.dst, got.udp, got.ecn)
				}
				check.That(t, bytes.Equal(got.sctp, want.sctp),
					"record %d: %d octets differ from the %d sent", i, len(got.sctp), len(want.sctp))
			}
		})
	}
}

func TestUnrecordablePacketsAreSkipped(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("[2001:db8::1]:0")
	udp4, udp6 := netip.MustParseAddrPort("192.0.2.1:9899"), netip.MustParseAddrPort("[2001:db8::1]:9899")
	for _, row := range []struct {
		name string
		p    rawio.Packet
	}{
		{"packet too big", rawio.Packet{Kind: rawio.KindPacketTooBig, Data: octets(8), Local: v4, Remote: v4, MTU: 1400}},
		{"protocol unreachable", rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: octets(8), Local: v4, Remote: v4}},
		{"two address families", rawio.Packet{Data: octets(12), Local: v4, Remote: v6}},
		{"too long for IPv4", rawio.Packet{Data: octets(65516), Local: v4, Remote: v4}},
		{"too long for IPv4 and UDP", rawio.Packet{Data: octets(65508), Local: udp4, Remote: udp4}},
		{"too long for IPv6", rawio.Packet{Data: octets(65536), Local: v6, Remote: v6}},
		{"too long for IPv6 and UDP", rawio.Packet{Data: octets(65528), Local: udp6, Remote: udp6}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var file bytes.Buffer
			w := must.Get(NewWriter(&file))(t)
			must.OK(t, errors.Join(w.Received(time.Unix(0, 0), &row.p), w.Flush()))
			recs := readBack(t, &file)
			must.That(t, len(recs) == 0 && w.Skipped() == 1, "%d records, %d skipped", len(recs), w.Skipped())
		})
	}
}

// A UDP checksum that sums to zero is sent as all ones (RFC 768): find such a payload and record it.
func TestUDPChecksumIsNeverZero(t *testing.T) {
	a, b := netip.MustParseAddrPort("[2001:db8::1]:9899"), netip.MustParseAddrPort("[2001:db8::2]:9899")
	var file bytes.Buffer
	w := must.Get(NewWriter(&file))(t)
	p := rawio.Packet{Data: make([]byte, 12), Local: a, Remote: b}
	must.OK(t, w.Received(time.Unix(0, 0), &p))
	// With the first checksum as two octets of payload, the sum over everything is zero.
	copy(p.Data, w.ip[46:48])
	must.OK(t, errors.Join(w.Received(time.Unix(0, 0), &p), w.Flush()))
	c := w.ip[46:48]
	must.That(t, c[0] == 0xff && c[1] == 0xff, "checksum %x, want ffff", c)
	readBack(t, &file)
}

func TestTapRecordsBothDirections(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{MTU: 1500})
	must.OK(t, err)
	defer b.Close()
	path := filepath.Join(t.TempDir(), "tap.pcapng")
	tap := must.Get(Create(a, path))(t)
	from, to := a.LocalAddrs()[0], b.LocalAddrs()[0]
	check.That(t, tap.MTU(from.Addr(), to.Addr()) == 1480 && tap.LocalAddrs()[0] == from, "the tap does not answer as the inner link: MTU %d, addresses %v", tap.MTU(from.Addr(), to.Addr()), tap.LocalAddrs())
	check.OK(t, errors.Join(tap.BindPort(7), a.BindPort(8)))
	check.That(t, a.BindPort(7) == rawio.ErrPortInUse && tap.BindPort(8) == rawio.ErrPortInUse,
		"tap and inner link do not share their ports")
	tap.UnbindPort(7)
	check.OK(t, a.BindPort(7))

	before := time.Now()
	ping, pong := octets(1480), octets(13)
	n, err := tap.WriteBatch([]rawio.Packet{
		{Vec: [][]byte{ping[:5], ping[5:]}, Remote: to},
		{Vec: [][]byte{octets(1481)}, Remote: to}, // refused: not in the record
		{Vec: [][]byte{octets(99)}, Remote: to},   // not tried: not in the record
	})
	must.That(t, n == 1 && errors.Is(err, rawio.ErrTooLong), "WriteBatch = %d, %v", n, err)
	must.Do(b.WriteBatch([]rawio.Packet{{Vec: [][]byte{pong}, Remote: from}}))(t)
	pkts := make([]rawio.Packet, 4)
	n, err = tap.ReadBatch(pkts)
	must.That(t, n == 1 && err == nil && bytes.Equal(pkts[0].Data, pong), "ReadBatch = %d, %v", n, err)
	pkts[0].Release()
	must.OK(t, tap.Close())
	check.Error(t, "second Close", tap.Close(), nil)
	check.That(t, a.BindPort(9) != nil, "Close left the inner link open")

	file := must.Get(os.Open(path))(t)
	defer file.Close()
	recs := readBack(t, file)
	must.That(t, len(recs) == 2 && tap.Skipped() == 0,
		"%d records, %d skipped, want the packet sent and the packet received", len(recs), tap.Skipped())
	r := recs[0]
	check.That(t, r.intf == sent && r.src == from && r.dst == to && bytes.Equal(r.sctp, ping), "sent: interface %d, %v to %v, %d octets", r.intf, r.src, r.dst, len(r.sctp))
	if r := recs[1]; r.intf != received || r.src != to || r.dst != from || !bytes.Equal(r.sctp, pong) {
		t.Errorf("received: interface %d, %v to %v, %d octets", r.intf, r.src, r.dst, len(r.sctp))
	}
	for _, r := range recs {
		check.That(t, !r.at.Before(before.Round(0)) && !r.at.After(time.Now()), "time stamp %v", r.at)
	}
}

// What a poll returns is recorded as what a read returns.
func TestTapRecordsWhatIsPolled(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	defer b.Close()
	var file bytes.Buffer
	tap := must.Get(New(a, &file))(t)
	want := [][]byte{octets(13), octets(14), octets(15)}
	for _, p := range want {
		must.Do(b.WriteBatch([]rawio.Packet{{Vec: [][]byte{p}, Remote: a.LocalAddrs()[0]}}))(t)
	}
	pkts := make([]rawio.Packet, 2)
	for got := 0; got < len(want); {
		n := tap.PollBatch(pkts)
		must.That(t, n != 0, "%d packets polled, want %d", got, len(want))
		for i := range n {
			pkts[i].Release()
		}
		got += n
	}
	must.OK(t, tap.Close())
	recs := readBack(t, &file)
	must.Equal(t, "records of packets", len(recs), len(want))
	for i, r := range recs {
		check.That(t, r.intf == received && bytes.Equal(r.sctp, want[i]), "record %d: interface %d, %d octets", i, r.intf, len(r.sctp))
	}
}

// bare hides the optional interfaces of a link.
type bare struct{ rawio.Link }

// buffered is a link that buffers a thousand octets, is as wide as it is away from where packets leave, and takes them for ever.
type buffered struct{ *mem.Link }

func (buffered) ReceiveBuffer() int          { return 1000 }
func (buffered) MTU(local, _ netip.Addr) int { return int(local.As4()[3]) }
func (buffered) Close() error                { return nil }

func TestTapAsksTheLinkAndRecordsNothingOnceItIsClosed(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	defer b.Close()
	var file bytes.Buffer
	tap := must.Get(New(buffered{a}, &file))(t)
	check.Equal(t, "octets of a receive buffer", tap.ReceiveBuffer(), 1000)
	check.Equal(t, "MTU from .7 to .8", tap.MTU(netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")), 7)
	must.OK(t, tap.Close())
	size, p := file.Len(), rawio.Packet{Vec: [][]byte{octets(60000)}, Remote: b.LocalAddrs()[0]}
	linktest.Write(t, tap, p, p)
	check.Equal(t, "octets of the record", file.Len(), size)
}

func TestTapOnALinkWithoutOptions(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	defer b.Close()
	var file bytes.Buffer
	tap := must.Get(New(bare{a}, &file))(t)
	err = errors.Join(tap.BindPort(1), tap.BindPort(1))
	check.That(t, err == nil && tap.LocalAddrs() == nil, "BindPort %v, LocalAddrs %v", err, tap.LocalAddrs())
	tap.UnbindPort(1)
	check.Equal(t, "octets of a receive buffer", tap.ReceiveBuffer(), 0)
	to := b.LocalAddrs()[0]
	must.Do(tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(12)}, Remote: to}}))(t)
	must.OK(t, tap.Close())
	recs := readBack(t, &file)
	must.That(t, len(recs) == 1 && recs[0].src.Addr() == netip.IPv4Unspecified() && recs[0].dst == to, "records %+v, want one from the unspecified address", recs)
}

// brokenDisk fails every write that the buffer passes on.
type brokenDisk struct{ err error }

func (d *brokenDisk) Write(b []byte) (int, error) { return 0, d.err }

func TestAFailingRecordDoesNotStopTheTraffic(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	defer b.Close()
	disk := &brokenDisk{errors.New("disk full")}
	tap := must.Get(New(a, disk))(t)
	pkts := make([]rawio.Packet, 1)
	for range 3 {
		n, err := tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(60000)}, Remote: b.LocalAddrs()[0]}})
		must.That(t, n == 1 && err == nil, "WriteBatch = %d, %v", n, err)
		n, err = b.ReadBatch(pkts)
		must.That(t, n == 1 && err == nil, "ReadBatch = %d, %v", n, err)
		pkts[0].Release()
	}
	check.Error(t, "Flush", tap.Flush(), disk.err)
	check.Error(t, "Close", tap.Close(), disk.err)
}

func TestCreateReportsAPathThatCannotBe(t *testing.T) {
	a, b, err := mem.Pair(mem.Options{})
	must.OK(t, err)
	defer a.Close()
	defer b.Close()
	must.Fails(Create(a, filepath.Join(t.TempDir(), "no", "such", "folder")))(t, "Create", os.ErrNotExist)
}

func TestConcurrentPacketsAreEachRecordedWhole(t *testing.T) {
	const each = 300
	a, b, err := mem.Pair(mem.Options{Queue: 4 * each})
	must.OK(t, err)
	var file bytes.Buffer
	tap := must.Get(New(a, &file))(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range each {
				check.Do(tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(100)}, Remote: b.LocalAddrs()[0]}}))(t)
			}
		})
	}
	wg.Go(func() { // answers what it reads
		pkts := make([]rawio.Packet, 8)
		for got := 0; got < 2*each; {
			n, err := b.ReadBatch(pkts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range pkts[:n] {
				check.Do(b.WriteBatch([]rawio.Packet{{Vec: [][]byte{pkts[i].Data}, Remote: pkts[i].Remote}}))(t)
				pkts[i].Release()
			}
			got += n
		}
	})
	wg.Go(func() {
		pkts := make([]rawio.Packet, 8)
		for got := 0; got < 2*each; {
			n, err := tap.ReadBatch(pkts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range pkts[:n] {
				pkts[i].Release()
			}
			got += n
		}
	})
	wg.Wait()
	must.OK(t, errors.Join(tap.Close(), b.Close()))

	recs := readBack(t, &file)
	must.Equal(t, "records", len(recs), 4*each)
	balance := 0
	for i, r := range recs {
		if r.intf == sent {
			balance++
		} else {
			balance--
		}
		must.That(t, balance >= 0, "record %d is a reply in front of what it answers", i)
		must.That(t, bytes.Equal(r.sctp, octets(100)), "record %d: octets differ", i)
	}
}
