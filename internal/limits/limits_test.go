package limits

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/rddp-go/rddp/internal/test/check"
)

// The least limit counts, wherever it is.
func TestLeastLimitOfMemoryCounts(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	ram := file("MemTotal:       1048576 kB\nMemFree:  1 kB\n")
	for _, row := range []struct {
		name    string
		files   fstest.MapFS
		runtime int64
		want    int64
	}{
		{"nothing is known", nil, math.MaxInt64, math.MaxInt64},
		{"RAM", fstest.MapFS{"proc/meminfo": ram}, math.MaxInt64, 1 << 30},
		{"GOMEMLIMIT", fstest.MapFS{"proc/meminfo": ram}, 1 << 29, 1 << 29},
		{"a group of version 2, and one above it",
			fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("0::/a/b\n"),
				"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("1000000\n")},
			math.MaxInt64, 1000000},
		{"version 2 in a container", fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("0::/../b\n"),
			"sys/fs/cgroup/memory.max": file("2000000\n")}, math.MaxInt64, 2000000},
		{"version 1", fstest.MapFS{"proc/meminfo": ram, "proc/self/cgroup": file("3:cpu,cpuacct:/x\n9:memory:/y\n"),
			"sys/fs/cgroup/memory/y/memory.limit_in_bytes": file("3000000\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   file("9223372036854771712\n")}, math.MaxInt64, 3000000},
	} {
		got, ok := memoryLimitIn(row.files, row.runtime)
		check.That(t, got == row.want && ok == (row.want != math.MaxInt64), "%s: %d, %v, want %d", row.name, got, ok,
			row.want)
	}
	n, ok := MemoryLimit()
	check.That(t, !ok || n >= 1<<20, "this machine has %d octets", n)
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
