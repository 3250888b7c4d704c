//go:build !linux

package sctp

import (
	"slices"
	"sync"
)

// announced are the listeners of this process.
var announced struct {
	sync.Mutex
	list []neighbour
}

func (n *neighbour) announce() (withdraw func(), err error) {
	announced.Lock()
	defer announced.Unlock()
	one := *n
	announced.list = append(announced.list, one)
	return func() {
		announced.Lock()
		defer announced.Unlock()
		if i := slices.Index(announced.list, one); i >= 0 {
			announced.list = slices.Delete(announced.list, i, i+1)
		}
	}, nil
}

func neighbours() []neighbour {
	announced.Lock()
	defer announced.Unlock()
	return slices.Clone(announced.list)
}
