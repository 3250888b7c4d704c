package pmtud

// commonMTUs are IP-level MTUs of links and tunnels, in octets, ascending. They are of IPv6's
// least; VPNs and clouds; WireGuard; VXLAN over Ethernet; 6in4; PPPoE; Ethernet; FDDI; jumbo
// frames.
var commonMTUs = [...]int{1280, 1400, 1420, 1450, 1480, 1492, 1500, 4352, 9000}

// minGain is the least gain in octets, and the part of the size, that a probe is worth.
const (
	minGain        = 32
	minGainDivisor = 32
)

// nextCandidate chooses the next size to probe, 0 when there is none (RFC 8899 section 5.3.2).
func (s *Search) nextCandidate() int {
	hint := min(s.reportedSize, s.limits.Max)
	s.reportedSize = 0
	switch {
	case s.plpmtu >= s.limits.Max:
		return 0
	case hint > s.plpmtu:
		return hint
	case s.ceiling == 0 || s.ceiling > s.limits.Max:
		return s.limits.Max
	}
	if n := s.nextCommonSize(); n != 0 {
		return n
	}
	if gap := s.ceiling - s.plpmtu; gap >= 2*max(minGain, s.plpmtu/minGainDivisor) {
		return (s.plpmtu + gap/2) &^ 3
	}
	if !s.ceilingIsSure {
		return s.ceiling
	}
	return 0
}

// nextCommonSize returns a common size between size and ceiling, 0 when there is none. It is one of
// the lower third, because a probe that passes costs a round trip, and a lost one PROBE_TIMER.
func (s *Search) nextCommonSize() int {
	var first, n int
	for i, mtu := range commonMTUs {
		if size := (mtu - s.limits.Overhead) &^ 3; size > s.plpmtu && size < s.ceiling {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return (commonMTUs[first+(n-1)/3] - s.limits.Overhead) &^ 3
}
