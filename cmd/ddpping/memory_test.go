package main

import (
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// heapInUse is how many octets are in use.
func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has finalized
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// What a session makes a server allocate is what is counted for it before: queues and completions
// as well as pings.
func TestWhatASessionTakesIsWhatIsCounted(t *testing.T) {
	a, b := mempair.New(t, mem.Options{})
	dev, other := must.Get(rdma.NewDevice(a, nil))(t), must.Get(rdma.NewDevice(b, nil))(t)
	defer dev.Close()
	defer other.Close()
	const sessions = 4
	for _, size := range []int{0, 56, 1 << 10, 64 << 10, 5 << 20} {
		before, ends := heapInUse(), [sessions]*endpoint{}
		for i := range ends {
			ends[i] = must.Get(newEndpoint(dev, size, nil))(t)
		}
		took := (heapInUse() - before) / sessions
		for _, e := range ends {
			e.close()
		}
		check.That(t, took <= endpointMemory(size) && endpointMemory(size) <= 2*took+sessionMemory,
			"a session of %d octets takes %d of the heap, counted are %d", size, took, endpointMemory(size))
	}
}

// What the client writes while it is judged goes back as it was judged.
func TestWhatIsJudgedIsACopy(t *testing.T) {
	a, b := mempair.New(t, mem.Options{})
	dev, other := must.Get(rdma.NewDevice(a, nil))(t), must.Get(rdma.NewDevice(b, nil))(t)
	defer dev.Close()
	defer other.Close()
	e := must.Get(newEndpoint(dev, 56, nil))(t)
	defer e.close()
	fillData(e.writtenData(3), 3, nil)
	data := e.copyWritten(3)
	clear(e.writtenData(3)) // by the peer
	check.That(t, e.hasPingData(data, 3), "what the peer has written meanwhile is judged")
}
