// Package meminfo says how much memory this process may use.
package meminfo

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Limit returns the octets that this process may use: the least of the machine's RAM, the limits of its control groups (version 1 or
// 2), and GOMEMLIMIT. ok is false when nothing of this is known.
func Limit() (octets int64, ok bool) { return limit(os.DirFS("/"), debug.SetMemoryLimit(-1)) }

func limit(root fs.FS, runtime int64) (int64, bool) {
	least := runtime
	for _, v := range append(groups(root), ram(root)) {
		if v > 0 {
			least = min(least, v)
		}
	}
	return least, least < math.MaxInt64
}

// ram returns the machine's memory, 0 when that is not known.
func ram(root fs.FS) int64 {
	for line := range lines(root, "proc/meminfo") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			return number(f[1]) << 10
		}
	}
	return 0
}

// groups returns the limits of the control groups that the process is in, and of those above them.
func groups(root fs.FS) (list []int64) {
	for line := range lines(root, "proc/self/cgroup") {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(f) != 3 {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if f[1] != "" { // version 1
			if !strings.Contains(","+f[1]+",", ",memory,") {
				continue
			}
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the path may be that of the host, and the group itself mounted: the top is looked at in any case.
		for p := path.Clean("/" + f[2]); ; p = path.Dir(p) {
			for v := range lines(root, path.Join(dir, p, file)) {
				list = append(list, number(strings.TrimSpace(v)))
			}
			if p == "/" {
				break
			}
		}
	}
	return list
}

// number returns 0 for what is none, such as "max".
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64>>10 {
		return 0
	}
	return n
}

func lines(root fs.FS, name string) func(func(string) bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return func(func(string) bool) {}
	}
	return strings.Lines(string(b))
}
