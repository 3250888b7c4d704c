//go:build !linux

package pace

import "runtime"

// Cede lets other goroutines go first, and so perhaps other threads of the host.
func Cede() { runtime.Gosched() }

// processor returns the number of the one that this runs on, which is not known.
func processor() int { return 0 }
