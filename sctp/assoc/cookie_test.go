package assoc_test

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func sampleCookie(now rawio.Time) assoc.Cookie {
	c := assoc.Cookie{Created: now, Life: time.Minute, LocalPort: 1, PeerPort: 2, LocalTag: 3, PeerTag: 4, LocalTie: 5, PeerTie: 6,
		LocalTSN: 7, PeerTSN: 8, PeerRwnd: 9, OutStreams: 10, InStreams: 11, PeerAdaptation: 12, HasAdaptation: true,
		Local: netip.MustParseAddr("10.0.0.1"), NumAddrs: 2}
	c.Addrs[0], c.Addrs[1] = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8::1")
	return c
}

func TestCookieComesBackAsItWas(t *testing.T) {
	now := rawio.Time(time.Hour)
	jar := assoc.NewJar(rand.Reader)
	for _, local := range []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1"), {}} {
		want := sampleCookie(now)
		want.Local = local
		b, ok := jar.Seal(now, nil, &want)
		if !ok {
			t.Fatal("not sealed")
		}
		var got assoc.Cookie
		if !jar.Open(now.Add(time.Second), b, &got) || got != want { // req 9260-3.3.3.1.1-1
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
}

func TestCookieIsAuthenticated(t *testing.T) {
	now := rawio.Time(time.Hour)
	jar := assoc.NewJar(rand.Reader)
	c := sampleCookie(now)
	b, _ := jar.Seal(now, nil, &c)
	var out assoc.Cookie
	for i := range b { // req 9260-5.1.5-2, 9260-5.1.3-1
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x10
		if jar.Open(now, bad, &out) {
			t.Fatalf("octet %d may be changed", i)
		}
	}
	for n := range b {
		if jar.Open(now, b[:n], &out) {
			t.Fatalf("accepted cut to %d octets", n)
		}
	}
	if assoc.NewJar(rand.Reader).Open(now, b, &out) {
		t.Error("another key opens it")
	}
}

func TestCookieKeyChangesEveryHour(t *testing.T) {
	start := rawio.Time(time.Hour)
	for _, row := range []struct {
		name string
		used []time.Duration // when the jar is used in between
		at   time.Duration
		want bool
	}{
		{"within the hour", nil, 59 * time.Minute, true},
		{"the previous key is still accepted", []time.Duration{61 * time.Minute}, 62 * time.Minute, true},                // req 9260-5.1.3-4
		{"after two changes it is gone", []time.Duration{61 * time.Minute, 122 * time.Minute}, 122 * time.Minute, false}, // req 9260-5.1.5-1
		{"after two hours of silence it is gone", nil, 121 * time.Minute, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			jar := assoc.NewJar(rand.Reader)
			c := sampleCookie(start)
			b, _ := jar.Seal(start, nil, &c)
			for _, d := range row.used {
				if _, ok := jar.Seal(start.Add(d), nil, &c); !ok {
					t.Fatal("not sealed")
				}
			}
			var out assoc.Cookie
			if got := jar.Open(start.Add(row.at), b, &out); got != row.want {
				t.Errorf("opened: %v", got)
			}
		})
	}
}

func TestCookieAge(t *testing.T) {
	c := sampleCookie(0)
	for _, row := range []struct {
		name    string
		now     time.Duration
		expired bool
		usec    uint32
	}{
		{"fresh", time.Second, false, 0},
		{"at the end of its life", time.Minute, false, 0},
		{"one nanosecond over counts as a microsecond", time.Minute + 1, true, 1},
		{"two hours is more than 32 bits of microseconds", 2 * time.Hour, true, 1<<32 - 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := c.Expired(rawio.Time(row.now)); got != row.expired {
				t.Errorf("expired %v", got)
			}
			if got := c.Staleness(rawio.Time(row.now)); got != row.usec {
				t.Errorf("staleness %d", got)
			}
		})
	}
}

type dry struct{}

func (dry) Read([]byte) (int, error) { return 0, errors.New("dry") }

func TestJarWithoutRandomnessSealsNothing(t *testing.T) {
	jar := assoc.NewJar(dry{})
	c := sampleCookie(0)
	if _, ok := jar.Seal(0, nil, &c); ok {
		t.Error("sealed without a key")
	}
	if jar.Open(0, make([]byte, 300), &c) {
		t.Error("opened without a key")
	}
}

func TestConfigRanges(t *testing.T) {
	for _, row := range []struct {
		field string
		cfg   assoc.Config
	}{
		{"RecvBuffer", assoc.Config{RecvBuffer: 1499}},                 // req 9260-3.3.2-7
		{"SackDelay", assoc.Config{SackDelay: 501 * time.Millisecond}}, // req 9260-6.2-11
		{"CookieLife", assoc.Config{CookieLife: 2 * time.Hour}},
		{"RTOMin", assoc.Config{RTOMin: 2 * time.Minute}},
		{"Adaptation", assoc.Config{RequireAdaptation: true}},
	} {
		var ce *assoc.ConfigError
		if _, err := row.cfg.Complete(); !errors.As(err, &ce) || ce.Field != row.field {
			t.Errorf("%s: %v", row.field, err)
		}
	}
	c, err := (*assoc.Config)(nil).Complete() // req 9260-16-1, 9260-16-2, 9260-16-3, 9260-16-4
	if err != nil || c.RTOInitial != time.Second || c.RTOMin != time.Second || c.RTOMax != time.Minute || c.MaxBurst != 4 ||
		c.CookieLife != time.Minute || c.SackDelay != 200*time.Millisecond || c.HeartbeatInterval != 30*time.Second || c.HBMaxBurst != 1 ||
		c.AssocMaxRetrans != 10 || c.PathMaxRetrans != 5 || c.MaxInitRetrans != 8 {
		t.Errorf("defaults %+v, %v", c, err)
	}
}
