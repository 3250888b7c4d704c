package sctp_test

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
)

// Messages are sent again as often, or as long, as the stream says.
func TestReliability(t *testing.T) { testReliability(t, false) }

func TestReliabilityWithInterleaving(t *testing.T) { testReliability(t, true) }

func testReliability(t *testing.T, interleaves bool) {
	for _, row := range []struct {
		name      string
		unordered bool
		kind      byte
		value     uint32
		ppi       sctp.PayloadProtocolIdentifier
		lost      int32 // transmissions that are
		arrives   bool
		sent      int32 // transmissions that are lost if it does not arrive; 0: any number
	}{
		{"reliable", false, sctp.ReliabilityTypeReliable, 0, 53, 3, true, 0},
		{"reliable, whatever the value", false, sctp.ReliabilityTypeReliable, 7, 53, 3, true, 0},
		{"no retransmission", false, sctp.ReliabilityTypeRexmit, 0, 53, 1000, false, 1},
		{"two retransmissions", false, sctp.ReliabilityTypeRexmit, 2, 53, 1000, false, 3},
		{"the second is enough", false, sctp.ReliabilityTypeRexmit, 2, 53, 2, true, 0},
		{"two retransmissions, unordered", true, sctp.ReliabilityTypeRexmit, 2, 53, 1000, false, 3},
		{"a time", false, sctp.ReliabilityTypeTimed, 50, 53, 1000, false, 0},
		{"a time, unordered", true, sctp.ReliabilityTypeTimed, 50, 53, 1000, false, 0},
		{"a time that is long enough", false, sctp.ReliabilityTypeTimed, 60_000, 53, 2, true, 0},
		{"no time", false, sctp.ReliabilityTypeTimed, 0, 53, 1000, false, 1},
		{"channel establishment is reliable", true, sctp.ReliabilityTypeRexmit, 0, 50, 2, true, 0},
	} {
		t.Run(row.name, inBubble(func(t *testing.T) {
			e := open(t, sctp.WithRTOMax(200), sctp.WithEnableInterleaving(interleaves))
			a, b := e.stream(t, 1)
			a.SetReliabilityParams(row.unordered, row.kind, row.value)
			var lost atomic.Int32
			e.conns[0].loseSome(func(p []byte) bool {
				return bytes.Contains(p, []byte("message")) && lost.Add(1) <= row.lost
			})
			_, err := a.WriteSCTP([]byte("message"), row.ppi)
			ok(t, err)
			synctest.Wait()                                                  // it has left
			_, err = a.WriteSCTP([]byte("last"), sctp.PayloadTypeWebRTCDCEP) // which is reliable
			ok(t, err)
			if row.unordered && row.arrives { // as any order is right
				_, err := b.Read(make([]byte, 10))
				ok(t, err)
			}
			wanted := []string{"last"}
			if row.arrives && !row.unordered {
				wanted = []string{"message", "last"}
			}
			var got []string
			for range wanted {
				buf := make([]byte, 10)
				n, err := b.Read(buf)
				ok(t, err)
				got = append(got, string(buf[:n]))
			}
			if row.unordered && row.arrives {
				return
			}
			if !slices.Equal(got, wanted) {
				t.Errorf("read %q, want %q", got, wanted)
			}
			time.Sleep(soon)
			want(t, "buffered in the end", e.assoc[0].BufferedAmount(), 0)
			want(t, "buffered by the stream", a.BufferedAmount(), 0)
			if row.sent > 0 {
				want(t, "transmissions", lost.Load(), row.sent)
			}
		}))
	}
}

// What both ends want, both have.
func TestExtensionsAreAgreedOn(t *testing.T) {
	for _, row := range []struct {
		name        string
		one, other  bool // interleaving is wanted
		interleaves bool
		mode        sctp.PartialReliabilityMode
	}{
		{"both interleave", true, true, true, sctp.PartialReliabilityModeIForwardTSN},
		{"one does not", false, true, false, sctp.PartialReliabilityModeForwardTSN},
		{"the other does not", true, false, false, sctp.PartialReliabilityModeForwardTSN},
		{"neither does", false, false, false, sctp.PartialReliabilityModeForwardTSN},
	} {
		t.Run(row.name, inBubble(func(t *testing.T) {
			e := openEach(t, []sctp.ClientOption{sctp.WithEnableInterleaving(row.one)},
				[]sctp.ClientOption{sctp.WithEnableInterleaving(row.other)})
			a, b := e.stream(t, 1)
			for _, a := range e.assoc {
				m, known := a.Metadata()
				want(t, "known", known, true)
				want(t, "mode", m.PartialReliabilityMode, row.mode)
				want(t, "interleaving", m.MessageInterleavingEnabled, row.interleaves)
			}
			for _, n := range []int{1, 1200, 60_000} {
				_, err := a.Write(make([]byte, n))
				ok(t, err)
				got, err := b.Read(make([]byte, 65536))
				ok(t, err)
				want(t, "octets", got, n)
			}
		}))
	}
}
