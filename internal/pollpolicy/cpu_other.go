//go:build !linux

package pollpolicy

import "runtime"

// YieldCPU lets other goroutines go first, and so perhaps other threads of the host.
func YieldCPU() { runtime.Gosched() }

// currentProcessor returns the number of the one that this runs on, which is not known.
func currentProcessor() int { return 0 }
