//go:build !rawio_portable

package udp

import (
	"os"

	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// reusePort lets several sockets have one port.
var reusePort = mmsg.EnableOption(unix.SOL_SOCKET, unix.SO_REUSEPORT)

// networkHeader is where a program finds the IP header: at negative offsets (SKF_NET_OFF of
// linux/filter.h).
const networkHeader = 0xfff00000

// sourceV4 and sourceV6 are where the last four octets of the source address are.
const (
	sourceV4 = networkHeader + 12
	sourceV6 = networkHeader + 20
)

// spreadFlows has the kernel choose among the first n sockets that share the port of s, by address
// and UDP port of the peer. Another program of the same user can still bind a socket to that port.
// Taking SO_REUSEPORT back would either let it, or have all packets go to one shard (Linux 6.18).
// But its socket comes later, so that it gets nothing.
func spreadFlows(s *mmsg.Socket, n int) error {
	source, ports := uint32(sourceV4), uint32(networkHeader+iphdr.IPv4HeaderLen)
	if s.V6() {
		source, ports = sourceV6, networkHeader+iphdr.IPv6HeaderLen
	}
	prog, err := mmsg.AssembleFilter([]bpf.Instruction{
		bpf.LoadAbsolute{Off: source, Size: 4},
		bpf.TAX{},
		bpf.LoadAbsolute{Off: ports, Size: 2},
		bpf.ALUOpX{Op: bpf.ALUOpXor},
		bpf.ALUOpConstant{Op: bpf.ALUOpMul, Val: 0x9e3779b1}, // Fibonacci hashing: the upper half depends on all of it
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 16},
		bpf.ALUOpConstant{Op: bpf.ALUOpMod, Val: uint32(n)},
		bpf.RetA{},
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("SO_ATTACH_REUSEPORT_CBPF", s.Control(func(fd int) error {
		return mmsg.AttachFilter(fd, unix.SO_ATTACH_REUSEPORT_CBPF, prog)
	}))
}
