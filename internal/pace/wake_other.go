//go:build !linux

package pace

import "time"

func measureWake() time.Duration { return 0 }
