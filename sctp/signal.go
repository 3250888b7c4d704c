package sctp

import "sync/atomic"

// signal is a token that makes a waiting goroutine look again. A goroutine that waits for it may
// read the link of its Transport meanwhile. Its methods may be called from several goroutines.
type signal struct {
	t           *Transport
	tokenCh     chan struct{}
	waitEndedAt atomicTime // when Wait returned last
}

// signalCounts is how often signals of a Transport were set, and what for.
type signalCounts struct {
	wakes    atomic.Uint64 // times that a signal was set
	requests atomic.Uint64 // things to answer, see signal.Brings
}

// newSignal returns a signal that is not set.
func (t *Transport) newSignal() *signal {
	s := new(signal)
	s.init(t)
	return s
}

func (s *signal) init(t *Transport) { s.t, s.tokenCh = t, make(chan struct{}, 1) }

// C has the token while the signal is set, for use in select.
func (s *signal) C() <-chan struct{} { return s.tokenCh }

// Set sets the signal, and wakes one goroutine that waits for it.
func (s *signal) Set() {
	if s.passOn() {
		s.t.signals.wakes.Add(1)
	}
}

// passOn is Set by a goroutine that was woken itself, for the next one. It says whether the signal
// was not set.
func (s *signal) passOn() bool {
	select {
	case s.tokenCh <- struct{}{}:
	default:
		return false // the goroutine that put the token there sees to the rest
	}
	if u := &s.t.readerRole; u.readerSignal.Load() == s {
		u.interrupter.Interrupt()
	}
	return true
}

// Brings counts one of the things that the signal is set for. It is for one goroutine that serves
// many associations. That goroutine is woken once, and as many answers are expected of it as things
// have come.
func (s *signal) Brings() { s.t.signals.requests.Add(1) }

// isSet says whether the signal is set. It may become set at once.
func (s *signal) isSet() bool { return len(s.tokenCh) > 0 }

// Wait blocks until the signal is set, which it reports and undoes, or a channel is closed. A nil
// channel never is. Code that closes one calls Layer.Rouse afterwards. No lock may be held: the
// calling goroutine may have to receive packets of any association meanwhile.
func (s *signal) Wait(a, b <-chan struct{}) (set bool) {
	u := &s.t.readerRole
	select {
	case <-s.tokenCh:
		return true // at once: this says nothing of how quick the caller is
	default:
	}
	soon := u.rx.policy.LendLimit()
	if u.takeRole(soon > 0, soon > 0 && s.t.now().Sub(s.waitEndedAt.Load()) < soon) {
		set, err := s.waitReading(a, b)
		now := s.t.now()
		s.waitEndedAt.Store(now)
		u.leaveRole(now)
		if err == nil {
			return set
		}
	} // else another goroutine reads, or none can any more and the wait will end
	if a == nil && b == nil {
		<-s.tokenCh // as nearly always: a select of several channels takes far longer
		set = true
	} else {
		select {
		case <-s.tokenCh:
			set = true
		case <-a:
		case <-b:
		}
	}
	if soon > 0 {
		s.waitEndedAt.Store(s.t.now())
	}
	return set
}

// waitReading is Wait with the reader role.
func (s *signal) waitReading(a, b <-chan struct{}) (set bool, err error) {
	u := &s.t.readerRole
	u.readMu.Lock()
	defer u.readMu.Unlock()
	for err == nil {
		u.readerSignal.Store(s) // from here on Set and rouse interrupt
		select {
		case <-s.tokenCh:
			set = true
		default:
		}
		if set || isClosed(a) || isClosed(b) {
			u.readerSignal.Store(nil)
			return set, nil
		}
		err = u.readBatch()
	}
	return set, err
}

// wakeLinkReader makes a goroutine in signal.Wait look at its channels.
func (t *Transport) wakeLinkReader() {
	if t.readerRole.readerSignal.Load() != nil {
		t.readerRole.interrupter.Interrupt()
	}
}
