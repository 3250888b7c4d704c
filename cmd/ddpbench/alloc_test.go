//go:build !race

package main

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// TestSteadyState runs a short and a long test of each kind: what they allocate must not depend on
// how many messages there are.
func TestSteadyState(t *testing.T) {
	for _, args := range []string{"write -s 64", "write -s 64K", "read -s 64", "send -s 64", "send -s 64 -t 2 -b",
		"send --lat", "write --lat", "read --lat"} {
		t.Run(args, func(t *testing.T) {
			allocs := func(n int) uint64 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if out, errs, code := runBench(t, append(strings.Fields(args), "--self", "--link", "mem", "-n",
					strconv.Itoa(n))...); code != exitOK {
					t.Fatal(out, errs)
				}
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			const short, long = 200, 8200
			base := allocs(short)
			per := (float64(allocs(long)) - float64(base)) / (long - short)
			check.That(t, per <= 0.05, "%.2f allocations for each message", per)
		})
	}
}
