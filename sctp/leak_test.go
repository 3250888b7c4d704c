package sctp

import (
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/test/leaktest"
)

// TestMain runs the tests with the simple read policy if it is told to (make simple).
func TestMain(m *testing.M) {
	forceSimple = os.Getenv("RDDP_READ_POLICY") == "simple"
	leaktest.Main(m)
}
