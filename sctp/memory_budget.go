package sctp

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/limits"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

const (
	// memoryShareDivisor is the part of what the process may use that peers may take by default.
	// defaultMemory is the default if nothing is known.
	memoryShareDivisor = 4
	defaultMemory      = 1 << 30
)

// MemoryBudget bounds what the peers of several Transports together make this process hold, as
// TransportConfig.MaxMemory does for one. It is for a program with a Transport for each of its
// peers, as over connections of package netconn: a peer at the other end of such a link may take
// half of it, as one address may. The methods are safe for concurrent use.
type MemoryBudget struct {
	total            *account.Total // what peers make the Transports hold; mu is for what needs it exclusively
	numUnderPressure atomic.Int32   // associations that are
	reclaimer        reclaimer
	arenaPool        *rawio.Pool // for backlogs

	mu         sync.Mutex              // a leaf lock
	transports map[*Transport]struct{} // guarded by mu
	lastLink   uint64                  // guarded by mu: the last that was used as account.Peer.Link
}

// NewMemoryBudget returns a budget of so many octets. Zero is the default of
// TransportConfig.MaxMemory, and a negative value means no bound.
func NewMemoryBudget(octets int64) *MemoryBudget {
	b := &MemoryBudget{total: account.NewTotal(budgetOctets(octets)), transports: make(map[*Transport]struct{}, 1),
		arenaPool: rawio.NewPool(arenaOctets, maxIdleArenas)}
	b.reclaimer.init(b)
	return b
}

// budgetOctets is what peers may make a process hold, of what a program has set.
func budgetOctets(octets int64) int64 {
	switch {
	case octets > 0:
		return octets
	case octets < 0:
		return math.MaxInt64 / 2
	}
	if n, ok := limits.MemoryLimit(); ok {
		return n / memoryShareDivisor
	}
	return defaultMemory
}

// Memory returns what the budget's peers make this process hold now.
func (b *MemoryBudget) Memory() Memory { return Memory{Used: b.total.Used(), Max: b.total.Max()} }

// Memory is how much of TransportConfig.MaxMemory, or of a MemoryBudget, is used.
type Memory struct {
	Used, Max int64 // octets
}

// openAccount makes a the account of an association with a peer.
func (b *MemoryBudget) openAccount(a *account.Account, p account.Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total.Open(a, p)
}

// closeAccount ends the account of an association.
func (b *MemoryBudget) closeAccount(a *account.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total.Close(a)
}

// admits says whether another association of a peer, of so many octets at first, has memory.
func (b *MemoryBudget) admits(p account.Peer, octets int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total.Admits(p, octets)
}

// join adds a Transport and returns the number of its link in the accounts.
func (b *MemoryBudget) join(t *Transport) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transports[t] = struct{}{}
	b.lastLink++
	return b.lastLink
}

// leave removes a Transport.
func (b *MemoryBudget) leave(t *Transport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.transports, t)
}

// stopUnused stops the reclaimer if no Transport is left.
func (b *MemoryBudget) stopUnused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.transports) == 0 {
		b.reclaimer.timer.Stop()
	}
}

// sharers returns the Transports.
func (b *MemoryBudget) sharers() []*Transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.transports))
}

// reclaimer takes memory back from associations that have too much, one call at a time.
type reclaimer struct {
	b         *MemoryBudget
	isRunning atomic.Bool
	timer     *time.Timer
	runPause  time.Duration // until the next run, so that runs take a tenth of the time at most
}

const minReclaimPause = 2 * time.Millisecond

func (r *reclaimer) init(b *MemoryBudget) {
	r.b = b
	r.timer = time.AfterFunc(time.Hour, r.runReclaim)
	r.timer.Stop()
}

// scheduleRun makes it run soon. No lock but association locks may be held.
func (r *reclaimer) scheduleRun() {
	if !r.isRunning.Load() && !r.isRunning.Swap(true) {
		r.timer.Reset(r.runPause)
	}
}

// runReclaim is the timer's function.
func (r *reclaimer) runReclaim() {
	began := time.Now()
	r.b.reclaimMemory()
	r.runPause = max(minReclaimPause, 9*time.Since(began))
	r.isRunning.Store(false) // a caller from now on has seen what was done, or calls again
}

// appendOffenders appends the associations that have more than their share, or are squeezed.
func (t *Transport) appendOffenders(list []offender) []offender {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for c := range t.conns {
		if d := c.drawnOctets(); c.memory.account.ExceedsShare(d) || c.memory.underPressure.Load() {
			list = append(list, offender{c, d})
		}
	}
	for a, w := range t.memory.orphans {
		if c := w.Value(); c != nil && a.ExceedsShare(a.Drawn()) {
			list = append(list, offender{c, a.Drawn()})
		}
	}
	return list
}

// offender is an association that has more than its share.
type offender struct {
	c           *Conn
	drawnOctets int64
}

// reclaimMemory squeezes every association that has more than its share. It ends the greediest
// while that is not enough. It releases those that have no more than their share any longer. Of two
// that have the same the younger goes first.
func (b *MemoryBudget) reclaimMemory() {
	var list []offender
	for _, t := range b.sharers() {
		list = t.appendOffenders(list)
	}
	slices.SortFunc(list, func(a, b offender) int {
		return cmp.Or(cmp.Compare(b.drawnOctets, a.drawnOctets),
			cmp.Compare(b.c.origin.assocNumber, a.c.origin.assocNumber))
	})
	var short []*Transport // that had to end an association
	for _, end := range [...]bool{false, true} {
		for _, d := range list {
			c := d.c
			if end && c.memory.account.Pressure() != account.Full {
				continue
			}
			c.lock()
			c.trimAccounts(c.heldOctets())
			switch over := c.isOverShare(); {
			case c.end.memoryFreed:
			case end && over && c.memory.account.Pressure() == account.Full:
				c.t.stats.memoryAborted.Add(1)
				short = append(short, c.t)
				c.abortForMemory(c.memory.account.FairShare())
			case over, c.memory.underPressure.Load() && c.memory.account.IsEased(c.drawnOctets()):
				c.setMemoryPressure(over)
			}
			c.unlock()
		}
	}
	for _, t := range short { // with no lock held
		t.eventLog.logLimit(limitMemory, t.stats.memoryAborted.Load())
	}
}
