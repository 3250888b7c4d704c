package tx

import "github.com/rddp-go/rddp/rawio"

// cwnd grows by what shows that the path carries as much. What counts is whether cwnd was full when
// a chunk was in flight, not when it is acknowledged. At the end of an answer nothing more is sent:
// its last window is acknowledged while less and less is outstanding. RFC 9002 section 7.8 has the
// question, and Linux the same answer. So a path remembers when cwnd was last full. An
// acknowledgement of what was in flight then shows it at most once. It shows nothing of a window
// that was reduced since.

// noteCwndFull remembers what is in flight to p, to which DATA has just been sent. It does so if
// that is as much as cwnd. In slow start over far paths half of it is enough, as in Linux. An
// answer seldom ends with its window, and the next one is as likely to be longer.
func (s *Sender) noteCwndFull(now rawio.Time, p *Path) {
	w := p.cc.Window()
	if w < p.cc.Ssthresh() && s.isFarPath(p) {
		w /= 2
	}
	if p.flight.octets >= w {
		p.cwndFull = sendOrder{true, stampOf(now), s.outstanding.nextTSN}
	}
}

// clearCwndFull forgets that when none of it is outstanding: stamps wrap.
func (s *Sender) clearCwndFull(p *Path) {
	if p.cwndFull.tsn.LessEq(s.outstanding.firstUnacked) {
		p.cwndFull = sendOrder{}
	}
}
