package testpriv

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

var bits = map[string]uint{
	"CAP_SETUID":    unix.CAP_SETUID,
	"CAP_NET_ADMIN": unix.CAP_NET_ADMIN,
	"CAP_NET_RAW":   unix.CAP_NET_RAW,
	"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN,
}

// hasCapability reads the effective set of this process from proc(5).
func hasCapability(capability string) bool {
	bit, ok := bits[capability]
	if !ok {
		panic(fmt.Sprintf("testpriv: unknown capability %q", capability))
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(status) {
		if hex, ok := bytes.CutPrefix(line, []byte("CapEff:")); ok {
			set, err := strconv.ParseUint(string(bytes.TrimSpace(hex)), 16, 64)
			return err == nil && set>>bit&1 == 1
		}
	}
	return false
}
