package tx

// A send buffer of default size begins with FirstBuffer octets of user data, which is also the
// longest message then, and grows to MaxBuffer.
const (
	FirstBuffer = 1 << 20
	MaxBuffer   = 16 << 20
)

// SendBuffer returns how many octets of user data Enqueue takes that are not acknowledged. By
// default that is as much as is worth having ready for the path that new data takes: twice what its
// windows let be in flight, one half of it to be sent while the other is acknowledged. Over near
// paths, where a round trip takes nothing, it stays as it is. It goes by powers of two, so that who
// keeps the messages does not follow each change.
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
