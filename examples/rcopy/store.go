package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/rddp-go/rddp/internal/cli"
)

// incoming is a file that is being received. It has a temporary name until keep gives it its own,
// in place of an older one if there is one. discard removes it.
type incoming struct {
	root *os.Root
	temp string
	f    *os.File

	left   atomic.Int64          // octets that may still be written
	failed atomic.Pointer[error] // the first failure to write
}

// create makes room for an incoming file. Everything stays below root, whatever the names are.
func create(root *os.Root, size uint64) (*incoming, error) {
	in := &incoming{root: root, temp: tempPrefix + rand.Text()}
	in.left.Store(int64(size))
	var err error
	if in.f, err = root.OpenFile(in.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return nil, err
	}
	if err := reserve(in.f, int64(size)); err != nil {
		in.discard()
		if errors.Is(err, syscall.ENOSPC) {
			return nil, fmt.Errorf("there is not enough free space for %d octets", size)
		}
		return nil, err
	}
	return in, nil
}

var errTooMuch = errors.New("more octets came than were announced")

// WriteAt is called for each segment as it is placed. SCTP places each just once, so an honest
// client cannot exceed the size.
func (in *incoming) WriteAt(p []byte, off int64) (int, error) {
	if in.left.Add(-int64(len(p))) < 0 {
		return 0, in.fail(errTooMuch)
	}
	n, err := in.f.WriteAt(p, off)
	return n, in.fail(err)
}

func (in *incoming) fail(err error) error {
	if err != nil {
		in.failed.CompareAndSwap(nil, &err)
	}
	return err
}

// err returns why writing failed.
func (in *incoming) err() error {
	if p := in.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// ReadAt makes the file a device. The client has no right to read.
func (in *incoming) ReadAt(p []byte, off int64) (int, error) { return in.f.ReadAt(p, off) }

// sum computes the SHA-256 of the whole file.
func (in *incoming) sum(ctx context.Context, size uint64) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	src := io.NewSectionReader(in.f, 0, int64(size))
	buf := make([]byte, 1<<20)
	for err == nil && ctx.Err() == nil {
		var n int
		n, err = src.Read(buf)
		h.Write(buf[:n])
	}
	if err == io.EOF {
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	return sum, errors.Join(err, ctx.Err())
}

// keep makes the file durable and gives it its name.
func (in *incoming) keep(name string) error {
	err := in.f.Sync()
	if err := errors.Join(err, in.f.Close()); err != nil {
		return err
	}
	if err := in.root.Rename(in.temp, name); err != nil {
		return err
	}
	in.temp = ""
	if dir, err := in.root.Open("."); err == nil {
		dir.Sync() // the new name too; not all systems can
		dir.Close()
	}
	return nil
}

// discard removes the file unless keep has succeeded.
func (in *incoming) discard() {
	in.f.Close()
	if in.temp == "" {
		return
	}
	if err := in.root.Remove(in.temp); err != nil {
		cli.Warn("rcopy", "%v", err)
	}
}
