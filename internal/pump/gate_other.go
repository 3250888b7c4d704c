//go:build !unix

package pump

import (
	"errors"
	"os"
)

// MapGate is not available here.
func MapGate(*os.File) (Gate, error) { return Gate{}, errors.ErrUnsupported }
