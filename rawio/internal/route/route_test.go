package route

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/must"
)

func openTable(t *testing.T) *Table {
	t.Helper()
	r := must.Get(Open())(t)
	t.Cleanup(r.Close)
	return r
}

func TestTableMayBeUsedAtOnce(t *testing.T) {
	table, lo := openTable(t), netip.MustParseAddr("127.0.0.1")
	look := func(int) {
		check.That(t, table.Lookup(netip.Addr{}, lo).MTU != 0, "no MTU")
	}
	all := []func(int){look, look, func(int) { table.Addrs() }, func(int) { table.Addrs() }, func(int) { table.ForgetRoutesTo(lo) }, func(int) { table.ForgetRoutesTo(lo) }}
	concurrent.RunTogether(50, all...)
	concurrent.RunTogether(2, append(all, func(int) { table.Close() }, func(int) { table.Close() })...)
}

func TestLoopbackAddressIsItsOwnSource(t *testing.T) {
	r := openTable(t)
	for _, s := range []string{"127.0.0.1", "::1"} {
		a := netip.MustParseAddr(s)
		p := r.Lookup(netip.Addr{}, a)
		check.That(t, p.Source == a && p.MTU >= 1500, "to %v: %+v", a, p)
		check.That(t, runtime.GOOS != "linux" || p.MTU == 65536, "MTU to %v = %d", a, p.MTU)
	}
	all := r.Addrs()
	check.That(t, len(all) != 0 && all[len(all)-1].IsLoopback(), "Addrs = %v, want loopback last", all)
	seen := make(map[netip.Addr]bool)
	for _, a := range all {
		check.That(t, !seen[a], "%v is there twice", a)
		seen[a] = true
	}
}

// An answer is kept for its lifetime and asked again after it; so is the lack of one.
func TestAnswersExpire(t *testing.T) {
	r := openTable(t)
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	lo := netip.MustParseAddr("127.0.0.1")
	k := lookupKey{remote: lo}
	r.Lookup(netip.Addr{}, lo)
	r.answers[k] = cachedPath{path: Path{MTU: 7}, expiresAt: r.answers[k].expiresAt}
	now = now.Add(answerLifetime - 1)
	check.Equal(t, "within the lifetime", r.Lookup(netip.Addr{}, lo).MTU, 7)
	now = now.Add(1)
	check.That(t, r.Lookup(netip.Addr{}, lo).MTU != 7, "after the lifetime it is still the old answer")
	for _, step := range []struct {
		after time.Duration
		who   string
		kept  bool
	}{{0, "127.0.0.2", true}, {distrustInterval, "127.0.0.1", false}, {distrustInterval - 1, "127.0.0.1", true}, {1, "::ffff:127.0.0.1", false}} {
		r.answers[k] = cachedPath{path: Path{MTU: 7}, expiresAt: now.Add(answerLifetime)}
		now = now.Add(step.after)
		r.ForgetRoutesTo(netip.MustParseAddr(step.who))
		check.That(t, (r.Lookup(netip.Addr{}, lo).MTU == 7) == step.kept, "%v after the last time, %s is not trusted: kept %v", step.after, step.who, !step.kept)
	}
}

func TestWithoutTheKernelTheMTUIsAFallback(t *testing.T) {
	r := openTable(t)
	r.Close()
	for _, test := range []struct {
		remote string
		want   int
	}{{"192.0.2.1", 1500}, {"127.0.0.1", 65536}, {"::1", 65536}, {"fe80::1%nosuch", 1500}} {
		got := r.Lookup(netip.Addr{}, netip.MustParseAddr(test.remote))
		check.That(t, got.MTU == test.want && !got.Source.IsValid(), "to %s without a system: %+v, want MTU %d", test.remote, got, test.want)
	}
}

func TestCacheIsBounded(t *testing.T) {
	r := openTable(t)
	r.Close() // so that asking is cheap
	a := netip.MustParseAddr("192.0.2.1")
	for range maxAnswers + 10 {
		r.Lookup(netip.Addr{}, a)
		a = a.Next()
		must.That(t, len(r.answers) <= maxAnswers, "%d answers kept", len(r.answers))
	}
}
