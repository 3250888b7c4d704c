package pcap

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/pcaptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/mem"
)

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
	tap := must.Get(Create(a, filepath.Join(t.TempDir(), "file")))(t)
	linktest.CheckConcurrentUse(t, tap, b, rawio.Packet{Vec: [][]byte{make([]byte, 40)}, Remote: b.LocalAddrs()[0]},
		func() { tap.Skipped(); tap.Flush(); tap.PollBatch(nil) })
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
			must.OK(t, w.Sent(t1, &rawio.Packet{Vec: [][]byte{data[:row.size/3], nil, data[row.size/3:]},
				Local: local, Remote: remote, ECN: 2}))
			must.OK(t, w.Received(t2, &rawio.Packet{Data: data, Local: local, Remote: remote, ECN: 3}))
			must.OK(t, w.Flush())

			if row.wantL != "" {
				local, remote = netip.MustParseAddrPort(row.wantL), netip.MustParseAddrPort(row.wantR)
			}
			recs := pcaptest.Read(t, &file)
			must.That(t, len(recs) == 2 && w.Skipped() == 0, "%d records, %d skipped", len(recs), w.Skipped())
			for i, want := range []pcaptest.Record{
				{Intf: interfaceSent, At: t1, Src: local, Dst: remote, UDP: local.Port() != 0, ECN: 2, SCTP: data},
				{Intf: interfaceReceived, At: t2, Src: remote, Dst: local, UDP: local.Port() != 0, ECN: 3, SCTP: data},
			} {
				got := recs[i]
				check.That(t, got.Intf == want.Intf && got.At.Equal(want.At) && got.Src == want.Src &&
					got.Dst == want.Dst &&
					got.UDP == want.UDP && got.ECN == want.ECN,
					"record %d: interface %d at %v, %v to %v, UDP %v, ECN %d", i, got.Intf, got.At, got.Src,
					got.Dst, got.UDP, got.ECN)
				check.That(t, bytes.Equal(got.SCTP, want.SCTP),
					"record %d: %d octets differ from the %d sent", i, len(got.SCTP), len(want.SCTP))
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
			recs := pcaptest.Read(t, &file)
			must.That(t, len(recs) == 0 && w.Skipped() == 1, "%d records, %d skipped", len(recs), w.Skipped())
		})
	}
}

// A UDP checksum that sums to zero is sent as all ones (RFC 768): find such a payload and record
// it.
func TestUDPChecksumIsNeverZero(t *testing.T) {
	a, b := netip.MustParseAddrPort("[2001:db8::1]:9899"), netip.MustParseAddrPort("[2001:db8::2]:9899")
	var file bytes.Buffer
	w := must.Get(NewWriter(&file))(t)
	p := rawio.Packet{Data: make([]byte, 12), Local: a, Remote: b}
	must.OK(t, w.Received(time.Unix(0, 0), &p))
	// With the first checksum as two octets of payload, the sum over everything is zero.
	copy(p.Data, w.ipPacket[46:48])
	must.OK(t, errors.Join(w.Received(time.Unix(0, 0), &p), w.Flush()))
	c := w.ipPacket[46:48]
	must.That(t, c[0] == 0xff && c[1] == 0xff, "checksum %x, want ffff", c)
	pcaptest.Read(t, &file)
}

func TestTapRecordsBothDirections(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{MTU: 1500}))(t)
	defer b.Close()
	path := filepath.Join(t.TempDir(), "tap.pcapng")
	tap := must.Get(Create(a, path))(t)
	from, to := a.LocalAddrs()[0], b.LocalAddrs()[0]
	check.That(t, tap.MTU(from.Addr(), to.Addr()) == 1480 && tap.LocalAddrs()[0] == from,
		"the tap does not answer as the inner link: MTU %d, addresses %v", tap.MTU(from.Addr(), to.Addr()),
		tap.LocalAddrs())
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
	recs := pcaptest.Read(t, file)
	must.That(t, len(recs) == 2 && tap.Skipped() == 0,
		"%d records, %d skipped, want the packet sent and the packet received", len(recs), tap.Skipped())
	r := recs[0]
	check.That(t, r.Intf == interfaceSent && r.Src == from && r.Dst == to && bytes.Equal(r.SCTP, ping),
		"sent: interface %d, %v to %v, %d octets", r.Intf, r.Src, r.Dst, len(r.SCTP))
	if r := recs[1]; r.Intf != interfaceReceived || r.Src != to || r.Dst != from || !bytes.Equal(r.SCTP, pong) {
		t.Errorf("received: interface %d, %v to %v, %d octets", r.Intf, r.Src, r.Dst, len(r.SCTP))
	}
	for _, r := range recs {
		check.That(t, !r.At.Before(before.Round(0)) && !r.At.After(time.Now()), "time stamp %v", r.At)
	}
}

// What a poll returns is recorded as what a read returns.
func TestTapRecordsWhatIsPolled(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
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
	recs := pcaptest.Read(t, &file)
	must.Equal(t, "records of packets", len(recs), len(want))
	for i, r := range recs {
		check.That(t, r.Intf == interfaceReceived && bytes.Equal(r.SCTP, want[i]),
			"record %d: interface %d, %d octets", i, r.Intf, len(r.SCTP))
	}
}

// bare hides the optional interfaces of a link.
type bare struct{ rawio.Link }

// buffered is a link that buffers a thousand octets, is as wide as it is away from where packets
// leave, and takes them for ever.
type buffered struct{ *mem.Link }

func (buffered) ReceiveBuffer() int          { return 1000 }
func (buffered) MTU(local, _ netip.Addr) int { return int(local.As4()[3]) }
func (buffered) Close() error                { return nil }

// It is told what to do when nothing has come, and has another queue.
func (buffered) Wait(rawio.Pause) error        { return rawio.ErrInterrupted }
func (buffered) Polling() time.Duration        { return 7 }
func (buffered) Watch(told func([]netip.Addr)) { told(nil) }
func (b buffered) Shards() []rawio.Shard       { return []rawio.Shard{b.Link} }

func TestTapAsksTheLinkAndRecordsNothingOnceItIsClosed(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
	defer b.Close()
	var file bytes.Buffer
	tap := must.Get(New(buffered{a}, &file))(t)
	check.Equal(t, "octets of a receive buffer", tap.ReceiveBuffer(), 1000)
	check.Equal(t, "MTU from .7 to .8", tap.MTU(netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")), 7)
	var in [1]rawio.Packet
	told := false
	tap.Watch(func([]netip.Addr) { told = true })
	tap.Interrupt()
	_, err := tap.ReadBatch(in[:])
	check.That(t, told && err == rawio.ErrInterrupted && tap.Wait(rawio.Park) == err && tap.Polling() == 7,
		"told %v, %v, it polls for %v", told, err, tap.Polling())
	q := tap.Shards()[0]
	linktest.WriteAll(t, b, rawio.Packet{Vec: [][]byte{octets(99)}, Remote: a.LocalAddrs()[0]})
	linktest.ReadPackets(t, q, 1)[0].Release()
	must.OK(t, tap.Close())
	size, p := file.Len(), rawio.Packet{Vec: [][]byte{octets(60000)}, Remote: b.LocalAddrs()[0]}
	linktest.WriteAll(t, tap, p, p)
	p.Remote = a.LocalAddrs()[0]
	linktest.WriteAll(t, b, p, p)
	rawio.ReleaseAll(linktest.ReadPackets(t, tap, 2))
	check.Equal(t, "octets of the record", file.Len(), size)
	recs := pcaptest.Read(t, &file)
	check.That(t, len(recs) == 1 && len(recs[0].SCTP) == 99, "%d packets of a further queue are recorded", len(recs))
}

func TestTapOnALinkWithoutOptions(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
	defer b.Close()
	var file bytes.Buffer
	tap := must.Get(New(bare{a}, &file))(t)
	err := errors.Join(tap.BindPort(1), tap.BindPort(1))
	check.That(t, err == nil && tap.LocalAddrs() == nil, "BindPort %v, LocalAddrs %v", err, tap.LocalAddrs())
	tap.UnbindPort(1)
	tap.Watch(nil)
	tap.Interrupt()
	check.That(t, tap.ReceiveBuffer() == 0 && tap.PollBatch(nil) == 0 && tap.Wait(rawio.Park) == nil &&
		tap.Polling() == 0 && tap.Shards() == nil, "it is what its link is not")
	to := b.LocalAddrs()[0]
	must.Do(tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(12)}, Remote: to}}))(t)
	must.OK(t, tap.Close())
	recs := pcaptest.Read(t, &file)
	must.That(t, len(recs) == 1 && recs[0].Src.Addr() == netip.IPv4Unspecified() && recs[0].Dst == to,
		"records %+v, want one from the unspecified address", recs)
}

// dam is a link whose WriteBatch does not return before it is opened.
type dam struct {
	*mem.Link
	open chan struct{}
}

func (d dam) WriteBatch(pkts []rawio.Packet) (int, error) {
	<-d.open
	return d.Link.WriteBatch(pkts)
}

// Where WriteBatch of the inner link blocks, the tap reads, flushes and says what it has skipped.
// What was written is recorded when it returns.
func TestTapDoesNotWaitForALinkThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := must.Two(mem.Pair(mem.Options{}))(t)
		defer b.Close()
		d := dam{a, make(chan struct{})}
		var file bytes.Buffer
		tap := must.Get(New(d, &file))(t)
		check.That(t, !rawio.PromptOf(tap), "the tap says that it is prompt")
		from, to := a.LocalAddrs()[0], b.LocalAddrs()[0]
		began := time.Now()
		go func() { check.Do(tap.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(12)}, Remote: to}}))(t) }()
		synctest.Wait()
		time.Sleep(time.Second)
		must.Do(b.WriteBatch([]rawio.Packet{{Vec: [][]byte{octets(16)}, Remote: from}}))(t)
		pkts := make([]rawio.Packet, 1)
		must.Do(tap.ReadBatch(pkts))(t)
		pkts[0].Release()
		check.OK(t, tap.Flush())
		check.Equal(t, "packets skipped", tap.Skipped(), 0)
		close(d.open)
		synctest.Wait()
		must.OK(t, tap.Close())
		recs := pcaptest.Read(t, &file)
		must.Equal(t, "records", len(recs), 2)
		check.That(t, recs[0].Dst.Addr() == from.Addr() && recs[1].Dst.Addr() == to.Addr() && recs[1].At.Equal(began),
			"records %+v", recs)
	})
}

// brokenDisk fails every write that the buffer passes on.
type brokenDisk struct{ err error }

func (d *brokenDisk) Write(b []byte) (int, error) { return 0, d.err }

func TestAFailingRecordDoesNotStopTheTraffic(t *testing.T) {
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
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
	a, b := must.Two(mem.Pair(mem.Options{}))(t)
	defer a.Close()
	defer b.Close()
	must.Fails(Create(a, filepath.Join(t.TempDir(), "no", "such", "folder")))(t, "Create", os.ErrNotExist)
}

func TestConcurrentPacketsAreEachRecordedWhole(t *testing.T) {
	const each = 300
	a, b := must.Two(mem.Pair(mem.Options{Queue: 4 * each}))(t)
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

	recs := pcaptest.Read(t, &file)
	must.Equal(t, "records", len(recs), 4*each)
	balance := 0
	for i, r := range recs {
		if r.Intf == interfaceSent {
			balance++
		} else {
			balance--
		}
		must.That(t, balance >= 0, "record %d is a reply in front of what it answers", i)
		must.That(t, bytes.Equal(r.SCTP, octets(100)), "record %d: octets differ", i)
	}
}
