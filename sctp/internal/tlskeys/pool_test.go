package tlskeys

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Public-key work leaves a processor to data, where there are two.
func TestPoolLeavesAProcessorToData(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors, workers := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7} {
		runtime.GOMAXPROCS(processors)
		check.Equal(t, fmt.Sprintf("workers of %d processors", processors), cap(NewPool(1).workers), workers)
	}
}

// A Pool has a place for each of its sessions, and none for one more until one of them is over.
func TestPoolIsBounded(t *testing.T) {
	p := NewPool(2)
	for _, want := range []bool{true, true, false, false} {
		check.Equal(t, "a place", p.open(), want)
	}
	p.close()
	check.That(t, p.open() && !p.open(), "one place is free again, and not two")
}
