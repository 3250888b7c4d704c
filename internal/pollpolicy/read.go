package pollpolicy

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

var clockStart = time.Now()

// Now is the clock of a Policy that has no other.
func Now() rawio.Time { return rawio.Time(time.Since(clockStart)) }

// errNoRoom is what a read without room returns: it would never end.
var errNoRoom = errors.New("ReadBatch needs room for a packet")

// NextBatch waits for packets at a link that leaves it to its reader how.
func (p *Policy) NextBatch(w rawio.Waiter, pkts []rawio.Packet) (n int, err error) {
	for lets := p.pausesFirst(); ; lets = false {
		if !lets {
			n = w.PollBatch(p.LimitRoom(pkts))
			p.recordLook(n)
			if n > 0 {
				return n, nil
			}
		}
		if err = w.Wait(p.NextPause(p.clock())); err != nil {
			return 0, err
		}
	}
}

// ReadPaced is ReadBatch of such a link, for callers that do not report to the Policy what becomes
// of the packets.
func (p *Policy) ReadPaced(w rawio.Waiter, pkts []rawio.Packet) (n int, err error) {
	if len(pkts) == 0 {
		return 0, errNoRoom
	}
	if n, err = p.NextBatch(w, pkts); err != nil {
		return 0, err
	}
	p.RecordArrival(p.clock(), n)
	octets := 0
	for i := range pkts[:n] {
		octets += len(pkts[i].Data)
	}
	p.RecordHandled(n, octets, 0, false)
	return n, nil
}
