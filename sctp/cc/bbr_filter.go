package cc

// maxFilter is a windowed maximum (Kathleen Nichols' algorithm): the largest value of the last times, from the three best that may still come to be it.
type maxFilter [3]struct {
	value int64
	time  uint64
}

// update takes a value at a time, which never goes back, and returns the largest since win-1 before it.
func (m *maxFilter) update(value int64, time, win uint64) int64 {
	v := struct {
		value int64
		time  uint64
	}{value, time}
	if value >= m[0].value || time-m[2].time >= win {
		m[0], m[1], m[2] = v, v, v
		return value
	}
	if value >= m[1].value {
		m[1], m[2] = v, v
	} else if value >= m[2].value {
		m[2] = v
	}
	for range 2 {
		if time-m[0].time >= win {
			m[0], m[1], m[2] = m[1], m[2], v
		}
	}
	// A best value that is a good part of the window older than the next best would leave a worse one behind than there was.
	switch age := time - m[0].time; {
	case m[1].time == m[0].time && age > win/4:
		m[1], m[2] = v, v
	case m[2].time == m[1].time && age > win/2:
		m[2] = v
	}
	return m[0].value
}
