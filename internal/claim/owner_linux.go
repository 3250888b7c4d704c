package claim

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

// overflowUID stands for every user of whom a user namespace does not know (user_namespaces(7)).
const overflowUID = 65534

// known says whether the kernel means one user by a number.
func known(uid uint32) bool {
	if uid != overflowUID {
		return true
	}
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
}

// own says whether a user is that of this process.
func own(uid uint32) bool { return uid == uint32(os.Geteuid()) && known(uid) }

// trusted says whether what a user has done cannot be turned against this process: it is its own, or the superuser.
func trusted(uid uint32) bool { return uid == 0 || own(uid) }

// firstFree is the first port that needs no privilege, in the network namespace of the calling thread.
func firstFree() (uint16, error) {
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

// mayHave says whether a user may have an SCTP port, as with TCP.
func mayHave(uid uint32, number uint16) (bool, error) {
	if trusted(uid) {
		return true, nil
	}
	first, err := firstFree()
	return number >= first, err
}

// diag asks the kernel about UDP sockets (sock_diag(7)), in the network namespace of the thread that has opened it.
type diag struct{ fd int }

func openDiag() (diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	return diag{fd}, os.NewSyscallError("socket", err)
}

func (d diag) close() { unix.Close(d.fd) }

// Lengths of struct nlmsghdr, and of what is behind it: struct inet_diag_req_v2, and struct inet_diag_msg up to the user.
const (
	headerLen  = 16
	requestLen = 56
	userAt     = 64
)

// owner returns the user of the socket that packets to a UDP port come to. ok is false where there is none.
func (d diag) owner(a netip.AddrPort) (uid uint32, ok bool, err error) {
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
		return listedOwner(a) // the kernel has no such module, perhaps, and says the same as of no socket
	case n < headerLen+userAt+4:
		return 0, false, os.NewSyscallError("recvfrom", unix.EBADMSG)
	}
	return native.Uint32(answer[headerLen+userAt:]), true, nil
}

// listedOwner is owner by the list of all sockets.
func listedOwner(a netip.AddrPort) (uid uint32, ok bool, err error) {
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

// CheckUDP says whether the program behind a UDP port of this host may serve an SCTP port there: one that needs a privilege is the superuser's, or of the
// user of this process.
func CheckUDP(number uint16, at netip.AddrPort) error {
	first, err := firstFree()
	if err != nil || number >= first {
		return err
	}
	d, err := openDiag()
	if err != nil {
		return err
	}
	defer d.close()
	uid, ok, err := d.owner(at)
	if err != nil || !ok || trusted(uid) {
		return err
	}
	return fmt.Errorf("SCTP port %d needs a privilege, and UDP port %d is of user %d, who has none: %w", number, at.Port(), uid, syscall.EACCES)
}

// OwnerOf says whose a UDP port is.
func OwnerOf(at netip.AddrPort) string {
	if d, err := openDiag(); err == nil {
		defer d.close()
		if uid, ok, err := d.owner(at); err == nil && ok {
			return fmt.Sprintf("a program of user %d", uid)
		}
	}
	return "another program"
}
