package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// ecnEcho is about the marks that routers put on packets instead of dropping them (RFC 3168).
type ecnEcho struct {
	enabled bool // the peer echoes congestion marks
	echoed  bool // it has done so since the last SACK
}

// SetECN says whether the peer echoes congestion marks. Packets of new DATA are then sent as
// ECT(0). Retransmissions and zero window probes never are: their loss would not be noticed (RFC
// 3168 sections 6.1.5 and 6.1.6).
func (s *Sender) SetECN(on bool) { s.ecn.enabled = on }

// SentTSNs returns how many TSNs have been sent.
func (s *Sender) SentTSNs() uint64 { return s.stats.newChunkCount() }

// HandleECNE takes an echo: the packet that began with TSN t arrived with a congestion mark. The
// window of its path is reduced unless it was since that packet was sent. That is at most once for
// a window of data (RFC 3168 section 6.1.2).
func (s *Sender) HandleECNE(now rawio.Time, t wire.TSN) {
	r := s.outstanding.sentRecord(t)
	if r == nil {
		return // never sent, or too long ago to matter
	}
	s.ecn.echoed, s.outstanding.keepHistory = true, true
	p := s.paths[r.path]
	if n := s.SentTSNs(); n-uint64(uint32(s.outstanding.nextTSN-t)) >= p.tsnsSentAtReduction {
		p.cc.OnECN(now)
		p.tsnsSentAtReduction, p.cwndFull = n, sendOrder{}
		s.stats.rare().Echoes++
	}
}
