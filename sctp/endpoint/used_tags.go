package endpoint

import (
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// maxUsedTags is how many tags are remembered. When there are more, the oldest is forgotten.
const maxUsedTags = 1 << 16

// usedTags remembers the tags of associations that have ended, for as long as a cookie can bring
// one about again. A second one with the same tags and TSNs would take old packets of the first for
// its own (section 5.3.1). When it has to forget tags early, it remembers when the latest of their
// cookies was made. No cookie that is as old counts any more. The zero value is empty.
type usedTags struct {
	expiryByTag     map[tagKey]rawio.Time
	oldestFirst     []usedTag  // as they came
	forgottenBefore rawio.Time // Cookies made before that do not count.
}

// usedTag is a tag, and when the latest cookie was made that names it.
type usedTag struct {
	tagKey
	cookieMadeAt rawio.Time
}

// add remembers a tag up to a time. The latest cookie that names it was made at a time.
func (s *usedTags) add(k tagKey, made, until rawio.Time) {
	if until == 0 {
		return // there was never a cookie with it
	}
	if s.expiryByTag == nil {
		s.expiryByTag = make(map[tagKey]rawio.Time)
	}
	if len(s.oldestFirst) == maxUsedTags {
		s.forgottenBefore = max(s.forgottenBefore, s.oldestFirst[0].cookieMadeAt+1)
		delete(s.expiryByTag, s.oldestFirst[0].tagKey)
		s.oldestFirst = s.oldestFirst[1:]
	}
	s.expiryByTag[k] = until
	s.oldestFirst = append(s.oldestFirst, usedTag{k, made})
}

// usedTagSize is the memory of a tag that is remembered, in octets. Map and list have spare space.
const usedTagSize = 64

// memorySize returns the octets of memory.
func (s *usedTags) memorySize() int {
	return len(s.expiryByTag)*usedTagSize + cap(s.oldestFirst)*int(unsafe.Sizeof(usedTag{}))
}

// has reports whether a tag is remembered, and forgets those whose time is over.
func (s *usedTags) has(now rawio.Time, k tagKey) bool {
	for _, old := range s.oldestFirst {
		if s.expiryByTag[old.tagKey] >= now {
			break
		}
		delete(s.expiryByTag, old.tagKey)
		s.oldestFirst = s.oldestFirst[1:]
	}
	_, ok := s.expiryByTag[k]
	return ok
}

// mayHaveForgotten reports whether a cookie may name a tag that was forgotten before its time.
func (s *usedTags) mayHaveForgotten(made rawio.Time) bool { return made < s.forgottenBefore }
