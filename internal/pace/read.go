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

// Read is ReadBatch of a link that is a rawio.Waiter.
func Read(w rawio.Waiter, p *Pace, pkts []rawio.Packet) (n int, err error) {
	if len(pkts) == 0 {
		return 0, errRoom
	}
	for {
		if n = w.PollBatch(p.Room(pkts)); n > 0 {
			p.Arrived(Now(), n)
			octets := 0
			for i := range pkts[:n] {
				octets += len(pkts[i].Data)
			}
			p.Handled(n, octets, 0)
			return n, nil
		}
		if err = w.Wait(p.Pause(Now())); err != nil {
			return 0, err
		}
	}
}
