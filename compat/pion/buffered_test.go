package sctp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
)

func TestEachStreamCountsWhatItHasBuffered(t *testing.T) { inBubble(testEachStreamCounts)(t) }

func testEachStreamCounts(t *testing.T) {
	e := open(t)
	one, oneIn := e.stream(t, 1)
	two, _ := e.stream(t, 2)
	time.Sleep(soon)
	e.conns[0].block(true)
	for range 5 {
		_, err := one.Write(make([]byte, 1000))
		ok(t, err)
	}
	_, err := two.Write(make([]byte, 300))
	ok(t, err)
	want(t, "one", one.BufferedAmount(), 5000)
	want(t, "two", two.BufferedAmount(), 300)
	want(t, "both", e.assoc[0].BufferedAmount(), 5300)
	want(t, "the other end", oneIn.BufferedAmount(), 0)
	e.conns[0].block(false)
	time.Sleep(soon)
	want(t, "one in the end", one.BufferedAmount(), 0)
	want(t, "two in the end", two.BufferedAmount(), 0)
}

// A program hears each time that the amount falls to its threshold, once.
func TestLowBuffer(t *testing.T) {
	for _, row := range []struct {
		name      string
		threshold uint64
		writes    int // of 100 octets
		times     int // each when everything before has arrived
		calls     int
	}{
		{"by default when all has arrived", 0, 10, 1, 1},
		{"below a threshold", 500, 10, 1, 1},
		{"each time", 500, 10, 3, 3},
		{"never above it", 1000, 10, 2, 0},
		{"at a high one", 999, 10, 2, 2},
	} {
		t.Run(row.name, inBubble(func(t *testing.T) {
			e := open(t)
			a, b := e.stream(t, 1)
			time.Sleep(soon)
			calls := 0
			a.SetBufferedAmountLowThreshold(row.threshold)
			want(t, "threshold", a.BufferedAmountLowThreshold(), row.threshold)
			a.OnBufferedAmountLow(func() {
				if calls++; a.BufferedAmount() > row.threshold {
					t.Errorf("called at %d octets", a.BufferedAmount())
				}
			})
			for range row.times {
				e.conns[0].block(true)
				for range row.writes {
					_, err := a.Write(make([]byte, 100))
					ok(t, err)
				}
				synctest.Wait()
				e.conns[0].block(false)
				time.Sleep(soon)
				for range row.writes {
					_, err := b.Read(make([]byte, 100))
					ok(t, err)
				}
			}
			want(t, "calls", calls, row.calls)
			a.OnBufferedAmountLow(nil)
			_, err := a.Write(make([]byte, 2000))
			ok(t, err)
			time.Sleep(soon)
			want(t, "calls when nobody is to hear", calls, row.calls)
		}))
	}
}

// The program may write more when it hears that little is left.
func TestWritesWhenTheBufferIsLow(t *testing.T) { inBubble(testWritesWhenLow)(t) }

func testWritesWhenLow(t *testing.T) {
	e := open(t)
	a, b := e.stream(t, 1)
	const messages, each = 200, 10_000
	left := messages
	written := make(chan struct{})
	write := func() {
		for left > 0 && a.BufferedAmount() < 100_000 {
			_, err := a.Write(make([]byte, each))
			ok(t, err)
			if left--; left == 0 {
				close(written)
			}
		}
	}
	a.SetBufferedAmountLowThreshold(50_000)
	a.OnBufferedAmountLow(write)
	write()
	for range messages {
		n, err := b.Read(make([]byte, each))
		ok(t, err)
		want(t, "octets", n, each)
	}
	<-written
}

func TestZeroChecksumIsAgreedOn(t *testing.T) {
	for name, on := range map[string]bool{"asked for": true, "not": false} {
		t.Run(name, inBubble(func(t *testing.T) {
			e := open(t, sctp.WithEnableZeroChecksum(on))
			e.stream(t, 1)
			for _, a := range e.assoc {
				m, _ := a.Metadata()
				want(t, "sending", m.ZeroChecksumSendingEnabled, on)
				want(t, "receiving", m.ZeroChecksumReceivingEnabled, on)
			}
		}))
	}
}
