package cc

import (
	"testing"
	"time"
)

// The pace is a little above a window for each round trip, twice that in slow start.
func TestPacingRate(t *testing.T) {
	p := Paced(NewReno)(1000, false).(Pacer)
	if r := p.PacingRate(0); r != 0 {
		t.Errorf("%d before there is a round trip time, want no pacing", r)
	}
	w := int64(p.Window())
	if r := p.PacingRate(100 * time.Millisecond); r != 2*10*w {
		t.Errorf("%d octets a second in slow start with a window of %d and 100 ms", r, w)
	}
	p.OnLoss(0)
	if r, least := p.PacingRate(0), p.PacingRate(1); r != 0 || least <= 0 {
		t.Errorf("%d before there is a round trip time, %d with one of a nanosecond", r, least)
	}
	w = int64(p.Window())
	if r := p.PacingRate(100 * time.Millisecond); r != 10*w*5/4 {
		t.Errorf("%d octets a second after it with a window of %d and 100 ms", r, w)
	}
}
