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
	"sync"
	"time"
)

// MemoryLimit returns the octets that this process may use. It is the least of the machine's RAM,
// the limits of its control groups (version 1 or 2), and GOMEMLIMIT. ok is false when none of them
// is known.
func MemoryLimit() (octets int64, ok bool) {
	system := systemMemory.read(time.Now(), func() int64 { return memoryLimitIn(os.DirFS("/")) })
	octets = min(debug.SetMemoryLimit(-1), system)
	return octets, octets < math.MaxInt64
}

// memoryLimitIn returns what the system allows, math.MaxInt64 when that is not known.
func memoryLimitIn(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if v := ramOctets(root); v > 0 {
		least = min(least, v)
	}
	for line := range cgroupLines(root, "memory", "memory.max", "memory.limit_in_bytes") {
		if v := parseNumber(strings.TrimSpace(line)); v > 0 {
			least = min(least, v)
		}
	}
	return least
}

// ThrottleCount returns how often the kernel has stopped this process because its control groups
// had used up their CPU quota.
func ThrottleCount() int64 {
	return throttles.read(time.Now(), func() int64 { return throttleCountIn(os.DirFS("/")) })
}

// recent is a number of the system's. To read it takes system calls, and each Transport of a
// process asks, so it may be half a second old.
type recent struct {
	mu     sync.Mutex
	readAt time.Time // guarded by mu
	value  int64     // guarded by mu
}

const recentTime = 500 * time.Millisecond

var systemMemory, throttles recent

// read returns it, and calls anew if it is too old.
func (r *recent) read(now time.Time, anew func() int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readAt.IsZero() || now.Sub(r.readAt) >= recentTime {
		r.value, r.readAt = anew(), now
	}
	return r.value
}

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
