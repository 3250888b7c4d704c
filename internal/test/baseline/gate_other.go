//go:build !unix

package baseline

import (
	"errors"
	"os"
)

// MapGate is not available here.
func MapGate(*os.File) (Gate, error) { return Gate{}, errors.ErrUnsupported }
