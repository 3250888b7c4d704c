package pump_test

import (
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/pump"
	"github.com/rddp-go/rddp/rawio/mem"
)

func ExampleRun() {
	a, b, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()
	_, received, err := pump.Run(a, b, b.LocalAddrs()[0], pump.Config{Packet: 1480, Duration: time.Millisecond, Work: true})
	fmt.Println(received.GBps() > 0, received.Bad, err)
	// Output: true 0 <nil>
}
