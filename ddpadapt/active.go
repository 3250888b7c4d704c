package ddpadapt

// Pending returns how many Initiates of the peer have no answer yet.
func (m *Mux) Pending() int { return m.pendingInitiates }

// Active returns how many sessions somebody may still use. It leaves out those that wait only for
// the peer's acknowledgements, which the peer can withhold for as long as it likes.
func (m *Mux) Active() (n int) {
	for _, s := range m.sessions.All {
		if *s != nil && (*s).State() < Over {
			n++
		}
	}
	return n
}
