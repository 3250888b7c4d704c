package route

import (
	"net/netip"
	"runtime"
	"testing"
	"time"
)

func open(t *testing.T) *Table {
	t.Helper()
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestLoopback(t *testing.T) {
	r := open(t)
	for _, s := range []string{"127.0.0.1", "::1"} {
		a := netip.MustParseAddr(s)
		p := r.Lookup(netip.Addr{}, a)
		if p.Source != a || p.MTU < 1500 {
			t.Errorf("to %v: %+v", a, p)
		}
		if runtime.GOOS == "linux" && p.MTU != 65536 {
			t.Errorf("MTU to %v = %d", a, p.MTU)
		}
	}
	all := r.Addrs()
	if len(all) == 0 || !all[len(all)-1].IsLoopback() {
		t.Errorf("Addrs = %v, want loopback last", all)
	}
}

// An answer is kept for its lifetime and asked again after it; so is the lack of one.
func TestAnswersExpire(t *testing.T) {
	r := open(t)
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	lo := netip.MustParseAddr("127.0.0.1")
	k := key{remote: lo}
	r.Lookup(netip.Addr{}, lo)
	r.answers[k] = answer{path: Path{MTU: 7}, until: r.answers[k].until}
	now = now.Add(lifetime - 1)
	if got := r.Lookup(netip.Addr{}, lo).MTU; got != 7 {
		t.Errorf("within the lifetime: %d", got)
	}
	now = now.Add(1)
	if got := r.Lookup(netip.Addr{}, lo).MTU; got == 7 {
		t.Error("after the lifetime it is still the old answer")
	}
}

func TestFallback(t *testing.T) {
	r := open(t)
	r.Close()
	for _, test := range []struct {
		remote string
		want   int
	}{{"192.0.2.1", 1500}, {"127.0.0.1", 65536}, {"::1", 65536}} {
		if got := r.Lookup(netip.Addr{}, netip.MustParseAddr(test.remote)); got.MTU != test.want || got.Source.IsValid() {
			t.Errorf("to %s without a system: %+v, want MTU %d", test.remote, got, test.want)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	r := open(t)
	r.Close() // so that asking is cheap
	a := netip.MustParseAddr("192.0.2.1")
	for range maxAnswers + 10 {
		r.Lookup(netip.Addr{}, a)
		a = a.Next()
	}
	if len(r.answers) > maxAnswers {
		t.Errorf("%d answers kept", len(r.answers))
	}
}
