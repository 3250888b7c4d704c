package seal

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// A key is to be replaced at the first limit that either direction reaches.
func TestRekeyIsDueAtTheFirstLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		at     time.Duration
		change func(r *ring)
		want   RekeyReason
	}{
		{"new", Limits{}, 0, nil, RekeyNotDue},
		{"just before an hour", Limits{}, time.Hour - 1, nil, RekeyNotDue},
		{"an hour", Limits{}, time.Hour, nil, RekeyAge},
		{"a second, as it is set", Limits{Age: time.Second}, time.Second, nil, RekeyAge},
		{"just below 100 GB", Limits{}, 0, func(r *ring) { r.a.send.octets = 100e9 - 1 }, RekeyNotDue},
		{"100 GB sealed", Limits{}, 0, func(r *ring) { r.a.send.octets = 100e9 }, RekeyOctets},
		{"100 GB opened", Limits{}, 0, func(r *ring) { r.a.primary[0].octets = 100e9 }, RekeyOctets},
		{"just below 2^23 records", Limits{}, 0, func(r *ring) { r.a.send.next = 1<<23 - 1 }, RekeyNotDue},
		{"2^23 records sealed", Limits{}, 0, func(r *ring) { r.a.send.next = 1 << 23 }, RekeyRecords},
		{"2^23 records opened", Limits{}, 0, func(r *ring) { r.a.primary[0].opened = 1 << 23 }, RekeyRecords},
		{"just below half the failures", Limits{}, 0, func(r *ring) { r.a.primary[0].failed = 1<<35 - 1 }, RekeyNotDue},
		{"half the failures", Limits{}, 0, func(r *ring) { r.a.primary[0].failed = 1 << 35 }, RekeyFailures},
		{"failures of a key that drains", Limits{}, 0, func(r *ring) {
			r.a.primary[0].failed = 1 << 35
			r.rekey()
		}, RekeyNotDue},
		{"all as they are set", Limits{time.Minute, 1000, 10, 5}, 0, func(r *ring) {
			r.a.primary[0].octets = 1000
		}, RekeyOctets},
		{"records, as they are set", Limits{time.Minute, 1000, 10, 5}, 0, func(r *ring) { r.a.send.next = 10 }, RekeyRecords},
		{"failures, as they are set", Limits{time.Minute, 1000, 10, 5}, 0, func(r *ring) { r.a.primary[0].failed = 5 }, RekeyFailures},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRing(t, AES128GCM)
			r.a.limits = c.limits.withDefaults()
			if c.change != nil {
				c.change(r)
			}
			check.Equal(t, "reason", r.a.RekeyDue(now.Add(c.at)), c.want)
			check.Equal(t, "when it is due by age", r.a.RekeyDueAt(), now.Add(r.a.limits.Age))
		})
	}
}

// Content counts, in both directions, and nothing of what surrounds it.
func TestContentIsCounted(t *testing.T) {
	r := newRing(t, AES128GCM)
	for range 3 {
		must.That(t, opens(t, r.b, sealed(t, r.a)) != 0, "not opened")
	}
	check.Equal(t, "octets sealed", r.a.send.octets, 3*8)
	check.Equal(t, "octets opened", r.b.primary[0].octets, 3*8)
}

func TestNoKeyIsNotDue(t *testing.T) {
	k := NewKeyring(Limits{}, 0)
	check.Equal(t, "reason", k.RekeyDue(now.Add(2*time.Hour)), RekeyNotDue)
	check.Equal(t, "when", k.RekeyDueAt(), rawio.Never)
	must.OK(t, k.InstallReceive(now, 3, testMaterial(AES128GCM, 1)))
	check.Equal(t, "when, with a key to open with", k.RekeyDueAt(), now.Add(time.Hour))
}

// After a restart the keys in use are restart keys, with limits like all.
func TestRestartKeysHaveLimits(t *testing.T) {
	r := restartRing(t, AES128GCM, 3)
	must.OK(t, r.a.UseRestart(now, 3))
	r.a.restart[0].opener.opened = 1 << 23
	check.Equal(t, "reason", r.a.RekeyDue(now), RekeyRecords)
}

func TestRekeyReasonsAreInWords(t *testing.T) {
	check.Equal(t, "reason", RekeyRecords.String(), "records under the key")
	check.Equal(t, "reasons", len(rekeyReasons), int(RekeyFailures)+1)
}
