package main

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// A server of either family is pinged, and one that tells of addresses of both. It goes on for
// longer than it takes until a HEARTBEAT is due. None goes where the client has no address that the
// server knows.
func TestServersOfEachFamilyArePinged(t *testing.T) {
	for _, fam := range mempair.Families() {
		t.Run(fam.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, others := simlink.New(1), new(atomic.Int64)
				for _, a := range fam.A {
					for _, b := range fam.B {
						n.Connect(a.Addr(), b.Addr(), simnet.Params{Delay: 5 * time.Millisecond})
					}
				}
				run := func(ctx context.Context, at []netip.AddrPort, out io.Writer, args ...string) int {
					o := must.Get(parseArgs(args, io.Discard))(t)
					o.link.Opener = func(bool) (rawio.Link, error) {
						return n.LinkOf(at, fam.B[0].Addr(), others), nil
					}
					return o.runAndReport(ctx, out, out)
				}
				server := []string{"-l"}
				for _, a := range fam.Listed {
					server = append(server, "--local", a.String())
				}
				serving, stop := context.WithCancel(t.Context())
				served := make(chan int)
				go func() { served <- run(serving, fam.B, io.Discard, server...) }()
				synctest.Wait()
				var out strings.Builder
				code := run(t.Context(), fam.A, &out, "-n", "-c", "5", "-i", "20", fam.B[0].Addr().String())
				check.That(t, code == exitOK && strings.Contains(out.String(), "5 received, 0% packet loss, time 80010ms\n"),
					"exit %d:\n%s", code, &out)
				check.Equal(t, "packets of the other family", others.Load(), 0)
				stop()
				check.Equal(t, "the server's exit", <-served, exitOK)
			})
		})
	}
}
