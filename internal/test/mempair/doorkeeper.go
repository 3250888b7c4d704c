package mempair

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// PortFilter is a link that passes only packets for bound ports, as raw links do, and loses what it
// is told to.
type PortFilter struct {
	rawio.Link
	Unbound chan uint16

	mu   sync.Mutex
	Open map[uint16]bool
	Lose wire.ChunkType // the first packet that begins with such a chunk does not leave
	Lost int
}

// ReadBatch passes on what is for an open port.
func (d *PortFilter) ReadBatch(pkts []rawio.Packet) (int, error) {
	for {
		n, err := d.Link.ReadBatch(pkts)
		if err != nil {
			return 0, err
		}
		d.mu.Lock()
		kept := 0
		for i := range n {
			if d.Open[binary.BigEndian.Uint16(pkts[i].Data[2:])] {
				pkts[kept] = pkts[i]
				kept++
			} else {
				pkts[i].Release()
			}
		}
		d.mu.Unlock()
		if kept > 0 {
			return kept, nil
		}
	}
}

// WriteBatch loses the packet that is to be lost.
func (d *PortFilter) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		if d.isLost(slices.Concat(pkts[i].Vec...)) {
			continue
		}
		if _, err := d.Link.WriteBatch(pkts[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(pkts), nil
}

// Prompt implements rawio.Prompter.
func (d *PortFilter) Prompt() rawio.Link { return d }

func (d *PortFilter) isLost(packet []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wire.ChunkType(packet[12]) != d.Lose || d.Lost > 0 {
		return false
	}
	d.Lost++
	return true
}

// BindPort opens a port.
func (d *PortFilter) BindPort(port uint16, at ...netip.Addr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Open[port] && len(at) == 0 {
		return rawio.ErrPortInUse
	}
	d.Open[port] = true
	return nil
}

// UnbindPort closes it, and tells of that.
func (d *PortFilter) UnbindPort(port uint16) {
	d.mu.Lock()
	delete(d.Open, port)
	d.mu.Unlock()
	d.Unbound <- port
}
