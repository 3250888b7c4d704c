//go:build !unix

package pump

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
