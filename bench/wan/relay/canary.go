package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Canary is the flow of packets that tell how late the road is, from the system call that sends one
// until the kernel has it at the other end.
const Canary = MaxFlows - 2

// Probe sends trains of n packets of size octets over a way of the given delay, until the context
// ends, and says how much longer they took, and how many did not come.
func (r *Relay) Probe(ctx context.Context, delay, every time.Duration, n, size int) (late Hist, missing uint64,
	err error) {
	rx, err := r.openSocket(1, Server(Canary))
	if err != nil {
		return late, 0, err
	}
	defer rx.Close()
	tx, err := r.openSocket(0, Client(Canary))
	if err != nil {
		return late, 0, err
	}
	defer tx.Close()
	var sent uint64
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()           // and the thread ends with this goroutine
		if err = Before(2); err == nil { // or an end comes between the time and the packet that carries it
			sent, err = sendTrains(ctx, tx, every, n, size)
		}
		time.Sleep(delay + 50*time.Millisecond) // the last one is under way
		rx.SetReadDeadline(time.Now())
	}()
	b, oob := make([]byte, size+1), make([]byte, 64)
	for {
		k, o, _, _, e := rx.ReadMsgUDP(b, oob)
		if e != nil {
			break
		}
		if at, ok := arrivalTime(oob[:o]); ok && k >= 8 {
			late.Add(time.Duration(at-int64(binary.NativeEndian.Uint64(b))) - delay)
		}
	}
	<-over
	return late, sent - late.N, err
}

const canaryPort = 7

func (r *Relay) openSocket(side int, a netip.Addr) (c *net.UDPConn, err error) {
	err = r.Dev[side].NS.Do(func() error {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, canaryPort)))
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		c.Close()
		return nil, err
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS,
			1)
	}); err != nil || set != nil {
		c.Close()
		return nil, fmt.Errorf("times of arrival: %v, %v", err, set)
	}
	return c, nil
}

// sendTrains sends packets that carry the time.
func sendTrains(ctx context.Context, c *net.UDPConn, every time.Duration, n, size int) (sent uint64, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	b, to := make([]byte, size), netip.AddrPortFrom(Server(Canary), canaryPort)
	for {
		select {
		case <-ctx.Done():
			return sent, nil
		case <-tick.C:
		}
		for range n {
			var t unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_REALTIME, &t); err != nil {
				return sent, err
			}
			binary.NativeEndian.PutUint64(b, uint64(t.Nano()))
			if _, err := c.WriteToUDPAddrPort(b, to); err != nil {
				return sent, err
			}
			sent++
		}
	}
}

// arrivalTime finds the kernel's time of arrival.
func arrivalTime(oob []byte) (int64, bool) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range list {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.LittleEndian.Uint64(m.Data[8:])), true
		}
	}
	return 0, false
}
