package seal

import (
	"bytes"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// sealMany returns n records, each with its number as content.
func sealMany(t testing.TB, s *Sealer, n int) [][]byte {
	t.Helper()
	list := make([][]byte, n)
	for i := range list {
		v := s.Sealed()
		list[i] = mustSeal(t, s, []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}).Record()
	}
	return list
}

func openClone(o *Opener, at rawio.Time, record []byte) ([]byte, error) {
	return o.Open(at, bytes.Clone(record), make([]byte, 32))
}

// useSecondTries leaves no second attempts.
func useSecondTries(o *Opener) {
	for o.second.Allow(now, secondTries) {
	}
}

func TestARecordIsOpenedOnce(t *testing.T) {
	// req dtlschunk-10-1
	s, o := newPair(t, AES128GCM, 3)
	useSecondTries(o)
	list := sealMany(t, s, MaxReplayWindow+5000)
	for i, r := range list {
		must.Do(openClone(o, now, r))(t)
		for _, behind := range []int{0, 1, 63, 64, 1000, MaxReplayWindow - 1} {
			if behind <= i {
				_, err := openClone(o, now, list[i-behind])
				must.Error(t, "again", err, ErrReplayed)
			}
		}
	}
	check.Equal(t, "failed attempts", o.Failed(), 0)
	check.Equal(t, "octets of the window", len(o.window.ring)*8, minReplayWindow/8)
}

// Two paths whose packets take turns, one of them 100 ms slower, at a rate of 150,000 records a
// second: 15,000 records of the one come before one of the other.
func TestTwoPathsWithDifferentLatency(t *testing.T) {
	// req dtlschunk-3.1-10
	const spread = 15000
	s, o := newPair(t, AES128GCM, 3)
	list := sealMany(t, s, 3*spread)
	var slow int
	for i, r := range list {
		if i%2 == 0 {
			must.Do(openClone(o, now, r))(t)
		}
		for ; slow+spread < i; slow++ {
			if slow%2 == 1 {
				must.Do(openClone(o, now, list[slow]))(t)
			}
		}
	}
	check.Equal(t, "failed attempts", o.Failed(), 0)
}

// When so many records are lost in a row that their last 16 bits say no more which are meant, the
// next one costs a second attempt.
func TestManyRecordsAreLostAtOnce(t *testing.T) {
	for _, c := range []struct {
		name            string
		before, lost    int
		failed          uint64
		lastOneWasEarly bool
	}{
		{"as many as 16 bits tell", 1000, 32767, 0, false},
		{"one more, of numbers received", 40000, 32768, 0, false},
		{"one more, before the first", 1000, 32768, 0, false},
		{"40,000, of numbers received", 40000, 40000, 0, false},
		{"40,000, before the first", 1000, 40000, 0, false},
		{"40,000, where one is missing", 40000, 40000, 1, true},
		{"65,535, nearly all", 40000, 65535, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o := newPair(t, AES128GCM, 3)
			for i, r := range sealMany(t, s, c.before) {
				if c.lastOneWasEarly && i == c.before+c.lost-1<<16 {
					continue // the number that the late one will be taken for
				}
				must.Do(openClone(o, now, r))(t)
			}
			s.next += uint64(c.lost)
			for _, r := range sealMany(t, s, 100) {
				must.Do(openClone(o, now, r))(t)
			}
			check.Equal(t, "failed attempts", o.Failed(), c.failed)
			check.Equal(t, "next number", o.window.next, s.Sealed())
		})
	}
}

// Records that come again, and forged ones that look old, get a bounded number of second attempts.
// Each other packet costs one at most.
func TestSecondAttemptsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name      string
		forged    bool
		firstTrys uint64 // of each packet
	}{{"sent again", false, 0}, {"forged", true, 1}} {
		t.Run(c.name, func(t *testing.T) {
			s, o := newPair(t, AES128GCM, 3)
			list := sealMany(t, s, 1000)
			for i, r := range list {
				if !c.forged || i != 500 {
					must.Do(openClone(o, now, r))(t)
				}
			}
			packet := list[500]
			if c.forged {
				packet[len(packet)-1] ^= 1
			}
			const packets, seconds = 20000, 2
			for i := range packets {
				at := now.Add(seconds * time.Second * time.Duration(i) / packets)
				_, err := openClone(o, at, packet)
				must.That(t, err == ErrReplayed || c.forged && err == ErrNotAuthentic, "%v", err)
			}
			second := o.Failed() - c.firstTrys*packets
			check.That(t, second > 100*seconds && second <= uint64(secondTries.Burst)+100*seconds, "%d second attempts", second)
		})
	}
}

// Without room for a copy there is no second attempt, and nothing is written where there is none.
func TestSecondAttemptNeedsRoom(t *testing.T) {
	s, o := newPair(t, AES128GCM, 3)
	for i, r := range sealMany(t, s, 40000) {
		if i != 40000+40000-1<<16 {
			must.Do(openClone(o, now, r))(t)
		}
	}
	s.next += 40000
	late := sealMany(t, s, 1)[0]
	_, err := o.Open(now, bytes.Clone(late), make([]byte, len(late)-recordHeaderLen-1))
	check.Error(t, "one octet too few", err, ErrNotAuthentic)
	check.Equal(t, "failed attempts", o.Failed(), 1)
	check.Do(o.Open(now, bytes.Clone(late), make([]byte, len(late)-recordHeaderLen)))(t)
}

// A record number above the highest is never tried, and none is below 0.
func TestNumbersHaveAnEnd(t *testing.T) {
	s, o := newPair(t, ChaCha20Poly1305, 3)
	s.next = maxNumber
	o.window.next, o.window.floor = maxNumber-5, maxNumber-5
	last := mustSeal(t, s, testContent(4)).Record()
	check.Do(openClone(o, now, last))(t)
	_, err := s.Append(nil, testContent(4))
	check.Error(t, "a record more", err, ErrKeyExhausted)
	s.next = 5 // as if it were maxNumber + 6, by its 16 bits
	_, err = openClone(o, now, mustSeal(t, s, testContent(4)).Record())
	check.Error(t, "past the end", err, ErrReplayed)
	check.Equal(t, "failed attempts", o.Failed(), 0)
}

// A key that forgers have tried so often is given up, authentic records or not.
func TestKeyIsGivenUpAfterItsFailures(t *testing.T) {
	// req dtlschunk-10.2-1: failed attempts
	for _, suite := range Suites() {
		s, o := newPair(t, suite, 3)
		list := sealMany(t, s, 2)
		o.failed = 1<<36 - 1
		must.Do(openClone(o, now, list[0]))(t)
		list[1][10] ^= 1
		_, err := openClone(o, now, list[1])
		check.Error(t, "the last failure", err, ErrNotAuthentic)
		list[1][10] ^= 1
		_, err = openClone(o, now, list[1])
		check.Error(t, "after it", err, ErrKeyExhausted)
	}
}

// While nothing arrives a key may forget what is missing.
func TestCompactGivesMemoryBack(t *testing.T) {
	s, o := newPair(t, AES128GCM, 3)
	useSecondTries(o)
	list := sealMany(t, s, 5000)
	for i, r := range list {
		if i != 70 && i != 4999 {
			must.Do(openClone(o, now, r))(t)
		}
	}
	check.Equal(t, "words", len(o.window.ring), 8192/64)
	o.Compact()
	check.Equal(t, "words", len(o.window.ring), minReplayWindow/64)
	_, err := openClone(o, now, list[70])
	check.Error(t, "the one that was missing", err, ErrReplayed)
	check.Do(openClone(o, now, list[4999]))(t)
	_, err = openClone(o, now, list[4999])
	check.Error(t, "the next, again", err, ErrReplayed)
}
