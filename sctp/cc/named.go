package cc

// Named returns the controllers that users choose by name: cubic, newreno, rfc9260 and bbr. It
// returns nil for any other name.
func Named(name string) Factory {
	switch name {
	case "cubic":
		return NewCubic
	case "newreno":
		return NewReno
	case "rfc9260":
		return RFC9260
	case "bbr":
		return NewBBR
	}
	return nil
}
