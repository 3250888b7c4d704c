package main

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/cli/flagtest"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// No number of the command line means anything else than what it says.
func TestEveryNumberHasARange(t *testing.T) {
	flagtest.CheckNumbers(t, func() *pflag.FlagSet {
		fs := cli.NewFlags("rcopy")
		(&options{}).flags(fs)
		return fs
	}, func(args ...string) error {
		_, err := parse(append(args, "-l"), io.Discard)
		return err
	})
}

// What one client announces leaves room for others, and a part of the disk no copy takes; what a
// copy had is others' once it is over.
func TestOneClientReservesItsShareOfTheDisk(t *testing.T) {
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	defer root.Close()
	one, same, other, third := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	free, total, known := uint64(10_500), uint64(10_000), true
	d := newDisk(50)
	d.space = func(*os.Root) (uint64, uint64, bool) { return free - d.all, total, known }
	for i, row := range []struct {
		from netip.Addr
		size uint64
		why  string // it is refused
		ends uint64 // a copy of that size ends first
	}{
		{one, 10_500, "not enough free space for 10500 octets", 0}, // 5 % of the disk stay
		{one, 10_001, "not enough free space", 0},
		{one, 5001, "5001 octets are too many: the copies of one client may reserve 50 % of the free space at a time, 5000 octets", 0},
		{one, 3000, "", 0},
		{same, 2001, "the copies of one client", 0}, // of the same /64
		{same, 2000, "", 0},
		{one, 1, "the copies of one client", 0},
		{one, 0, "", 0}, // takes nothing
		{other, 5000, "", 0},
		{third, 1, "not enough free space", 0},
		{one, 3000, "", 3000},
	} {
		if row.ends > 0 {
			d.give(row.from, row.ends)
		}
		began := time.Now()
		in, err := d.create(root, row.from, row.size)
		if err == nil {
			in.discard()
		}
		check.That(t, (err == nil) == (row.why == "") && (err == nil || strings.Contains(err.Error(), row.why)),
			"copy %d of %d octets from %v: %v, want %q", i, row.size, row.from, err, row.why)
		check.That(t, d.wanted(began.Add(-1)) == (err != nil), "copy %d: a copy has found too little: %v", i,
			err == nil)
	}
	d.give(one, 3000)
	d.give(same, 2000)
	d.give(other, 5000)
	check.That(t, d.all == 0 && len(d.taken) == 0, "%d octets of %d clients stay counted", d.all, len(d.taken))
	known = false // another system reserves nothing
	in := must.Get(d.create(root, one, 20_000))(t)
	in.discard()
	d.give(one, 20_000)
	free, known = 100, true // less than is to stay
	check.That(t, d.refuse(root, one, 1) != nil, "an octet of the last")
}

// A client that announces more than its share is told so, and one that ends gives back what it had,
// however it ends.
func TestRefusedCopyIsToldOfTheShare(t *testing.T) {
	b := newBench(t, "mem")
	b.s.disk.space = func(*os.Root) (uint64, uint64, bool) { return 2000 - b.s.disk.all, 0, true }
	held := b.newHostile(offer{900, "held"})
	var rejected *llp.RejectedError
	err := b.sendFile("f", contentOf(101))
	must.That(t, errors.As(err, &rejected), "a second copy: %v", err)
	check.That(t, strings.Contains(string(rejected.Private), "the copies of one client may reserve 50 %"),
		"the client is told %q", rejected.Private)
	held.sealFile(0, [32]byte{}) // a wrong one ends the copy
	held.readVerdict()
	held.e.close()
	must.OK(t, b.sendFile("g", nil))
	b.waitServerDone()
	check.That(t, b.s.disk.all == 0 && len(b.s.disk.taken) == 0, "%d octets stay reserved", b.s.disk.all)
}

// A copy that moves hardly anything gives way where another has found too little space.
func TestSlowCopyGivesWayForSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "mem")
		b.s.patience = time.Second
		b.s.disk.short = time.Now().Add(time.Hour)
		c := b.newHostile(offer{100_000, "f"})
		c.writeData([]byte("a"), 0)
		v := c.readVerdict()
		check.That(t, !v.stored && strings.Contains(v.text, "no place for others"), "verdict %+v", v)
		c.e.close()
		b.waitServerDone()
	})
}

// The space of a real directory is that of its file system.
func TestSpaceOfADirectory(t *testing.T) {
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	defer root.Close()
	free, total, known := space(root)
	check.That(t, !known || free > 0 && free <= total, "%d of %d octets free", free, total)
}
