//go:build !linux

package compat

import (
	"sync"
	"syscall"
	"time"
)

// Only Linux tells whether two descriptors are one socket. Elsewhere the placeholder is a number that is no descriptor: this package knows
// it, and the system fails by EBADF.
var fakes = struct {
	sync.Mutex
	next int
	list map[int]*settings
}{next: 1 << 20, list: make(map[int]*settings)}

func newHolder(bool, bool) (int, error) {
	fakes.Lock()
	defer fakes.Unlock()
	fakes.next++
	fakes.list[fakes.next] = new(settings)
	return fakes.next, nil
}

func closeHolder(fd int) {
	fakes.Lock()
	defer fakes.Unlock()
	delete(fakes.list, fd)
}

func holderKey(fd int) (uint64, error) { return uint64(fd), change(fd, func(*settings) {}) }

func change(fd int, f func(w *settings)) error {
	fakes.Lock()
	defer fakes.Unlock()
	w := fakes.list[fd]
	if w == nil {
		return syscall.EBADF
	}
	f(w)
	return nil
}

func setHolder(fd int, w settings) { _ = change(fd, func(old *settings) { *old = w }) }

func getHolder(fd int) (w settings) {
	_ = change(fd, func(now *settings) { w = *now })
	return w
}

func setTimeout(fd int, send bool, d time.Duration) error {
	return change(fd, func(w *settings) {
		if send {
			w.sndTimeout = d
		} else {
			w.rcvTimeout = d
		}
	})
}

func setBuffer(fd int, send bool, octets int) error {
	return change(fd, func(w *settings) { *w.buf(send) = 2 * octets }) // as Linux doubles it
}

func getBuffer(fd int, send bool) (n int, err error) {
	err = change(fd, func(w *settings) { n = *w.buf(send) })
	if n == 0 {
		n = 1 << 20 // that of package sctp
	}
	return n, err
}

func (w *settings) buf(send bool) *int {
	if send {
		return &w.sndBuf
	}
	return &w.rcvBuf
}

func setNonblock(fd int, on bool) error { return change(fd, func(w *settings) { w.nonblock = on }) }
