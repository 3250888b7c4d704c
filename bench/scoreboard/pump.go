package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/sctp/wire"
)

// playPump moves packets over a bare link: CRC32c on both sides, one copy, and no protocol.
func playPump(e *end, out io.Writer) error {
	link, err := e.openPump()
	if err != nil {
		return err
	}
	to := netip.AddrPortFrom(e.Remote, 0)
	if e.Link == "udp" {
		to = netip.AddrPortFrom(e.Remote, e.remoteUDP())
	}
	if !e.PingPong {
		return pumpBulk(e, link, to, out)
	}
	if e.Server {
		if err := sayReady(out); err != nil {
			return err
		}
	}
	return playMessages(e, &pings{link: link, to: to, server: e.Server, in: make([]rawio.Packet, 1)}, out,
		func(r *report) { countCalls(link, r) })
}

// openPump opens a link with the port that the end receives on.
func (e *end) openPump() (rawio.Link, error) {
	if e.Link == "raw" && e.Both {
		// Both ends have the same port, each at an address of its own.
		return raw.Open(raw.Config{Local: e.Local, NoPortFilter: true})
	}
	link, err := e.openLink()
	if err != nil {
		return nil, err
	}
	port := uint16(baseline.RecvPort)
	if !e.Server {
		port = baseline.SendPort
	}
	if b, ok := link.(rawio.PortBinder); ok {
		err = b.BindPort(port)
	}
	return link, err
}

// pumpDirection is one direction of a pump. Its gate is in a file that both ends have open. The
// receiver makes the file longer to tell the sender something: that it has seen the end and, if
// both send, before that that it is there.
type pumpDirection struct {
	file *os.File
	gate baseline.Gate
}

func openWay(fd uintptr) (w pumpDirection, err error) {
	w.file = os.NewFile(fd, "gate")
	w.gate, err = baseline.MapGate(w.file)
	return w, err
}

func (w *pumpDirection) fileSize() (int64, error) {
	i, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

func (w *pumpDirection) growFile() error {
	n, err := w.fileSize()
	if err != nil {
		return err
	}
	return w.file.Truncate(n + 1)
}

// whenTold returns a channel that is closed when the receiver tells something from now on.
func (w *pumpDirection) whenTold() (<-chan struct{}, error) {
	n, err := w.fileSize()
	if err != nil {
		return nil, err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for {
			if now, err := w.fileSize(); err != nil || now > n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return told, nil
}

// pumpBulk sends, receives, or does both, and reports.
func pumpBulk(e *end, link rawio.Link, to netip.AddrPort, out io.Writer) error {
	own, peer := uintptr(3), uintptr(4) // what is sent, what is received
	if e.Server {
		own, peer = peer, own
	}
	tx, err := openWay(own)
	if err != nil {
		return err
	}
	rx, err := openWay(peer)
	if err != nil {
		return err
	}
	there, err := tx.whenTold()
	if err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	if e.Server { // the client, which has been told of the end, may have gone before this end has reported
		signal.Notify(end, syscall.SIGTERM)
	}
	var r report
	receive := func() error { return e.pumpIn(link, rx, &r, rx.growFile) }
	send := func() error { return e.pumpOut(link, to, tx) }
	if e.Server {
		receive = func() error { return e.pumpIn(link, rx, &r, func() error { return sayReady(out) }) }
		send = func() error { <-there; return e.pumpOut(link, to, tx) }
	}
	var work []func() error
	if e.Server || e.Both {
		work = append(work, receive)
	}
	if !e.Server || e.Both {
		work = append(work, send)
	}
	done := make(chan error)
	for _, f := range work {
		go func() { done <- f() }()
	}
	for range work {
		if err := <-done; err != nil {
			return err
		}
	}
	countCalls(link, &r)
	if err := r.printJSON(out); err != nil || !e.Server {
		return err
	}
	<-end
	return nil
}

func (e *end) pumpIn(link rawio.Link, w pumpDirection, r *report, ready func() error) error {
	got, err := baseline.Receive(link, baseline.Config{Duration: e.runTime(), Work: true, Gate: w.gate, Ready: ready,
		Memory: e.Memory})
	if err != nil {
		return err
	}
	if got.Bad > 0 {
		return fmt.Errorf("%d packets had a wrong checksum", got.Bad)
	}
	r.Messages, r.Octets, r.Seconds = got.Packets, got.Octets, got.Elapsed.Seconds()
	return w.growFile()
}

func (e *end) pumpOut(link rawio.Link, to netip.AddrPort, w pumpDirection) error {
	over, err := w.whenTold()
	if err != nil {
		return err
	}
	c := baseline.Config{Packet: link.MTU(netip.Addr{}, to.Addr()), Duration: e.runTime(), Work: true, Gate: w.gate,
		Memory: e.Memory}
	if c.Packet > longPacket {
		c.Batch = longBatch
	}
	if _, err := baseline.Send(link, to, c, nil); err != nil {
		return err
	}
	return baseline.End(link, to, over)
}

// A batch of long packets is short, as it would fill the receive buffer of a socket.
const (
	longPacket = 16 << 10
	longBatch  = 8
)

// pings is a ping-pong of single packets as long as those of a small message would be.
type pings struct {
	link   rawio.Link
	to     netip.AddrPort
	server bool
	in     []rawio.Packet
	out    [1]rawio.Packet
	vec    [2][]byte
	head   [bareHeader]byte
}

// bareHeader is what precedes user data in a packet with one DATA chunk.
const bareHeader = wire.CommonHeaderLen + 16

func (b *pings) send(msg []byte) error {
	src, dst := uint16(baseline.SendPort), uint16(baseline.RecvPort)
	if b.server {
		src, dst = dst, src
	}
	b.head[0], b.head[1], b.head[2], b.head[3] = byte(src>>8), byte(src), byte(dst>>8), byte(dst)
	b.vec = [2][]byte{b.head[:], msg}
	b.out[0] = rawio.Packet{Vec: b.vec[:], Remote: b.to}
	_, err := b.link.WriteBatch(b.out[:])
	return err
}

func (b *pings) receive(msg []byte) (int, error) {
	for {
		if _, err := b.link.ReadBatch(b.in); err != nil {
			return 0, err
		}
		p := &b.in[0]
		n := -1
		if p.Kind == rawio.KindSCTP && len(p.Data) >= bareHeader {
			n = copy(msg, p.Data[bareHeader:])
		}
		p.Release()
		switch {
		case n == 1:
			return n, io.EOF
		case n >= 0:
			return n, nil
		}
	}
}

func (b *pings) finish() error { return b.send([]byte{0}) }
