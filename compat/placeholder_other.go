//go:build !linux

package compat

import (
	"sync"
	"syscall"
	"time"
)

// Only Linux tells whether two descriptors are one socket. Elsewhere the placeholder is a number
// that is no descriptor. This package knows it, and the system fails with EBADF.
var fakeDescriptors = struct {
	sync.Mutex
	next int
	list map[int]*placeholderOptions
}{next: 1 << 20, list: make(map[int]*placeholderOptions)}

func newPlaceholder(bool, bool) (int, error) {
	fakeDescriptors.Lock()
	defer fakeDescriptors.Unlock()
	fakeDescriptors.next++
	fakeDescriptors.list[fakeDescriptors.next] = new(placeholderOptions)
	return fakeDescriptors.next, nil
}

func closePlaceholder(fd int) {
	fakeDescriptors.Lock()
	defer fakeDescriptors.Unlock()
	delete(fakeDescriptors.list, fd)
}

func placeholderKey(fd int) (uint64, error) {
	return uint64(fd), updateFake(fd, func(*placeholderOptions) {})
}

func updateFake(fd int, f func(w *placeholderOptions)) error {
	fakeDescriptors.Lock()
	defer fakeDescriptors.Unlock()
	w := fakeDescriptors.list[fd]
	if w == nil {
		return syscall.EBADF
	}
	f(w)
	return nil
}

func setPlaceholder(fd int, w placeholderOptions) {
	_ = updateFake(fd, func(old *placeholderOptions) { *old = w })
}

func readPlaceholder(fd int) (w placeholderOptions) {
	_ = updateFake(fd, func(now *placeholderOptions) { w = *now })
	return w
}

func setTimeout(fd int, send bool, d time.Duration) error {
	return updateFake(fd, func(w *placeholderOptions) {
		if send {
			w.sndTimeout = d
		} else {
			w.rcvTimeout = d
		}
	})
}

func setBuffer(fd int, send bool, octets int) error {
	return updateFake(fd, func(w *placeholderOptions) { *w.bufOf(send) = 2 * octets }) // as Linux doubles it
}

func getBuffer(fd int, send bool) (n int, err error) {
	err = updateFake(fd, func(w *placeholderOptions) { n = *w.bufOf(send) })
	if n == 0 {
		n = 1 << 20 // the default of package sctp
	}
	return n, err
}

func (w *placeholderOptions) bufOf(send bool) *int {
	if send {
		return &w.sndBuf
	}
	return &w.rcvBuf
}

func setNonblock(fd int, on bool) error {
	return updateFake(fd, func(w *placeholderOptions) { w.nonblock = on })
}
