// Package limits says how much memory this process may use, and whether it runs out of its CPU
// quota.
package limits

import (
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// MemoryLimit returns the octets that this process may use. It is the least of the machine's RAM,
// the limits of its control groups (version 1 or 2), and GOMEMLIMIT. ok is false when none of them
// is known.
func MemoryLimit() (octets int64, ok bool) {
	return memoryLimitIn(os.DirFS("/"), debug.SetMemoryLimit(-1))
}

func memoryLimitIn(root fs.FS, runtime int64) (int64, bool) {
	least := runtime
	if v := ramOctets(root); v > 0 {
		least = min(least, v)
	}
	for line := range cgroupLines(root, "memory", "memory.max", "memory.limit_in_bytes") {
		if v := parseNumber(strings.TrimSpace(line)); v > 0 {
			least = min(least, v)
		}
	}
	return least, least < math.MaxInt64
}

// ThrottleCount returns how often the kernel has stopped this process because its control groups
// had used up their CPU quota. It takes some system calls.
func ThrottleCount() int64 { return throttleCountIn(os.DirFS("/")) }

func throttleCountIn(root fs.FS) (times int64) {
	for line := range cgroupLines(root, "cpu", "cpu.stat", "cpu.stat") {
		if n, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			times += parseNumber(strings.TrimSpace(n))
		}
	}
	return times
}

// ramOctets returns the machine's memory, 0 when that is not known.
func ramOctets(root fs.FS) int64 {
	for line := range fileLines(root, "proc/meminfo") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			return parseNumber(f[1]) << 10
		}
	}
	return 0
}

// cgroupLines iterates over the lines of a controller's file, of version 1 or 2. It reads the
// control groups that the process is in and those above them.
func cgroupLines(root fs.FS, controller, v2, v1 string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range fileLines(root, "proc/self/cgroup") {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
			if len(f) != 3 {
				continue
			}
			dir, file := "sys/fs/cgroup", v2
			if f[1] != "" {
				if !strings.Contains(","+f[1]+",", ","+controller+",") {
					continue
				}
				dir, file = "sys/fs/cgroup/"+controller, v1
			}
			// In a container the path may be that of the host, with the group itself mounted. So
			// the top is always read.
			for p := path.Clean("/" + f[2]); ; p = path.Dir(p) {
				for l := range fileLines(root, path.Join(dir, p, file)) {
					if !yield(l) {
						return
					}
				}
				if p == "/" {
					break
				}
			}
		}
	}
}

// parseNumber returns 0 for what is none, such as "max".
func parseNumber(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64>>10 {
		return 0
	}
	return n
}

func fileLines(root fs.FS, name string) iter.Seq[string] {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return func(func(string) bool) {}
	}
	return strings.Lines(string(b))
}
