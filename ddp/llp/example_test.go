package llp_test

import (
	"fmt"

	"github.com/rddp-go/rddp/ddp/llp"
)

// An initiator asks for 8 Reads at the peer and serves 2. The responder serves 4 and wants 16.
func Example() {
	asked := llp.Setup{IRD: 2, ORD: 8}
	reply := llp.Setup{IRD: 4, ORD: 16}.Answer(asked)
	ord, _, err := asked.Conclude(reply)
	fmt.Println("initiator:", ord, "responder:", reply.ORD, err)
	// Output: initiator: 4 responder: 2 <nil>
}
