package cc

import (
	"math/rand"
	"testing"
	"time"
)

// limit is the most that section 7.2 allows, written from its words and without the care for bursts and
// delay that NewReno adds: cwnd may be anything up to that.
type limit struct{ cwnd, ssthresh, partial, pmdcs int }

func (m *limit) ack(a Ack) {
	full := a.Flight >= m.cwnd && !a.Recovery
	if m.cwnd <= m.ssthresh {
		if full {
			m.cwnd += min(a.Octets, m.pmdcs)
		}
	} else {
		m.partial += a.Octets + a.Dups
		if m.partial >= m.cwnd && full {
			m.partial -= m.cwnd
			m.cwnd += m.pmdcs
		}
		if m.partial > m.cwnd && !full {
			m.partial = m.cwnd
		}
	}
	if a.AllAcked {
		m.partial = 0
	}
}

func (m *limit) loss(timeout bool) {
	m.ssthresh = max(m.cwnd/2, 4*m.pmdcs)
	m.cwnd, m.partial = m.ssthresh, 0
	if timeout {
		m.cwnd = m.pmdcs
	}
}

func TestNewRenoIsNeverMoreAggressiveThanTheRFC(t *testing.T) {
	// req 9260-7.2-2
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		c := NewReno(1000, false)
		m := limit{cwnd: 4000, ssthresh: 1 << 30, pmdcs: 1000}
		for step := range 3000 {
			switch n := rnd.Intn(200); {
			case n == 0:
				c.OnTimeout(0)
				m.loss(true)
			case n < 3:
				c.OnLoss(0)
				m.loss(false)
			case n < 5:
				c.OnIdle(0, rnd.Intn(3)) // section 7.2.1 lowers cwnd; it keeps what it had as ssthresh
			default:
				a := Ack{Octets: rnd.Intn(4000), Dups: rnd.Intn(10) / 9 * 500, Flight: c.Window() - 1500 + rnd.Intn(2500), Recovery: n < 20, AllAcked: n == 20}
				if rnd.Intn(2) == 0 {
					a.RTT = time.Duration(20+rnd.Intn(20)) * time.Millisecond
				}
				c.OnAck(0, a)
				m.ack(a)
			}
			if c.Window() > m.cwnd || c.Window() < 1000 {
				t.Fatalf("seed %d step %d: cwnd %d, allowed %d", seed, step, c.Window(), m.cwnd)
			}
			// From here on the model goes on from what the controller has, which is allowed.
			r := c.(*newReno)
			m = limit{r.cwnd, r.ssthresh, r.partial, 1000}
		}
	}
}
