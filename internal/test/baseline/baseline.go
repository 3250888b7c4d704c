package baseline

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// SCTP ports in the packets of a pump. A link that implements rawio.PortBinder needs RecvPort bound
// at the receiver.
const (
	SendPort = 40001
	RecvPort = 40002
)

// Config says what to move.
type Config struct {
	// Packet is the length of an SCTP packet in octets, common header included.
	Packet int
	// Batch is how many packets go into one WriteBatch and how many ReadBatch takes; 0 means 64.
	Batch int
	// Duration is how long to send.
	Duration time.Duration
	// Work adds a CRC32c on both sides and a copy of the payload at the receiver.
	Work bool
	// Memory is how many octets are sent from, and copied to, in turn; 0 means 4 MiB, which stay in
	// a cache.
	Memory int
	// Gate, when set, keeps a sender from overrunning its receiver, which has the same one.
	Gate Gate
	// Ready, when set, is called by Receive when the packets of a sender would be read at once.
	Ready func() error
}

// minPacket holds the common header, the kind and the number of a packet.
const minPacket = wire.CommonHeaderLen + 12

// Kinds of packets, in the octet behind the common header.
const (
	kindData = iota
	kindEnd
)

func (c *Config) batchSize() int {
	if c.Batch > 0 {
		return c.Batch
	}
	return 64
}

// packetMemory is some whose pages are there, enough for a packet.
func (c *Config) packetMemory() []byte {
	m := make([]byte, max(cmp.Or(c.Memory, 4<<20), rawio.MaxMTU))
	for i := range m {
		m[i] = byte(i)
	}
	return m
}

// Result is what one end has seen.
type Result struct {
	Packets uint64
	Octets  uint64        // of SCTP packets
	Calls   uint64        // of ReadBatch or WriteBatch
	Elapsed time.Duration // from the first packet to the last
	CPU     time.Duration // of this process meanwhile, user and system
	Bad     uint64        // wrong checksums, with Work
}

// GBps is the throughput in 10^9 octets a second.
func (r Result) GBps() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Octets) / float64(r.Elapsed.Nanoseconds())
}

func (r Result) String() string {
	return fmt.Sprintf("%.3f GB/s, %.0f packets/s, %.1f packets/batch, %.2f CPU s/GB", r.GBps(),
		float64(r.Packets)/r.Elapsed.Seconds(), float64(r.Packets)/float64(max(r.Calls, 1)),
		r.CPU.Seconds()/(float64(r.Octets)/1e9))
}

// SizeError reports a packet size that the pump cannot use.
type SizeError struct{ Got, Max int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("pump: packets of %d octets; the link takes %d to %d", e.Got, minPacket, e.Max)
}

// Send sends packets to remote for c.Duration, or until stop is set.
func Send(link rawio.Link, remote netip.AddrPort, c Config, stop *atomic.Bool) (Result, error) {
	if m := link.MTU(netip.Addr{}, remote.Addr()); c.Packet < minPacket || c.Packet > m {
		return Result{}, &SizeError{c.Packet, m}
	}
	n := c.batchSize()
	pkts, heads := make([]rawio.Packet, n), make([][minPacket]byte, n)
	payload := c.packetMemory()
	for i := range pkts {
		writeHead(heads[i][:], kindData)
		pkts[i] = rawio.Packet{Vec: [][]byte{heads[i][:], nil}, Remote: remote}
	}
	at := 0
	var r Result
	cpu, start := CPUTime(), time.Now()
	limit, lost := uint64(max(window/c.Packet, n)), uint64(0)
	for number := uint64(0); ; {
		c.Gate.waitForRoom(r.Packets, limit, &lost)
		for i := range pkts {
			binary.BigEndian.PutUint64(heads[i][minPacket-8:], number)
			number++
			if at+c.Packet > len(payload) {
				at = 0
			}
			pkts[i].Vec[1] = payload[at:][:c.Packet-minPacket]
			at += c.Packet
			if c.Work {
				wire.PutPacketChecksum(pkts[i].Vec)
			}
		}
		for rest := pkts; len(rest) > 0; {
			k, err := link.WriteBatch(rest)
			r.Packets += uint64(k)
			r.Calls++
			rest = rest[k:]
			switch {
			case err == nil:
			case errors.Is(err, rawio.ErrFull), errors.Is(err, syscall.ECONNREFUSED): // lost
				rest = rest[1:]
			default:
				return r, err
			}
		}
		if r.Elapsed = time.Since(start); r.Elapsed >= c.Duration || stop != nil && stop.Load() {
			break
		}
	}
	r.CPU = CPUTime() - cpu
	r.Octets = r.Packets * uint64(c.Packet)
	return r, nil
}

// End tells the receiver that this was all, until over is closed.
func End(link rawio.Link, remote netip.AddrPort, over <-chan struct{}) error {
	h := make([]byte, minPacket)
	writeHead(h, kindEnd)
	for {
		if _, err := link.WriteBatch([]rawio.Packet{{Vec: [][]byte{h}, Remote: remote}}); err != nil &&
			!errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		select {
		case <-over:
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func writeHead(h []byte, kind byte) {
	binary.BigEndian.PutUint16(h, SendPort)
	binary.BigEndian.PutUint16(h[2:], RecvPort)
	h[wire.CommonHeaderLen] = kind
}

// Receive counts packets until the sender's end.
func Receive(link rawio.Link, c Config) (r Result, err error) {
	runtime.LockOSThread() // as a receive goroutine of the stack does
	defer runtime.UnlockOSThread()
	pkts := make([]rawio.Packet, c.batchSize())
	var region []byte
	if c.Work {
		region = c.packetMemory()
	}
	if c.Ready != nil {
		if err := c.Ready(); err != nil {
			return r, err
		}
	}
	var first, last time.Time
	var cpu time.Duration
	at := 0
	for {
		n, err := link.ReadBatch(pkts)
		if err != nil {
			return r, err
		}
		last = time.Now()
		if first.IsZero() {
			first, cpu = last, CPUTime()
		}
		r.Calls++
		before, end := r.Packets, false
		for i := range pkts[:n] {
			p := &pkts[i]
			if p.Kind == rawio.KindSCTP && len(p.Data) >= minPacket {
				if p.Data[wire.CommonHeaderLen] == kindEnd {
					end = true
				} else {
					r.Packets++
					r.Octets += uint64(len(p.Data))
					if c.Work {
						if !wire.Packet(p.Data).ChecksumOK() {
							r.Bad++
						}
						if at+len(p.Data) > len(region) {
							at = 0
						}
						at += copy(region[at:], p.Data[minPacket:])
					}
				}
			}
			p.Release()
		}
		c.Gate.addArrived(int(r.Packets - before))
		if end {
			r.Elapsed, r.CPU = last.Sub(first), CPUTime()-cpu
			return r, nil
		}
	}
}

// Run pumps from a to b, whose address is remote, in this process, through a gate of its own.
func Run(a, b rawio.Link, remote netip.AddrPort, c Config) (sent, received Result, err error) {
	if p, ok := b.(rawio.PortBinder); ok {
		if err := p.BindPort(RecvPort); err != nil {
			return sent, received, err
		}
		defer p.UnbindPort(RecvPort)
	}
	c.Gate = NewGate()
	over := make(chan struct{})
	var rxErr error
	go func() {
		defer close(over)
		received, rxErr = Receive(b, c)
	}()
	if sent, err = Send(a, remote, c, nil); err == nil {
		err = End(a, remote, over)
	}
	if err != nil {
		b.Close() // wakes the receiver
		<-over
		return sent, received, err
	}
	<-over
	if errors.Is(rxErr, net.ErrClosed) {
		rxErr = nil
	}
	return sent, received, rxErr
}
