// Package machine says where and with what something was measured.
package machine

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Machine is where and with what was measured.
type Machine struct {
	Date     string            `json:"date"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Kernel   string            `json:"kernel"`
	Commit   string            `json:"commit"`
	Load     [2]string         `json:"load_average"` // of the last minute, before and after
	Versions map[string]string `json:"versions"`
}

// This is the machine that this program runs on. versions are of peers that only the caller knows.
func This(versions map[string]string) Machine {
	m := Machine{Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), CPUs: runtime.NumCPU(), Versions: versions}
	m.Load[0] = Load()
	b, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU = CPUModel(string(b))
	m.Kernel = Said("uname", "-sr")
	m.Commit = Commit()
	m.Versions["Go"] = strings.TrimPrefix(runtime.Version(), "go")
	return m
}

// Unknown is in place of what could not be found out.
const Unknown = "unknown"

// Said returns what a program prints.
func Said(argv ...string) string {
	b, err := exec.Command(argv[0], argv[1:]...).Output()
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return Unknown
}

// Load is the average of the last minute: how much else the machine had to do.
func Load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); len(f) > 0 {
		return f[0]
	}
	return Unknown
}

// CPUModel finds the processor in /proc/cpuinfo. Family and model tell those apart that a virtual
// machine gives one name.
func CPUModel(info string) string {
	field := make(map[string]string)
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			if k = strings.TrimSpace(k); field[k] == "" {
				field[k] = strings.TrimSpace(v)
			}
		}
	}
	if field["model name"] == "" {
		return Unknown
	}
	return fmt.Sprintf("%s (family %s, model %s)", field["model name"], field["cpu family"], field["model"])
}

// Dirty is behind a commit that is not all that was measured.
const Dirty = "-dirty"

// Commit is that of the working directory, and says whether code in it has changed since.
func Commit() string {
	c := Said("git", "describe", "--always", "--exclude=*", "--abbrev=12")
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":(top)*.go", ":(top)*.s", ":(top)*.mod").Run() != nil {
		c += Dirty
	}
	return c
}

// Module returns the version of a module in this program.
func Module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Unknown
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return Unknown
}

// String is a sentence for people.
func (m *Machine) String() string {
	var with strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		fmt.Fprintf(&with, ", %s %s", name, m.Versions[name])
	}
	return fmt.Sprintf("%s, %d x %s, %s, load average %s before and %s after%s.",
		m.Date, m.CPUs, m.CPU, m.Kernel, m.Load[0], m.Load[1], with.String())
}
