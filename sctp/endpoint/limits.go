package endpoint

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// budgetWindowsPerSecond is how many times in a second the budget begins anew. So the end of a
// flood is soon known.
const budgetWindowsPerSecond = 8

// chanceLimit lets through so much of what is asked for, by chance. When more is asked for than
// there is, every caller has the same chance, each time again. Nobody can be shut out by others
// that come first. What costs more has less of a chance, so all of one cost get as much as all of
// another. The zero value has seen nothing.
type chanceLimit struct {
	windowBeganAt     rawio.Time
	current, previous demand // in the window that began at since, and in that before
}

// demand is how many have asked, and for how much.
type demand struct{ requests, cost int }

// allow says whether something of a cost may be done. limit is what may be done in a window.
func (r *chanceLimit) allow(now rawio.Time, window time.Duration, cost, limit int, chance func() uint64) bool {
	switch d := now.Sub(r.windowBeganAt); {
	case d >= 2*window, r.current.requests == 0:
		*r = chanceLimit{windowBeganAt: now}
	case d >= window:
		*r = chanceLimit{windowBeganAt: now, previous: r.current}
	}
	r.current.requests++
	r.current.cost += cost
	if max(r.current.cost, r.previous.cost) <= limit {
		return true
	}
	return chance()%uint64(max(r.current.requests, r.previous.requests)*cost) < uint64(limit)
}

// burstLimit bounds what is let through of a burst, whose size a rate does not know ahead. At once
// it allows no more than the limit of a second and some slack. In any second it allows no more than
// twice the limit besides that. The zero value has seen nothing.
type burstLimit struct{ paidUpAt rawio.Time } // when all that was let through is paid back at the pace of the limit

// burstSlack is how many more answers may be let through at once. For a small limit chance is bound
// enough.
const burstSlack = 8

// allow says whether one more may be let through, of a cost.
func (p *burstLimit) allow(now rawio.Time, cost, limit, slack int) bool {
	p.paidUpAt = max(p.paidUpAt, now)
	each := time.Second / time.Duration(limit)
	if p.paidUpAt >= now.Add(time.Second+time.Duration(slack)*each) {
		return false
	}
	p.paidUpAt = p.paidUpAt.Add(time.Duration(cost) * each)
	return true
}

// setupBudget bounds what the endpoint does in a second for unknown peers, and the octets of its
// answers.
type setupBudget struct {
	work, octets  chanceLimit
	burst         burstLimit // of work
	maxWindowWork int        // of work in a window; 0: no bound
}

const (
	// octetsPerWork is how many octets of a packet cost as much as one set-up packet costs in any
	// case.
	octetsPerWork = 256
	// assumedAnswerOctets is the assumed length of a set-up's answer: that of an INIT with one
	// address, and its headers.
	assumedAnswerOctets = 300
	// setupBurstSlack is how much more work than that of a second may be done at once. It is as
	// much as the longest packet costs. So a lucky long packet does not take the turns of short
	// ones if the limit is small.
	setupBurstSlack = 1<<16/octetsPerWork + 1
)

func newSetupBudget(setups int) (b setupBudget) {
	if setups > 0 {
		b.maxWindowWork = max(setups/budgetWindowsPerSecond, 1)
	}
	return b
}

// allow says whether a packet of so many octets is to be looked at. Its answer has no more than
// that, and assumedAnswerOctets.
func (b *setupBudget) allow(now rawio.Time, octets int, chance func() uint64) bool {
	const window = time.Second / budgetWindowsPerSecond
	cost := 1 + octets/octetsPerWork
	return b.maxWindowWork == 0 || b.work.allow(now, window, cost, b.maxWindowWork, chance) &&
		b.octets.allow(now, window, min(octets, assumedAnswerOctets)+assumedAnswerOctets,
			2*b.maxWindowWork*assumedAnswerOctets, chance) &&
		b.burst.allow(now, cost, b.maxWindowWork*budgetWindowsPerSecond, setupBurstSlack)
}

// answerRates bounds the answers to each address in a second, in a table of fixed size. Addresses
// that share a place share its answers, and what others do can only make them fewer. An address
// that gets more packets than answers gets some of those, by chance. So others, who forge the
// address, do not keep its host from all answers.
type answerRates struct {
	maxPerSecond int // answers in a second; 0: no bound
	key          uint64
	hasOneSource bool          // all packets come from one address
	table        []sourceLimit // nil until the first answer
}

func newAnswerRates(cfg *Config) answerRates {
	return answerRates{maxPerSecond: cfg.MaxAnswers, key: cfg.AnswerKey,
		hasOneSource: cfg.Features&rawio.PointToPoint != 0}
}

// sourceLimit is what is known of the addresses that share a place.
type sourceLimit struct {
	chanceLimit
	burst burstLimit
}

const rateTableBits = 12 // of an index of the table

// allow counts an answer to addr, or says that it is one too many.
func (r *answerRates) allow(now rawio.Time, addr netip.Addr, chance func() uint64) bool {
	if r.maxPerSecond <= 0 {
		return true
	}
	switch {
	case r.table != nil:
	case r.hasOneSource:
		r.table = make([]sourceLimit, 1)
	default:
		r.table = make([]sourceLimit, 1<<rateTableBits)
	}
	s := &r.table[r.tableIndex(addr)&uint64(len(r.table)-1)]
	return s.chanceLimit.allow(now, time.Second, 1, r.maxPerSecond, chance) &&
		s.burst.allow(now, 1, r.maxPerSecond, burstSlack)
}

// tableIndex mixes address and key. It is no hash to sign with. But nobody can choose an address
// that shares the place of another without the key.
func (r *answerRates) tableIndex(addr netip.Addr) uint64 {
	a := addr.As16()
	h := r.key
	for _, w := range [...]uint64{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])} {
		hi, lo := bits.Mul64(h^w^0x9e3779b97f4a7c15, (r.key^0xd1342543de82ef95)|1)
		h = hi ^ lo
	}
	return h >> (64 - rateTableBits)
}
