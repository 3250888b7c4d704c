package portregistry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// overflowUID stands for every user that a user namespace does not know (user_namespaces(7)).
const overflowUID = 65534

// isKnownUser says whether the kernel means one user by a number.
func isKnownUser(uid uint32) bool {
	if uid != overflowUID {
		return true
	}
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
}

// isOwnUser says whether a user is that of this process.
func isOwnUser(uid uint32) bool { return uid == uint32(os.Geteuid()) && isKnownUser(uid) }

// isTrustedUser says whether this process can trust what a user has done. The user is its own, or
// the superuser.
func isTrustedUser(uid uint32) bool { return uid == 0 || isOwnUser(uid) }

// firstUnprivilegedPort is the first port that needs no privilege, in the network namespace of the
// calling thread.
func firstUnprivilegedPort() (uint16, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if errors.Is(err, os.ErrNotExist) {
		return 1024, nil // of a kernel before 4.11, or there is no /proc
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 32)
	return uint16(min(n, 65535)), err
}

// mayHavePort says whether a user may have an SCTP port, as with TCP.
func mayHavePort(uid uint32, number uint16) (bool, error) {
	if isTrustedUser(uid) {
		return true, nil
	}
	first, err := firstUnprivilegedPort()
	return number >= first, err
}

// sockDiag asks the kernel about UDP sockets (sock_diag(7)), in the network namespace of the thread
// that opened it.
type sockDiag struct{ fd int }

func openSockDiag() (sockDiag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	return sockDiag{fd}, os.NewSyscallError("socket", err)
}

func (d sockDiag) close() { unix.Close(d.fd) }

// Lengths of struct nlmsghdr, and of what follows it: struct inet_diag_req_v2, and struct
// inet_diag_msg up to the user.
const (
	headerLen  = 16
	requestLen = 56
	userOffset = 64
)

// udpOwner returns the user of the socket that packets to a UDP port arrive at. ok is false if
// there is none.
func (d sockDiag) udpOwner(a netip.AddrPort) (uid uint32, ok bool, err error) {
	b := make([]byte, headerLen+requestLen)
	native := binary.NativeEndian
	native.PutUint32(b, uint32(len(b)))
	native.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[headerLen:]
	r[0], r[1] = unix.AF_INET, unix.IPPROTO_UDP
	ip := a.Addr().Unmap().AsSlice()
	if len(ip) == 16 {
		r[0] = unix.AF_INET6
	}
	native.PutUint32(r[4:], 1<<32-1) // of whatever state
	binary.BigEndian.PutUint16(r[10:], a.Port())
	copy(r[12:], ip)                  // from there
	copy(r[28:], ip)                  // to there
	native.PutUint64(r[48:], 1<<64-1) // whichever socket (INET_DIAG_NOCOOKIE)
	if err := unix.Sendto(d.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, false, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(d.fd, answer, 0)
	if err != nil {
		return 0, false, os.NewSyscallError("recvfrom", err)
	}
	answer = answer[:n]
	switch {
	case n >= headerLen+4 && native.Uint16(answer[4:]) == unix.NLMSG_ERROR:
		return listedUDPOwner(a) // the kernel has no such module, perhaps, and says the same as of no socket
	case n < headerLen+userOffset+4:
		return 0, false, os.NewSyscallError("recvfrom", unix.EBADMSG)
	}
	return native.Uint32(answer[headerLen+userOffset:]), true, nil
}

// listedUDPOwner is udpOwner from the list of all sockets.
func listedUDPOwner(a netip.AddrPort) (uid uint32, ok bool, err error) {
	file := "/proc/thread-self/net/udp"
	if a.Addr().Unmap().Is6() {
		file += "6"
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false, err
	}
	ip := a.Addr().Unmap().AsSlice()
	hex := ""
	for i := 0; i < len(ip); i += 4 {
		hex += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(ip[i:]))
	}
	all := strings.Repeat("0", len(hex))
	port := fmt.Sprintf("%04X", a.Port())
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // sl local_address rem_address st tx:rx tr:when retrnsmt uid ...
		if len(f) < 8 {
			continue
		}
		at, p, _ := strings.Cut(f[1], ":")
		if p != port || at != hex && at != all {
			continue
		}
		n, err := strconv.ParseUint(f[7], 10, 32)
		if err != nil {
			continue
		}
		if uid, ok = uint32(n), true; at == hex {
			break // the kernel prefers it to that of all addresses
		}
	}
	return uid, ok, nil
}

// CheckUDPOwner says whether the program behind a UDP port of this host may serve an SCTP port
// there. If the SCTP port needs a privilege, the program must be the superuser's, or of the user of
// this process.
func CheckUDPOwner(number uint16, at netip.AddrPort) error {
	first, err := firstUnprivilegedPort()
	if err != nil || number >= first {
		return err
	}
	d, err := openSockDiag()
	if err != nil {
		return err
	}
	defer d.close()
	uid, ok, err := d.udpOwner(at)
	if err != nil || !ok || isTrustedUser(uid) {
		return err
	}
	return fmt.Errorf("SCTP port %d needs a privilege, and UDP port %d is of user %d, who has none: %w", number,
		at.Port(), uid, syscall.EACCES)
}

// UDPOwner says which user has a UDP port.
func UDPOwner(at netip.AddrPort) string {
	if d, err := openSockDiag(); err == nil {
		defer d.close()
		if uid, ok, err := d.udpOwner(at); err == nil && ok {
			return fmt.Sprintf("a program of user %d", uid)
		}
	}
	return "another program"
}
