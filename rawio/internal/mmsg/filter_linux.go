package mmsg

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// AssembleFilter makes of a program what the kernel takes.
func AssembleFilter(prog []bpf.Instruction) ([]unix.SockFilter, error) {
	code, err := bpf.Assemble(prog)
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(code))
	for i, c := range code {
		out[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	return out, nil
}

// AttachFilter gives a program to a socket, by an option of level SOL_SOCKET that takes one.
func AttachFilter(fd, option int, prog []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, option,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
}
