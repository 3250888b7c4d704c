//go:build !linux || 386

package sctp

import (
	"errors"
	"runtime"
)

// ErrUnsupported is not returned here.
var ErrUnsupported = errors.New("SCTP is unsupported on " + runtime.GOOS + "/" + runtime.GOARCH)
