package mpa

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestMULPDU(t *testing.T) {
	for _, row := range []struct {
		name           string
		emss           int
		plain, markers int
	}{
		// req 5044-4.5-1: EMSS - (6 + 4 * Ceiling(EMSS / 512) + EMSS mod 4)
		// req 5044-4.5-2: EMSS - (6 + EMSS mod 4)
		{"Ethernet", 1460, 1454, 1454 - 12},
		{"Ethernet with time stamps", 1448, 1442, 1442 - 12},
		{"a rest of 1", 1461, 1454, 1454 - 12},
		{"a rest of 3", 1463, 1454, 1454 - 12},
		{"a whole number of intervals", 1536, 1530, 1530 - 12},
		{"one more", 1540, 1534, 1534 - 16},
		{"jumbo frames", 8960, 8954, 8954 - 72},
		// req 5044-3-4, 5044-4.5-7, 5044-4.5-8: never below 128, nor above 64768.
		{"the least", 134, 128, 128},
		{"less than a minimal FPDU", 88, 128, 128},
		{"nothing", 0, 128, 128},
		{"the most", 64776, 64768, 64770 - 508},
		{"loopback", 65483, 64768, 64768},
		{"all of a datagram", 65535, 64768, 64768},
	} {
		check.Equal(t, row.name, MULPDU(row.emss, false), row.plain)
		check.Equal(t, row.name+", with Markers", MULPDU(row.emss, true), row.markers)
	}
	for emss := range 66000 {
		for _, markers := range []bool{false, true} {
			n := MULPDU(emss, markers)
			check.That(t, n >= 128 && n <= 64768, "EMSS %d: MULPDU %d", emss, n)
		}
	}
}

// An FPDU of MULPDU octets fits the segment wherever the Markers fall.
func TestFPDUOfMULPDUFitsTheSegment(t *testing.T) {
	for _, emss := range []int{256, 511, 512, 513, 1220, 1448, 1460, 8960, 32768, 64774} {
		for at := 0; at < markerInterval; at += 4 {
			d := Deframer{HasMarkers: true, nextMarker: at}
			n := MULPDU(emss, true)
			l, _ := d.layoutOf([]byte{byte(n >> 8), byte(n), byte(n >> 8), byte(n), byte(n >> 8), byte(n)})
			if at == 0 {
				l, _ = d.layoutOf([]byte{0, 0, 0, 0, byte(n >> 8), byte(n)})
			}
			check.That(t, n == MinMULPDU || l.total <= emss, "EMSS %d, Marker in %d: an FPDU of %d octets", emss, at,
				l.total)
		}
	}
}

func TestMULPDUFollowsTheEMSS(t *testing.T) {
	// req 5044-3-2, 5044-4.5-6
	a, b := pair(t, Config{EMSS: 1460}, Config{EMSS: 1460, Markers: true})
	check.Equal(t, "with Markers", a.MULPDU(), 1442)
	check.Equal(t, "without", b.MULPDU(), 1454)
	a.SetEMSS(8960)
	check.Equal(t, "after a change", a.MULPDU(), 8882)
	a.write(b, 0, patternOf(30000))
	// req 5044-3-3, 5044-4.5-5: as long as may be, and no longer.
	act, pieces := a.Next(0, MaxBatch)
	check.That(t, act == ActWrite, "nothing to write")
	octets := 0
	for _, p := range pieces {
		octets += len(p)
	}
	a.Written(0, octets)
	check.That(t, a.Stats().FPDUsOut == 4 && octets > 30000, "%d FPDUs of %d octets", a.Stats().FPDUsOut, octets)
}
