//go:build !unix

package pump

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
