package pollpolicy

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

var errTired = errors.New("it waits no more")

// waiter is a link that writes down what its reader does: a look is poll, a wait its Pause.
type waiter struct {
	r     *reader
	did   []rawio.Pause
	comes int // a packet is found at this look; 0: none ever
	waits int // before it fails
}

const poll rawio.Pause = 99

func (w *waiter) Polling() time.Duration { return w.r.pollTime }

func (w *waiter) PollBatch([]rawio.Packet) int {
	w.did = append(w.did, poll)
	if w.comes--; w.comes == 0 {
		return 1
	}
	return 0
}

func (w *waiter) Wait(p rawio.Pause) error {
	w.did = append(w.did, p)
	w.r.now = w.r.now.Add(time.Microsecond)
	if w.waits--; w.waits == 0 {
		return errTired
	}
	return nil
}

// waitForPacket is what the reader does until a packet is found at the n-th look, or it has waited
// so often.
func (r *reader) waitForPacket(n, waits int) ([]rawio.Pause, error) {
	w := &waiter{r: r, comes: n, waits: waits}
	r.clock = func() rawio.Time { return r.now }
	_, err := r.NextBatch(w, make([]rawio.Packet, 8))
	return w.did, err
}

// pollsBeforeSleep says whether it has looked, and did before it slept.
func pollsBeforeSleep(did []rawio.Pause) bool {
	i := slices.Index(did, poll)
	return i >= 0 && !slices.Contains(did[:i], rawio.Park) && !slices.Contains(did[:i], rawio.Block) &&
		!slices.Contains(did[:i], rawio.Sleep)
}

// Those that packets have woken go on before the reader looks again, where what comes next may be
// the answer to theirs. Elsewhere it looks at once, and in each wait before it sleeps.
func TestReaderLooksWhenThoseItHasWokenHaveGoneOn(t *testing.T) {
	for _, told := range []time.Duration{0, time.Second, -1} {
		for _, l := range loads {
			r := newReader(told)
			for range 1001 {
				r.runBatch(l)
			}
			lets := told == 0 && l.every == 1 && (l.state == PingPong || l.state == Concurrent)
			r.lookPredictor = predictor{}
			did, err := r.waitForPacket(1, 0)
			last := len(did) - 1
			check.That(t, err == nil && did[last] == poll &&
				(len(did) == 2 && (did[0] == rawio.Yield || did[0] == rawio.Cede)) == lets && (last == 0) == !lets,
				"%s, told to poll for %v: %v, %v", l.name, told, did, err)

			r.runBatch(l)
			did, err = r.waitForPacket(0, 3)
			check.That(t, err == errTired && pollsBeforeSleep(did),
				"%s, told to poll for %v: sleeps before it has looked: %v",
				l.name, told, did)
			did, _ = r.waitForPacket(1, 0) // it was interrupted
			check.That(t, len(did) == 1, "%s, told to poll for %v: during a wait: %v", l.name, told, did)
		}
	}
}

// Where packets that come alone are mostly followed by another at once the reader looks before it
// gives way, and elsewhere now and then, to see whether they are by now: one look that finds a
// packet pays for some that do not.
func TestReaderLooksFirstWhereAnotherFollows(t *testing.T) {
	r := newReader(0)
	looks := func(found func(i int) bool) (n int) {
		for i := range 10 * retryEvery {
			r.runBatch(loads[0])
			at := 0
			if found(i) {
				at = 1
			}
			did, _ := r.waitForPacket(at, 2)
			if did[0] == poll {
				n++
			}
		}
		return n
	}
	never, always := func(int) bool { return false }, func(int) bool { return true }
	third := func(i int) bool { return i%3 == 0 }
	for range 2 {
		looks(never)
		check.Equal(t, "looks first where none follows", looks(never), 10)
		looks(always)
		check.Equal(t, "where one always does", looks(always), 10*retryEvery)
		check.Equal(t, "where every third does", looks(third), 10*retryEvery)
	}
	looks(never)
	looks(third)
	looks(third)
	check.Equal(t, "where every third does, and none did", looks(third), 10*retryEvery)
}

// Where the processor time runs out, those that a packet has woken go on first all the same, and
// then it is looked whether there is anything.
func TestReaderWithAQuotaLooksBeforeItSleeps(t *testing.T) {
	for _, l := range loads {
		r := newReader(0)
		for range 1001 {
			r.runBatch(l)
		}
		r.quotaGuard.checkedAt, r.quotaGuard.endsAt = r.now, r.now.Add(quotaGuardTime)
		did, _ := r.waitForPacket(0, 3)
		check.That(t, pollsBeforeSleep(did), "%s: sleeps before it has looked: %v", l.name, did)
	}
}
