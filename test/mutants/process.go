package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// limits bound one run of a test binary.
type limits struct {
	processor, wall, quiet time.Duration // quiet: without a word
	octets                 int64         // of memory
}

const (
	addresses = 8 << 30 // of a plain run
	resident  = 4 << 30 // of a run under the race detector, which takes addresses without end
)

// process is one run of a test binary.
type process struct {
	binary, dir string
	args, env   []string
	race        bool
	limits
}

// timeSpent is what a run took.
type timeSpent struct {
	Processor, Wall time.Duration
}

// runToLimit runs it and stops it at its limits. What reaches one of time hangs.
func (p process) runToLimit() (v verdict, s timeSpent) {
	ctx, cancel := context.WithTimeout(context.Background(), p.wall)
	defer cancel()
	script := fmt.Sprintf("ulimit -t %d; ", int64(p.processor/time.Second)+1)
	if !p.race {
		script += fmt.Sprintf("ulimit -v %d; ", p.octets>>10)
	}
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", script + `exec "$0" "$@"`, p.binary}, p.args...)...)
	c.Dir, c.Env, c.WaitDelay = p.dir, append(os.Environ(), p.env...), time.Second
	w := &listener{limit: p.quiet, last: time.Now(), timer: time.AfterFunc(p.quiet, cancel)}
	defer w.timer.Stop()
	c.Stdout, c.Stderr = w, w
	start := time.Now()
	err := c.Start()
	if err == nil {
		done := make(chan struct{})
		if p.race {
			go watchMemory(c.Process.Pid, p.octets, done, cancel)
		}
		err = c.Wait()
		close(done)
	}
	s.Wall = time.Since(start)
	if c.ProcessState != nil {
		s.Processor = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		processor.Add(int64(s.Processor))
	}
	hung := ctx.Err() != nil || s.Processor > p.processor
	return parseOutput(w.text.String(), err, hung), s
}

// watchMemory stops a process that holds too much.
func watchMemory(pid int, octets int64, done <-chan struct{}, stop func()) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
			fields := strings.Fields(string(b))
			if err != nil || len(fields) < 2 {
				continue
			}
			if pages, _ := strconv.ParseInt(fields[1], 10, 64); pages*int64(os.Getpagesize()) > octets {
				stop()
			}
		}
	}
}
