package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve gives f its size and takes the disk space for it now, where the file system can.
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
