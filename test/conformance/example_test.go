package conformance_test

import (
	"fmt"

	"github.com/rddp-go/rddp/test/conformance"
)

func ExampleCited() {
	fmt.Println(conformance.Cited("req 9260-5.2.4-3, 9260-5.2.4-4: the tags decide"))
	// Output: [9260-5.2.4-3 9260-5.2.4-4]
}
