package cc

// maxFilter is a windowed maximum of values that are not negative: the largest of each of the last times.
type maxFilter struct {
	best [bbrExtraAckedRounds]int64 // of time t at t mod len
	time uint64
}

// update takes a value at a time, which never goes back, and returns the largest since win-1 before it; win is at most what best has room for.
func (m *maxFilter) update(value int64, time, win uint64) (largest int64) {
	n := uint64(len(m.best))
	for m.time != time {
		m.time++
		m.best[m.time%n] = 0
	}
	m.best[time%n] = max(m.best[time%n], value)
	for ago := range win {
		largest = max(largest, m.best[(time-ago)%n])
	}
	return largest
}
