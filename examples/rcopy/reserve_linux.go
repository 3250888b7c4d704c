package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// space returns how many octets of the file system of root are free for this program, and its size.
func space(root *os.Root) (free, total uint64, known bool) {
	dir, err := root.Open(".")
	if err != nil {
		return 0, 0, false
	}
	defer dir.Close()
	var s unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &s) != nil || s.Bsize <= 0 {
		return 0, 0, false
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), true
}

// reserve gives f its size and takes the disk space for it now, if the file system can.
func reserve(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP):
			return f.Truncate(size)
		}
		return os.NewSyscallError("fallocate", err)
	}
}
