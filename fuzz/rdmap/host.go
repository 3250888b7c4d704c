package rdmap

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// host is lower layer, owner and CQ of the QP under test.
type host struct {
	t              *testing.T
	failed         int
	posted, pushed int
	flush          bool
}

func (h *host) MULPDU() int { return 128 }

func (h *host) Ready() {}

func (h *host) Finish() {}

func (h *host) Abort() {}

func (h *host) SharedRegion(*ddp.Region) bool { return false }

func (h *host) FlushLater() { h.flush = true }

func (h *host) HighWater() {}

func (h *host) Broken(err *rdmap.InternalError) { panic(err) }

func (h *host) Detach() bool { return false }

func (h *host) PeerClosed() {}

func (h *host) Push(rdmap.WC) { h.pushed++ }

func (h *host) Failed(*rdmap.StreamError) {
	if h.failed++; h.failed > 1 {
		h.t.Fatal("failed twice")
	}
}
