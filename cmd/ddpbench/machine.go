package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/rddp-go/rddp/internal/cli"
)

// machine describes the host of one end of a run. A peer may say anything.
type machine struct {
	Host    string `json:"host"`
	System  string `json:"system"`
	CPU     string `json:"cpu"`
	Release string `json:"release"` // of ddpbench
}

func thisMachine() machine {
	host, _ := os.Hostname() // or none
	m := machine{Host: host, System: runtime.GOOS + "/" + runtime.GOARCH, Release: cli.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(b))
	}
	m.CPU = cpuName()
	return m
}

// cpuName returns how many processors the program may use, and their name where the system tells
// it.
func cpuName() string {
	name := "processors"
	b, _ := os.ReadFile("/proc/cpuinfo") // Linux has it
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			name = strings.TrimSpace(v)
			break
		}
	}
	return strconv.Itoa(runtime.GOMAXPROCS(0)) + " x " + name
}

// machineRows describes the machine for people. It cuts whatever is too long.
func (m *machine) machineRows() [][]string {
	var rows [][]string
	for _, r := range [][2]string{{"Host", m.Host}, {"System", m.System}, {"Processors", m.CPU},
		{"Release", m.Release}} {
		v := []rune(cli.Printable(r[1]))
		if len(v) > 100 {
			v = append(v[:99], '…')
		}
		rows = append(rows, []string{r[0], string(v)})
	}
	return rows
}
