package netconn

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
