package endpoint

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// maxRemains is how many associations that have ended can still answer. When there are more, the
// oldest cannot.
const maxRemains = 4096

// remainsTable holds what is left of associations that sealed their packets, for as long as their
// peers may go on sending. The zero value is empty.
type remainsTable struct {
	byTag       map[tagKey]*ended
	oldestFirst []*ended
}

// ended is an association that has ended.
type ended struct {
	tagKey
	*assoc.Remains
	until rawio.Time
}

// add keeps what is left of an association until then.
func (t *remainsTable) add(k tagKey, r *assoc.Remains, until rawio.Time) {
	if t.byTag == nil {
		t.byTag = make(map[tagKey]*ended)
	}
	if len(t.oldestFirst) == maxRemains {
		t.dropOldest()
	}
	x := &ended{k, r, until}
	t.byTag[k] = x
	t.oldestFirst = append(t.oldestFirst, x)
}

// expire drops those whose time is over. One may wait for an older one that lasts longer.
func (t *remainsTable) expire(now rawio.Time) {
	for len(t.oldestFirst) > 0 && now >= t.oldestFirst[0].until {
		t.dropOldest()
	}
}

func (t *remainsTable) dropOldest() {
	x := t.oldestFirst[0]
	t.oldestFirst[0] = nil
	t.oldestFirst = t.oldestFirst[1:]
	if t.byTag[x.tagKey] == x {
		delete(t.byTag, x.tagKey)
	}
	if len(t.oldestFirst) == 0 {
		*t = remainsTable{}
	}
}

// memorySize returns the octets of memory.
func (t *remainsTable) memorySize() int { return len(t.oldestFirst) * assoc.RemainsOctets }

// answerForEnded answers a sealed packet for an association that has ended.
func (e *Endpoint) answerForEnded(now rawio.Time, x *ended, p *rawio.Packet) {
	e.stats.OutOfBlue++
	if now < x.until && x.Answer(now, &e.answers, p) {
		e.stats.Reflected++
	}
}
