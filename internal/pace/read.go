package pace

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

var start = time.Now()

// Now is the clock of a Pace that has no other.
func Now() rawio.Time { return rawio.Time(time.Since(start)) }

// errRoom is what a read without room returns: it would never end.
var errRoom = errors.New("ReadBatch needs room for a packet")

// Next waits for packets at a link that leaves it to its reader how.
func (p *Pace) Next(w rawio.Waiter, pkts []rawio.Packet) (n int, err error) {
	for lets := p.lets(); ; lets = false {
		if !lets {
			n = w.PollBatch(p.Room(pkts))
			p.looked(n)
			if n > 0 {
				return n, nil
			}
		}
		if err = w.Wait(p.Pause(p.clock())); err != nil {
			return 0, err
		}
	}
}

// Read is ReadBatch of such a link, for who does not tell the Pace what becomes of the packets.
func (p *Pace) Read(w rawio.Waiter, pkts []rawio.Packet) (n int, err error) {
	if len(pkts) == 0 {
		return 0, errRoom
	}
	if n, err = p.Next(w, pkts); err != nil {
		return 0, err
	}
	p.Arrived(p.clock(), n)
	octets := 0
	for i := range pkts[:n] {
		octets += len(pkts[i].Data)
	}
	p.Handled(n, octets, 0, false)
	return n, nil
}
