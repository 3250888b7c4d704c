package endpoint

import (
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// maxSpent is how many tags are remembered. When there are more, the oldest is forgotten.
const maxSpent = 1 << 16

// spent remembers the tags of associations that have ended, for as long as a cookie can bring one about again:
// a second association with the tags and TSNs of the first would take old packets of that for its own
// (section 5.3.1). Of tags that it had to forget before, it remembers when the latest of their cookies was made: no
// cookie that is as old counts any more. Its zero value is empty.
type spent struct {
	until  map[tagKey]rawio.Time
	order  []spentTag // as they came
	oldest rawio.Time // Cookies made before that do not count.
}

// spentTag is a tag, and when the latest cookie was made that names it.
type spentTag struct {
	tagKey
	made rawio.Time
}

// add remembers a tag up to a time. The latest cookie that names it was made at a time.
func (s *spent) add(k tagKey, made, until rawio.Time) {
	if until == 0 {
		return // there was never a cookie with it
	}
	if s.until == nil {
		s.until = make(map[tagKey]rawio.Time)
	}
	if len(s.order) == maxSpent {
		s.oldest = max(s.oldest, s.order[0].made+1)
		delete(s.until, s.order[0].tagKey)
		s.order = s.order[1:]
	}
	s.until[k] = until
	s.order = append(s.order, spentTag{k, made})
}

// spentHeld is the memory of a tag that is remembered, in octets: map and list have room to spare.
const spentHeld = 64

// held returns the octets of memory.
func (s *spent) held() int {
	return len(s.until)*spentHeld + cap(s.order)*int(unsafe.Sizeof(spentTag{}))
}

// has reports whether a tag is remembered, and forgets those whose time is over.
func (s *spent) has(now rawio.Time, k tagKey) bool {
	for _, old := range s.order {
		if s.until[old.tagKey] >= now {
			break
		}
		delete(s.until, old.tagKey)
		s.order = s.order[1:]
	}
	_, ok := s.until[k]
	return ok
}

// forgot reports whether a cookie may name a tag that was forgotten before its time.
func (s *spent) forgot(made rawio.Time) bool { return made < s.oldest }
