package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one end, running.
type process struct {
	cmd    *exec.Cmd
	out    output
	errors output
	peak   atomic.Int64  // resident set in octets, the highest seen
	over   chan struct{} // closed when it has ended and err is set
	err    error
}

// output keeps what a process prints, and closes seen when it contains mark.
type output struct {
	mu   sync.Mutex
	b    []byte
	mark string
	seen chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b = append(o.b, p...)
	if o.mark != "" && bytes.Contains(o.b, []byte(o.mark)) {
		o.mark = ""
		close(o.seen)
	}
	return len(p), nil
}

// startProcess runs a program in a namespace. It is ready when it prints mark.
func startProcess(ctx context.Context, ns *namespace, argv []string, mark string, files []*os.File) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), over: make(chan struct{})}
	p.out.mark, p.out.seen = mark, make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = &p.out, &p.errors, files
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := ns.runInside(p.cmd.Start); err != nil {
		return nil, err
	}
	go p.watchRSS()
	go func() {
		p.err = p.cmd.Wait()
		close(p.over)
	}()
	return p, nil
}

// watchRSS samples the peak of the resident set. The one in struct rusage begins with our own. It
// does so less often the longer the process runs: each time wakes a thread, and with it the monitor
// of the Go runtime, which looks around for some milliseconds, and those who are measured have no
// processor to spare.
func (p *process) watchRSS() {
	for begin := time.Now(); ; {
		p.sampleRSS()
		select {
		case <-p.over:
			return
		case <-time.After(min(max(time.Since(begin)/2, leastWatch), mostWatch)):
		}
	}
}

// Looks at the resident set are so far apart.
const (
	leastWatch = 50 * time.Millisecond
	mostWatch  = time.Second
)

func (p *process) sampleRSS() {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return
	}
	if n := highWater(string(b)); n > p.peak.Load() {
		p.peak.Store(n)
	}
}

// highWater finds the peak of the resident set, in octets, in /proc/PID/status; 0 if it is not
// there.
func highWater(status string) int64 {
	for line := range strings.Lines(status) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" && f[2] == "kB" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// waitUntilReady waits until the process says so.
func (p *process) waitUntilReady(ctx context.Context) error {
	select {
	case <-p.out.seen:
		return nil
	case <-p.over:
		return errors.New("did not start")
	case <-ctx.Done():
		return errors.New("was not ready in time")
	}
}

// stopServer ends a server whose client is done.
func (p *process) stopServer() {
	p.sampleRSS()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.over:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill()
		<-p.over
	}
}

// cpuSeconds is the processor time that an ended process took, in seconds.
func (p *process) cpuSeconds() float64 {
	s := p.cmd.ProcessState
	return (s.UserTime() + s.SystemTime()).Seconds()
}

// lastErrors are what the process said last of what went wrong.
func (p *process) lastErrors() string {
	p.errors.mu.Lock()
	defer p.errors.mu.Unlock()
	said := strings.TrimSpace(string(p.errors.b))
	if said == "" {
		return "(silent)"
	}
	return said[strings.LastIndexByte(said, '\n')+1:]
}
