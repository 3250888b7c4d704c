package limits

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// The least limit counts, wherever it is.
func TestLeastLimitOfMemoryCounts(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	ram := file("MemTotal:       1048576 kB\nMemFree:  1 kB\n")
	for _, row := range []struct {
		name  string
		files fstest.MapFS
		want  int64
	}{
		{"nothing is known", nil, math.MaxInt64},
		{"RAM", fstest.MapFS{"proc/meminfo": ram}, 1 << 30},
		{"a group of version 2, and one above it",
			fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("0::/a/b\n"),
				"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("1000000\n")},
			1000000},
		{"version 2 in a container", fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("0::/../b\n"),
			"sys/fs/cgroup/memory.max": file("2000000\n")}, 2000000},
		{"version 1", fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("3:cpu,cpuacct:/x\n9:memory:/y\n"),
			"sys/fs/cgroup/memory/y/memory.limit_in_bytes": file("3000000\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   file("9223372036854771712\n")}, 3000000},
	} {
		got := memoryLimitIn(row.files)
		check.That(t, got == row.want, "%s: %d, want %d", row.name, got, row.want)
	}
	n, ok := MemoryLimit()
	check.That(t, !ok || n >= 1<<20, "this machine has %d octets", n)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	n, ok = MemoryLimit()
	check.That(t, ok && n == 1<<20, "with a GOMEMLIMIT of 1 MiB %d octets", n)
}

// A number of the system's is read anew when half a second has passed, and no sooner.
func TestNumbersOfTheSystemAreReadNowAndThen(t *testing.T) {
	var r recent
	reads, start := int64(0), time.Now()
	for _, row := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {recentTime - 1, 1}, {recentTime, 2}, {recentTime + 1, 2}, {2 * recentTime, 3}} {
		got := r.read(start.Add(row.after), func() int64 { reads++; return reads })
		check.That(t, got == row.want, "after %v: %d, want %d", row.after, got, row.want)
	}
}

// A group counts wherever it is mounted, and with those above it.
func TestThrottlingIsCountedInAllGroups(t *testing.T) {
	stat := func(n string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("nr_periods 9\nnr_throttled " + n + "\n")}
	}
	groups := &fstest.MapFile{Data: []byte("0::/a/b\n3:cpuacct,cpu:/x\n9:memory:/y\n")}
	check.Equal(t, "times",
		throttleCountIn(fstest.MapFS{"proc/self/cgroup": groups, "sys/fs/cgroup/a/b/cpu.stat": stat("1"),
			"sys/fs/cgroup/cpu.stat": stat("20"), "sys/fs/cgroup/cpu/x/cpu.stat": stat("300"),
			"sys/fs/cgroup/memory/y/cpu.stat": stat("4000")}), 321)
	check.That(t, throttleCountIn(fstest.MapFS{}) == 0 && ThrottleCount() >= 0, "of a machine without groups")
}
