package linktest

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// CheckMarks has a link send packets with and without marks of their own. It checks the IP headers
// that leave, in the network namespace that do enters. No mark may stick to the next packet.
func CheckMarks(t testing.TB, do func(func() error), l rawio.Link, to netip.AddrPort) {
	t.Helper()
	var tap int
	do(func() (err error) {
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
		return err
	})
	defer unix.Close(tap)
	b := make([]byte, 4096)
	for i, want := range []rawio.Packet{{DSCP: 46, FlowLabel: 0xabcde, ECN: rawio.ECT0}, {ECN: rawio.ECT1},
		{FlowLabel: 7}, {DSCP: 1}, {}} {
		data := Pattern(100 + i)
		want.Vec, want.Remote = [][]byte{data}, to
		WriteAll(t, l, want)
		n := 0
		for !bytes.HasSuffix(b[:n], data) { // of the others that the host sends
			var err error
			if n, err = unix.Read(tap, b); err != nil {
				t.Fatal(err)
			}
		}
		class, label := b[1], want.FlowLabel
		if to.Addr().Is6() {
			class = b[0]<<4 | b[1]>>4
			if label != 0 { // the kernel may choose one for a packet without
				label = binary.BigEndian.Uint32(b) & 0xfffff
			}
		}
		if class != want.DSCP<<2|want.ECN || label != want.FlowLabel {
			t.Errorf("packet %d to %v: class %#x, flow label %#x, want %#x, %#x", i, to, class, label,
				want.DSCP<<2|want.ECN, want.FlowLabel)
		}
	}
}
