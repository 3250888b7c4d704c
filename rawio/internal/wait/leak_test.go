package wait

import (
	"testing"

	"github.com/rddp-go/rddp/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
