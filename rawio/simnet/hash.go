package simnet

import (
	"encoding/binary"
	"math/bits"

	"github.com/rddp-go/rddp/rawio"
)

// runningHash is a running hash over words, in the manner of xxHash. It finds differences between
// runs; it does not resist an adversary.
type runningHash uint64

const (
	hashSend    = 1
	hashDeliver = 2
)

func (d *runningHash) addWord(w uint64) {
	h := uint64(*d) ^ w*0xc2b2ae3d27d4eb4f
	*d = runningHash(bits.RotateLeft64(h, 27)*0x9e3779b185ebca87 + 0x85ebca77c2b2ae63)
}

func (d *runningHash) addPacket(event uint64, now rawio.Time, p *rawio.Packet) {
	d.addWord(event | uint64(p.Kind)<<8 | uint64(p.ECN)<<16 | uint64(p.MTU)<<32)
	d.addWord(uint64(now))
	src, dst := p.Local.Addr().As16(), p.Remote.Addr().As16()
	d.addWord(binary.LittleEndian.Uint64(src[:8]))
	d.addWord(binary.LittleEndian.Uint64(src[8:]))
	d.addWord(binary.LittleEndian.Uint64(dst[:8]))
	d.addWord(binary.LittleEndian.Uint64(dst[8:]))
	d.addWord(uint64(p.Local.Port()) | uint64(p.Remote.Port())<<16 | uint64(len(p.Data))<<32)
	b := p.Data
	for ; len(b) >= 8; b = b[8:] {
		d.addWord(binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		d.addWord(binary.LittleEndian.Uint64(last[:]))
	}
}
