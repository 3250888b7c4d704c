//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// What an attack may cost the victim.
const (
	mostRatio = 10               // times the processor time of as many honest packets of the same lengths
	mostHold  = time.Millisecond // of the gate of an association
	// of a gate, counted: a batch of packets, each with what test/attack allows for one
	mostSteps     = 64 * 4000
	heapPercent   = 125       // of the account that live heap may have
	heapEach      = 16 << 10  // octets more for each association
	heapSpare     = 320 << 10 // and for two batches of packets to send, which a Transport keeps to use again
	costRounds    = 3         // measurements where the first is beyond mostRatio or mostHold: the median counts
	leastHonest   = 28        // octets of the shortest honest packet: a SACK
	mostHonest    = 1452      // and of the longest
	dataOverhead  = wire.CommonHeaderLen + wire.DataHeaderLen
	lastAnswersIn = 60 * time.Millisecond
)

// cost is what was taken of the victim in one measurement.
type cost struct {
	Packets      int           `json:"packets"`                  // set-up included
	Attack       time.Duration `json:"attack_ns"`                // of processors
	Honest       time.Duration `json:"honest_ns"`                // for honest packets
	Undecodable  time.Duration `json:"undecodable_ns,omitempty"` // for datagrams that nobody can decode
	Hold         sctp.Hold     `json:"hold"`
	Heap         int64         `json:"heap"`    // octets that are alive, less those of before
	Account      int64         `json:"account"` // octets
	Associations int           `json:"associations"`
}

// timeRatio is how much more processor time an attack takes than what is honest.
func (c *cost) timeRatio() float64 {
	return c.Attack.Seconds() / max(c.Honest.Seconds(), 1e-6)
}

// undecodableRatio is how much more processor time an attack takes than what nobody can decode. It is
// 0 where the two were not compared.
func (c *cost) undecodableRatio() float64 {
	if c.Undecodable == 0 {
		return 0
	}
	return c.Attack.Seconds() / c.Undecodable.Seconds()
}

// heapAllowed is how much live heap may have, octets.
func (c *cost) heapAllowed(idle int64) int64 {
	return idle + heapSpare + c.Account*heapPercent/100 + int64(c.Associations)*heapEach
}

// judgeCost says which limits are exceeded. Times count only if timed, while steps are counted
// exactly.
func (c *cost) judgeCost(idle int64, timed bool, fail func(string, ...any)) {
	if v := c.timeRatio(); timed && v > mostRatio {
		fail("%.1f times the processor time of honest packets", v)
	}
	if timed && sctp.MeasuresHolds && c.Hold.Time > mostHold {
		fail("a gate is held for %v", c.Hold.Time)
	}
	if c.Hold.Steps > mostSteps {
		fail("a gate is held for %d steps", c.Hold.Steps)
	}
	if most := c.heapAllowed(idle); c.Heap > most {
		fail("%d KiB of heap, %d KiB are accounted for", c.Heap>>10, most>>10)
	}
}

// victimTime measures the processor time that the victim takes while f runs, without what it takes
// at rest.
func (a *arena) victimTime(f func() error) (time.Duration, error) {
	before, err := a.victimStats(false)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	wrong := f()
	after, err := a.waitUntilSettled(before)
	if err != nil {
		return 0, err
	}
	rest := time.Duration(a.idle * float64(time.Since(start)))
	return max(after.CPU-before.CPU-rest, 0), wrong
}

// watchHolds measures how long gates are held while f runs.
func (a *arena) watchHolds(f func() error) (sctp.Hold, error) {
	if err := a.victim.callAgent("watch", true, nil); err != nil {
		return sctp.Hold{}, err
	}
	before, err := a.victimStats(false)
	if err != nil {
		return sctp.Hold{}, err
	}
	wrong := f()
	if _, err := a.waitUntilSettled(before); err != nil {
		return sctp.Hold{}, err
	}
	h, err := a.longestHold()
	if err != nil {
		return h, err
	}
	return h, wrong
}

// longestHold is the longest since "watch" was asked for.
func (a *arena) longestHold() (h sctp.Hold, err error) {
	if err := a.victim.callAgent("holds", nil, &h); err != nil {
		return h, err
	}
	return h, a.victim.callAgent("watch", false, nil)
}

// waitUntilSettled waits until the victim has read everything, and come to rest.
func (a *arena) waitUntilSettled(last *victimStats) (*victimStats, error) {
	if err := a.awaitVictimRead(); err != nil {
		return nil, err
	}
	pause := lastAnswersIn
	if !a.measuresTimes() {
		pause /= 4 // reactions that have to come are waited for
	}
	for end := time.Now().Add(5 * time.Second); ; {
		time.Sleep(pause)
		s, err := a.victimStats(false)
		if err != nil {
			return nil, err
		}
		if busy := s.CPU - last.CPU; busy < pause/10 || time.Now().After(end) {
			return s, nil
		}
		last = s
	}
}

// costOfHonest sends as many packets of the same lengths, at the same moments, as an honest peer
// would: messages to a program that reads them.
func (a *arena) costOfHonest(packets []sentPacket) (time.Duration, error) {
	if len(packets) == 0 {
		return 0, nil
	}
	p, err := a.x.openAssoc(a.x.victimPort(portSCTP), nil)
	if err != nil {
		return 0, err
	}
	defer a.x.dropPeer(p)
	defer p.abortAssoc()
	if err := p.sendMessage("hello"); err != nil {
		return 0, err
	}
	time.Sleep(20 * time.Millisecond)
	ssn := uint16(0)
	payload := make([]byte, mostHonest)
	return a.victimTime(func() error {
		start := time.Now()
		for _, m := range packets {
			p.drainPackets()
			for due := m.at.Sub(packets[0].at); time.Since(start) < due; {
				if wait := due - time.Since(start); wait > time.Millisecond {
					time.Sleep(wait - time.Millisecond)
				} else {
					runtime.Gosched()
				}
			}
			n, err := min(max(m.length, leastHonest), mostHonest), error(nil)
			if n <= dataOverhead {
				err = p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: p.rwnd}))
			} else {
				ssn++
				err = p.sendChunks(p.appendData(nil, whole, 0, ssn, 0, payload[:n-dataOverhead]))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// medianCost is the measurement in the middle, for what others on the machine disturb.
func medianCost(list []cost) cost {
	c := list[len(list)-1] // heap is what it is at the end
	ratios, holds := slices.Clone(list), slices.Clone(list)
	slices.SortFunc(ratios, func(a, b cost) int { return int(1e6 * (a.timeRatio() - b.timeRatio())) })
	slices.SortFunc(holds, func(a, b cost) int { return int(a.Hold.Time - b.Hold.Time) })
	mid := ratios[len(list)/2]
	c.Packets, c.Attack, c.Honest, c.Hold = mid.Packets, mid.Attack, mid.Honest, holds[len(list)/2].Hold
	slices.SortFunc(ratios, func(a, b cost) int { return int(1e6 * (a.undecodableRatio() - b.undecodableRatio())) })
	if mid = ratios[len(list)/2]; mid.Undecodable > 0 {
		c.Attack, c.Undecodable = mid.Attack, mid.Undecodable
	}
	return c
}

// tableCells are those of the table.
func (c *cost) tableCells() []string {
	ratio, hold := "-", []string{"-", "-"}
	if c.Honest > 0 {
		ratio = fmt.Sprintf("%.1f", c.timeRatio())
	}
	if sctp.MeasuresHolds {
		hold = []string{fmt.Sprint(c.Hold.Steps), fmt.Sprint(c.Hold.Time.Microseconds())}
	}
	return append([]string{
		fmt.Sprintf("%.1f", c.Attack.Seconds()*1e6/float64(max(c.Packets, 1))), ratio}, append(hold,
		fmt.Sprint(c.Heap>>10), fmt.Sprint(c.Account>>10), fmt.Sprint(c.Associations))...)
}

// costOfUndecodable sends as many packets of the same lengths as fast as they go, for which the victim
// has no use: their checksums are wrong.
func (a *arena) costOfUndecodable(packets []sentPacket) (time.Duration, error) {
	from := netip.AddrPortFrom(a.friendAddr, friendSealed)
	to := a.victimPort(portSealed)
	junk := make([]byte, mostHonest)
	return a.victimTime(func() error {
		start := time.Now()
		for _, m := range packets {
			for due := m.at.Sub(packets[0].at); time.Since(start) < due; {
				runtime.Gosched()
			}
			pkt := forge.Packet(from.Port(), to.Port(), 1, junk[:min(max(m.length-wire.CommonHeaderLen, 0), len(junk))])
			pkt[8]++ // of its checksum
			if err := a.w.sendIP(a.w.carrySCTP(from.Addr(), to.Addr(), encapPort, pkt)); err != nil {
				return err
			}
		}
		return nil
	})
}
