package endpoint

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// rates bounds the answers to each address in a second, in a table of fixed size: addresses that share a
// place share its answers, and what others do can only make them fewer.
type rates struct {
	limit int // answers in a second; 0: no bound
	key   uint64
	table []bucket // nil until the first answer
}

const rateBits = 12 // of an index of the table

// bucket counts the answers of the second that began at since.
type bucket struct {
	since rawio.Time
	used  int
}

// allow counts an answer to addr, or says that it is one too many.
func (r *rates) allow(now rawio.Time, addr netip.Addr) bool {
	if r.limit <= 0 {
		return true
	}
	if r.table == nil {
		r.table = make([]bucket, 1<<rateBits)
	}
	b := &r.table[r.index(addr)]
	if b.used == 0 || now.Sub(b.since) >= time.Second {
		*b = bucket{since: now}
	}
	if b.used == r.limit {
		return false
	}
	b.used++
	return true
}

// index mixes address and key: not a hash to sign with, but good enough that nobody who does not know the
// key can choose an address to share the place of another.
func (r *rates) index(addr netip.Addr) uint64 {
	a := addr.As16()
	h := r.key
	for _, w := range [...]uint64{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])} {
		hi, lo := bits.Mul64(h^w^0x9e3779b97f4a7c15, (r.key^0xd1342543de82ef95)|1)
		h = hi ^ lo
	}
	return h >> (64 - rateBits)
}
