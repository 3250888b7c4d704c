//go:build !linux || 386

package sctp

import (
	"errors"
	"runtime"
)

// ErrUnsupported is never returned by this package.
var ErrUnsupported = errors.New("SCTP is unsupported on " + runtime.GOOS + "/" + runtime.GOARCH)
