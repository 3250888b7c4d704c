package endpoint

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// budgetWindows is how many times in a second the budget begins anew, so that it is soon known when a flood is over.
const budgetWindows = 8

// rate lets through so much of what is asked for, by chance: who asks while others ask for more than there is has the same chance as they,
// and the next time again. Nobody can be shut out by others that come first. What costs more has less of a chance, so that all of a cost get as
// much as all of another. Its zero value has seen nothing.
type rate struct {
	since       rawio.Time
	now, before demand // in the window that began at since, and in that before
}

// demand is how many have asked, and for how much.
type demand struct{ n, cost int }

// allow says whether something of a cost may be done, where limit is what may in a window.
func (r *rate) allow(now rawio.Time, window time.Duration, cost, limit int, chance func() uint64) bool {
	switch d := now.Sub(r.since); {
	case d >= 2*window, r.now.n == 0:
		*r = rate{since: now}
	case d >= window:
		*r = rate{since: now, before: r.now}
	}
	r.now.n++
	r.now.cost += cost
	if max(r.now.cost, r.before.cost) <= limit {
		return true
	}
	return chance()%uint64(max(r.now.n, r.before.n)*cost) < uint64(limit)
}

// pulse bounds what is let through of a pulse, of which a rate does not know how many will come: at once no more than the limit of a second and
// some slack, and in any second no more than twice the limit beside that. Its zero value has seen nothing.
type pulse struct{ paid rawio.Time } // when all that was let through is paid back at the pace of the limit

// pulseSlack is how many more answers may be let through at once: of a small limit chance is bound enough.
const pulseSlack = 8

// allow says whether one more may be let through, of a cost.
func (p *pulse) allow(now rawio.Time, cost, limit, slack int) bool {
	p.paid = max(p.paid, now)
	each := time.Second / time.Duration(limit)
	if p.paid >= now.Add(time.Second+time.Duration(slack)*each) {
		return false
	}
	p.paid = p.paid.Add(time.Duration(cost) * each)
	return true
}

// budget bounds what the endpoint does in a second for those whom it does not know, and the octets of its answers.
type budget struct {
	work, octets rate
	pulse        pulse // of work
	max          int   // of work in a window; 0: no bound
}

const (
	// workOctets is how many octets of a packet cost as much to look at as one that sets up an association costs in any case.
	workOctets = 256
	// answerOctets is what a set-up's answer is taken to have: that of an INIT with one address, and its headers.
	answerOctets = 300
	// setupSlack is how much more work than that of a second may be done at once: as much as the longest packet costs, so that one of those
	// that had luck does not take the turns of short ones where the limit is small.
	setupSlack = 1<<16/workOctets + 1
)

func newBudget(setups int) (b budget) {
	if setups > 0 {
		b.max = max(setups/budgetWindows, 1)
	}
	return b
}

// allow says whether a packet of so many octets is to be looked at. Its answer has no more than that, and answerOctets.
func (b *budget) allow(now rawio.Time, octets int, chance func() uint64) bool {
	const window = time.Second / budgetWindows
	cost := 1 + octets/workOctets
	return b.max == 0 || b.work.allow(now, window, cost, b.max, chance) &&
		b.octets.allow(now, window, min(octets, answerOctets)+answerOctets, 2*b.max*answerOctets, chance) &&
		b.pulse.allow(now, cost, b.max*budgetWindows, setupSlack)
}

// rates bounds the answers to each address in a second, in a table of fixed size: addresses that share a
// place share its answers, and what others do can only make them fewer. An address that gets more packets than answers gets some of
// those, by chance: others, who forge it, do not keep its host from all.
type rates struct {
	limit int // answers in a second; 0: no bound
	key   uint64
	table []source // nil until the first answer
}

// source is what is known of the addresses that share a place.
type source struct {
	rate
	pulse pulse
}

const rateBits = 12 // of an index of the table

// allow counts an answer to addr, or says that it is one too many.
func (r *rates) allow(now rawio.Time, addr netip.Addr, chance func() uint64) bool {
	if r.limit <= 0 {
		return true
	}
	if r.table == nil {
		r.table = make([]source, 1<<rateBits)
	}
	s := &r.table[r.index(addr)]
	return s.rate.allow(now, time.Second, 1, r.limit, chance) && s.pulse.allow(now, 1, r.limit, pulseSlack)
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
