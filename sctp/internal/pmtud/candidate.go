package pmtud

// common are IP-level MTUs of links and tunnels, in octets, ascending: IPv6's least; VPNs and clouds;
// WireGuard; VXLAN over Ethernet; 6in4; PPPoE; Ethernet; FDDI; jumbo frames.
var common = [...]int{1280, 1400, 1420, 1450, 1480, 1492, 1500, 4352, 9000}

// minGain is the least gain in octets, and the part of the size, that a probe is worth.
const (
	minGain  = 32
	gainPart = 32
)

// candidate chooses the next size to probe, 0 when there is none (RFC 8899 section 5.3.2).
func (s *Search) candidate() int {
	hint := min(s.hint, s.lim.Max)
	s.hint = 0
	switch {
	case s.size >= s.lim.Max:
		return 0
	case hint > s.size:
		return hint
	case s.ceiling == 0 || s.ceiling > s.lim.Max:
		return s.lim.Max
	}
	if n := s.known(); n != 0 {
		return n
	}
	if gap := s.ceiling - s.size; gap >= 2*max(minGain, s.size/gainPart) {
		return (s.size + gap/2) &^ 3
	}
	if !s.sure {
		return s.ceiling
	}
	return 0
}

// known returns a common size between size and ceiling, 0 when there is none: not the middle one but one
// of the lower third, because a probe that passes costs a round trip, and one that is lost PROBE_TIMER.
func (s *Search) known() int {
	var first, n int
	for i, mtu := range common {
		if size := (mtu - s.lim.Overhead) &^ 3; size > s.size && size < s.ceiling {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return (common[first+(n-1)/3] - s.lim.Overhead) &^ 3
}
