// Package model says what RFC 9260 section 7.2 allows a congestion controller, written from its
// words alone.
package model

// Limit is the most that it allows, without the care for bursts and delay that controllers add:
// cwnd may be anything up to that.
type Limit struct{ Cwnd, Ssthresh, Partial, PMDCS int }

// Ack takes a SACK that acknowledges octets and lists dups octets of duplicates, with so much in
// flight before it.
func (m *Limit) Ack(octets, dups, flight int, recovery, all bool) {
	full := flight >= m.Cwnd && !recovery
	if m.Cwnd <= m.Ssthresh {
		if full {
			m.Cwnd += min(octets, m.PMDCS)
		}
	} else {
		m.Partial += octets + dups
		if m.Partial >= m.Cwnd && full {
			m.Partial -= m.Cwnd
			m.Cwnd += m.PMDCS
		}
		if m.Partial > m.Cwnd && !full {
			m.Partial = m.Cwnd
		}
	}
	if all {
		m.Partial = 0
	}
}

// Loss takes one that a SACK, or else T3-rtx, has revealed.
func (m *Limit) Loss(timeout bool) {
	m.Ssthresh = max(m.Cwnd/2, 4*m.PMDCS)
	m.Cwnd, m.Partial = m.Ssthresh, 0
	if timeout {
		m.Cwnd = m.PMDCS
	}
}
