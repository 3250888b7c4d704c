package relay

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of SIOCETHTOOL that switch a feature (linux/ethtool.h).
const (
	ethtoolSetGSO = 0x24
	ethtoolSetGRO = 0x2c
	ethtoolSetTSO = 0x1f
)

// disableOffload switches the road's device of this thread's namespace to one packet at a time.
func disableOffload() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, cmd := range []uint32{ethtoolSetTSO, ethtoolSetGSO, ethtoolSetGRO} {
		value := struct{ cmd, data uint32 }{cmd, 0}
		req := struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}{data: unsafe.Pointer(&value)}
		copy(req.name[:], deviceName)
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e !=
			0 && e != unix.EOPNOTSUPP {
			return fmt.Errorf("switching segmentation off: %w", e)
		}
	}
	return nil
}
