package cc

// maxFilter is a windowed maximum of values that are not negative. It has the largest of each of
// the last times.
type maxFilter struct {
	maxima     [bbrExtraAckedRounds]int64 // of time t at t mod len
	latestTime uint64
}

// update takes a value at a time, which never goes back. It returns the largest since win-1 before
// that; win is at most len(maxima).
func (m *maxFilter) update(value int64, time, win uint64) (largest int64) {
	n := uint64(len(m.maxima))
	for m.latestTime != time {
		m.latestTime++
		m.maxima[m.latestTime%n] = 0
	}
	m.maxima[time%n] = max(m.maxima[time%n], value)
	for ago := range win {
		largest = max(largest, m.maxima[(time-ago)%n])
	}
	return largest
}
