package keymgmt

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestMessagesHaveTheirOctets(t *testing.T) {
	// req dtlskeys-4-2
	// req dtlskeys-4.1-1
	// req dtlskeys-4.1.1-2
	for _, c := range []struct {
		name  string
		got   []byte
		want  []byte
		epoch uint64
	}{
		{"records", appendMessage(nil, 3, []byte{22, 3, 1, 0, 0}), []byte{3, 22, 3, 1, 0, 0}, 3},
		{"records of an epoch that turns", appendMessage(nil, 131, []byte{22, 3, 1, 0, 0}), []byte{3, 22, 3, 1, 0, 0}, 131},
		{"Protection Established", establishedMessage(127), []byte{0xff, 1}, 127},
		{"Protection Established, turned", establishedMessage(128), []byte{0x80, 1}, 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Slice(t, "octets", c.got, c.want)
			m := message(c.got)
			check.That(t, m.isWellFormed() && m.isOf(c.epoch) && !m.isOf(c.epoch+1), "%x", c.got)
		})
	}
}

func TestFormOfMessages(t *testing.T) {
	// req dtlskeys-4-3
	record := append([]byte{23, 3, 3, 0, 2}, 1, 2)
	long := append([]byte{23, 3, 3, 0x41, 0}, make([]byte, 1<<14+256)...)
	for _, c := range []struct {
		name    string
		message []byte
		want    bool
	}{
		{"a record", append([]byte{3}, record...), true},
		{"two records", append(append([]byte{3}, record...), record...), true},
		{"an empty record", []byte{3, 20, 3, 3, 0, 0}, true},
		{"the longest", append([]byte{3}, long...), true},
		{"empty", nil, false},
		{"no payload", []byte{3}, false},
		{"no control type", []byte{0x83}, false},
		{"a control type of a later draft", []byte{0x83, 7, 8, 9}, true},
		{"half a record", append([]byte{3}, record[:6]...), false},
		{"half a header", append(append([]byte{3}, record...), 22, 3), false},
		{"a type below those of TLS", append([]byte{3, 19}, record[1:]...), false},
		{"a type above them", append([]byte{3, 24}, record[1:]...), false},
		{"too long", append(append([]byte{3, 23, 3, 3, 0x41, 1}, long[5:]...), 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "well-formed", message(c.message).isWellFormed(), c.want)
		})
	}
}

func TestHellosAreRecognised(t *testing.T) {
	check.That(t, isHello(hello(1), msgClientHello) && !isHello(hello(1), msgServerHello), "ClientHello")
	check.That(t, isHello(serverHello(1), msgServerHello) && !isHello(finished(1), msgClientHello), "ServerHello")
	check.That(t, !isHello([]byte{22, 3, 1, 0, 0}, 1), "an empty record")
	check.That(t, asksForRetry(retry()) && !asksForRetry(serverHello(1)), "HelloRetryRequest")
	for i := range retry() {
		b := bytes.Clone(retry())
		check.That(t, !asksForRetry(b[:i]), "%d octets of it", i)
	}
}
