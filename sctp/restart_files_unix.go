//go:build unix

package sctp

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn says whether a file belongs to the user of this process.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
