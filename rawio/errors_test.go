package rawio

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestErrorsMatchWhatTheSystemWouldSay(t *testing.T) {
	for _, row := range []struct {
		name   string
		err    error
		target error
		want   bool
	}{
		{"port in use is EADDRINUSE", ErrPortInUse, syscall.EADDRINUSE, true},
		{"port in use is not EMSGSIZE", ErrPortInUse, syscall.EMSGSIZE, false},
		{"too long is EMSGSIZE", ErrTooLong, syscall.EMSGSIZE, true},
		{"too long is not EADDRINUSE", ErrTooLong, syscall.EADDRINUSE, false},
		{"permission unwraps to the system's error", &PermissionError{"raw", "CAP_NET_RAW", syscall.EPERM}, syscall.EPERM, true},
		{"permission is fs.ErrPermission", &PermissionError{"raw", "CAP_NET_RAW", syscall.EPERM}, fs.ErrPermission, true},
		{"unsupported is errors.ErrUnsupported", &UnsupportedError{"tun", "plan9"}, errors.ErrUnsupported, true},
		{"unsupported is no permission problem", &UnsupportedError{"tun", "plan9"}, fs.ErrPermission, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			wrapped := fmt.Errorf("listen: %w", row.err)
			got := errors.Is(wrapped, row.target)
			must.That(t, got == row.want, "errors.Is(%v, %v) = %v", wrapped, row.target, got)
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		says []string
	}{
		{"permission names the capability and the way out", &PermissionError{"raw", "CAP_NET_RAW", syscall.EPERM}, []string{"raw", "CAP_NET_RAW", "udp link"}},
		{"unsupported names the system and the way out", &UnsupportedError{"tun", "windows"}, []string{"tun", "windows", "udp link"}},
		{"MTU names both numbers", &MTUError{500}, []string{"500", "576"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, s := range row.says {
				check.That(t, strings.Contains(row.err.Error(), s), "%q does not say %q", row.err, s)
			}
		})
	}
}
