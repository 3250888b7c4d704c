package testns

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Refuse has the kernel refuse a system call on the calling thread from now on, where the first
// arguments are these; -1 stands for any. Call it within Do, whose thread ends.
func Refuse(errno syscall.Errno, call uintptr, args ...int) error {
	// Offsets in struct seccomp_data (linux/seccomp.h): arguments have 64 bits, of which the lower
	// half counts.
	low := uint32(16)
	if one := [2]byte{1}; *(*uint16)(unsafe.Pointer(&one)) != 1 {
		low += 4
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	prog := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(call), SkipTrue: 1}, allow}
	for i, a := range args {
		if a >= 0 {
			prog = append(prog, bpf.LoadAbsolute{Off: low + uint32(8*i), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(a), SkipTrue: 1}, allow)
		}
	}
	code, err := bpf.Assemble(append(prog, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}))
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(code))
	for i, c := range code {
		filter[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}))); e != 0 {
		return e
	}
	return nil
}

// Refusal is a system call that fails while something is opened.
type Refusal struct {
	name  string
	errno syscall.Errno
	call  uintptr
	args  []int
	well  bool
}

// Fails is a Refusal, with the arguments of Refuse, by which that fails. The name says what there
// is not.
func Fails(name string, errno syscall.Errno, call uintptr, args ...int) Refusal {
	return Refusal{name, errno, call, args, false}
}

// DoesWithout is a Refusal by which it does not fail.
func DoesWithout(name string, errno syscall.Errno, call uintptr, args ...int) Refusal {
	return Refusal{name, errno, call, args, true}
}

// Refusals opens a link in a fresh namespace under each refusal, and under those of what all links
// need: it fails with that error, unless it does without, and leaves no descriptor behind, nor does
// it when it is closed. That netlink cannot be bound is not among them: the library (v1.3.1) then
// closes a descriptor twice, the second time at a garbage collection, whoever has its number by
// then.
func Refusals(t testing.TB, open func() (io.Closer, error), rows ...Refusal) {
	t.Helper()
	for _, r := range append(rows,
		Fails("no event", unix.EMFILE, unix.SYS_EVENTFD2),
		Fails("no epoll", unix.EMFILE, unix.SYS_EPOLL_CREATE1),
		Fails("no place in it", unix.ENOSPC, unix.SYS_EPOLL_CTL),
		Fails("no netlink", unix.EMFILE, unix.SYS_SOCKET, unix.AF_NETLINK),
	) {
		New(t).Do(func() error {
			if err := Refuse(r.errno, r.call, r.args...); err != nil {
				return err
			}
			before := numDescriptors()
			c, err := open()
			switch {
			case (err == nil) != r.well || err != nil && !errors.Is(err, r.errno):
				t.Errorf("%s: %v", r.name, err)
			case err == nil:
				if err := c.Close(); err != nil {
					t.Errorf("%s, closed: %v", r.name, err)
				}
			}
			if n := numDescriptors() - before; n > 0 { // what others have left behind may go meanwhile
				t.Errorf("%s: %d descriptors stay behind", r.name, n)
			}
			return nil
		})
	}
}

// numDescriptors is how many this process has open.
func numDescriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
