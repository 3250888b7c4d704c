//go:build !unix

package baseline

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
