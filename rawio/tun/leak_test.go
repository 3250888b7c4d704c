package tun_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Goroutines(m) }
