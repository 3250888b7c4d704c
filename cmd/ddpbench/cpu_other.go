//go:build !unix

package main

import "time"

// cpuTime is not known here.
func cpuTime() (user, system time.Duration, ok bool) { return 0, 0, false }
