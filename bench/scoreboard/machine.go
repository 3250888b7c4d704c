package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine is where and with what was measured.
type machine struct {
	Date     string            `json:"date"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Kernel   string            `json:"kernel"`
	Commit   string            `json:"commit"`
	Load     [2]string         `json:"load_average"` // of the last minute, before and after
	Versions map[string]string `json:"versions"`
}

func thisMachine() machine {
	m := machine{Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), CPUs: runtime.NumCPU(), Versions: make(map[string]string)}
	m.Load[0] = load()
	b, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU = cpuModel(string(b))
	m.Kernel = said("uname", "-sr")
	m.Commit = said("git", "describe", "--always", "--dirty", "--abbrev=12")
	m.Versions["go"] = strings.TrimPrefix(runtime.Version(), "go")
	m.Versions["iperf3"] = said("dpkg-query", "-W", "-f", "${Version}", "iperf3")
	m.Versions["libusrsctp"] = said("dpkg-query", "-W", "-f", "${Version}", "libusrsctp2")
	m.Versions["pion/sctp"] = moduleVersion("github.com/pion/sctp")
	return m
}

const unknown = "unknown"

// said returns what a program prints.
func said(argv ...string) string {
	b, err := exec.Command(argv[0], argv[1:]...).Output()
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return unknown
}

// load is the average of the last minute: how much else the machine had to do.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); len(f) > 0 {
		return f[0]
	}
	return unknown
}

// cpuModel finds the processor in /proc/cpuinfo. Family and model tell those apart that a virtual
// machine gives one name.
func cpuModel(info string) string {
	field := make(map[string]string)
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			if k = strings.TrimSpace(k); field[k] == "" {
				field[k] = strings.TrimSpace(v)
			}
		}
	}
	if field["model name"] == "" {
		return unknown
	}
	return fmt.Sprintf("%s (family %s, model %s)", field["model name"], field["cpu family"], field["model"])
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return unknown
}

func (m *machine) String() string {
	return fmt.Sprintf("%s, %d x %s, %s, load average %s before and %s after. "+
		"rddp %s, Go %s, iperf3 %s, libusrsctp %s, pion/sctp %s.",
		m.Date, m.CPUs, m.CPU, m.Kernel, m.Load[0], m.Load[1],
		m.Commit, m.Versions["go"], m.Versions["iperf3"], m.Versions["libusrsctp"], m.Versions["pion/sctp"])
}
