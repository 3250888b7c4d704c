//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process.
func cpuTime() (user, system time.Duration, ok bool) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, 0, false
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano()), true
}
