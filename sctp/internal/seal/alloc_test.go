package seal

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/heapsize"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestARecordAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, suite := range Suites() {
		t.Run(suite.String(), func(t *testing.T) {
			r := newRing(t, suite)
			b, scratch, content := make([]byte, 0, 2000), make([]byte, 2000), testContent(1400)
			pieces := [][]byte{content[:16], content[16:]}
			lost := bytes.Clone(must.Get(r.a.Append(b, pieces...))(t))
			n := testing.AllocsPerRun(500, func() {
				chunk, err := r.a.Append(b, pieces...)
				must.OK(t, err)
				got, _, err := r.b.Open(now, wire.DTLS(chunk[:len(chunk)-3]), scratch)
				must.OK(t, err)
				must.That(t, len(got) == len(content), "not opened")
			})
			check.That(t, n == 0, "a record allocates %v times", n)
			n = testing.AllocsPerRun(500, func() {
				b := append(b[:0], lost...)
				b[100] ^= 1
				_, _, err := r.b.Open(now, wire.DTLS(b[:len(b)-3]), scratch)
				must.That(t, err != nil, "a forged record opens")
			})
			check.That(t, n == 0, "a forged record allocates %v times", n)
		})
	}
}

// What an association pays for its keys, while nothing is reordered: two directions, and restart
// keys that are not used. A second epoch, while one drains, costs the same but for the Keyring.
func TestMemoryOfAKeyring(t *testing.T) {
	for _, c := range []struct {
		suite     Suite
		one, more int // octets
	}{{AES128GCM, 3600, 1800}, {AES256GCM, 3600, 1800}, {ChaCha20Poly1305, 950, 300}} {
		r := newRing(t, c.suite)
		must.OK(t, r.a.InstallRestart(now, 3, r.restartToB(3), r.restartToA(3)))
		one := heapsize.Of(nil, func(unsafe.Pointer) bool { return false }, r.a)
		check.That(t, one <= c.one && one > c.one*3/4, "%v: %d octets", c.suite, one)
		r.rekey()
		two := heapsize.Of(nil, func(unsafe.Pointer) bool { return false }, r.a)
		check.That(t, two-one <= c.more && two-one > c.more*3/4, "%v: %d octets more", c.suite, two-one)
	}
}
