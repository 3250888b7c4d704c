package seal

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSealerStopsAtTheLimitOfItsSuite(t *testing.T) {
	// req dtlschunk-10.2-1: records
	for _, c := range []struct {
		suite Suite
		most  uint64
	}{
		{AES128GCM, 23726566}, // 2^24.5, RFC 9147 section 4.5.3
		{AES256GCM, 23726566},
		{ChaCha20Poly1305, 1 << 48}, // as many as there are numbers
	} {
		s, _ := newPair(t, c.suite, 3)
		check.Equal(t, "records", s.Left(), c.most)
		s.next = c.most - 1
		must.Do(s.Append(nil, testContent(4)))(t)
		check.Equal(t, "records", s.Left(), 0)
		b, err := s.Append([]byte{7}, testContent(4))
		check.Error(t, "one more", err, ErrKeyExhausted)
		check.Slice(t, "what was there", b, []byte{7})
	}
}

// A key lasts until the next one may come if records keep that distance.
func TestIntervalMakesAKeyLast(t *testing.T) {
	for _, c := range []struct {
		name    string
		left    uint64
		lasting time.Duration
		want    time.Duration
	}{
		{"plenty", maxGCMSeals, time.Second, 43},
		{"few", 1000, 120 * time.Second, 120 * time.Millisecond},
		{"one", 1, time.Second, time.Second},
		{"none", 0, time.Second, time.Second},
		{"not at all", 1000, 0, 0},
		{"the time is over", 1000, -time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newPair(t, AES128GCM, 3)
			s.next = maxGCMSeals - c.left
			got := s.Interval(c.lasting)
			check.Equal(t, "interval", got, c.want)
			check.That(t, uint64(got)*max(c.left, 1) >= uint64(max(c.lasting, 0)), "%d records do not last", c.left)
		})
	}
}
