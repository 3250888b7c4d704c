package tx

// A send buffer of default size begins with FirstBuffer octets of user data, and grows to
// MaxBuffer. FirstBuffer is also the longest message then.
const (
	FirstBuffer = 1 << 20
	MaxBuffer   = 16 << 20
)

// SendBuffer returns how many octets of user data Enqueue takes that are not acknowledged. The
// default is twice what the windows of the path for new data allow in flight. One half is sent
// while the other is acknowledged. Over near paths, where a round trip takes nothing, it stays as
// it is. It changes by powers of two, so that callers that keep the messages need not follow each
// change.
func (s *Sender) SendBuffer() int {
	if s.cfg.SendBuffer > 0 {
		return s.cfg.SendBuffer
	}
	n := FirstBuffer
	if p := s.DataPath(); p.IsFar() {
		for worth := 2 * min(p.sendWindow(), s.DataInFlight()+s.Rwnd()); n < worth && n < MaxBuffer; {
			n *= 2
		}
	}
	return n
}
