package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCookiePreservative(t *testing.T) {
	for _, row := range []struct {
		name   string
		life   time.Duration
		params []byte
		after  time.Duration
		want   string
	}{
		{"without it", time.Second, nil, 1001 * time.Millisecond, "ERROR"},
		{"as long as asked for", time.Second, wire.AppendCookiePreservative(nil, 500), 1500 * time.Millisecond, "COOKIE ACK"},
		{"and no longer", time.Second, wire.AppendCookiePreservative(nil, 500), 1501 * time.Millisecond, "ERROR"},
		{"twice the life is the most", time.Second, wire.AppendCookiePreservative(nil, 1<<32-1), 2 * time.Second, "COOKIE ACK"},
		// req 9260-3.3.2.1.3-2
		{"more is not to be had", time.Second, wire.AppendCookiePreservative(nil, 1<<32-1), 2001 * time.Millisecond,
			"ERROR"},
		{"nor more than the keys allow", time.Hour, wire.AppendCookiePreservative(nil, 1<<32-1), time.Hour + time.Millisecond, "ERROR"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			l.Listen(&assoc.Config{CookieLife: row.life})
			l.Initiate(row.params)
			l.Now = l.Now.Add(row.after)
			l.Expect(l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie)), row.want)
		})
	}
}
