package compat

import (
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// PPIDs is the byte order in which a program has the payload protocol identifiers of its messages,
// where the package that it was written for has changed it. github.com/ishidawataru/sctp has sent
// them as they lie in memory up to its versions of May 2025, so that programs shift them (46 <<
// 24), and converts them since August 2025.
//
// Which of the two a program was written for is told by the version that its go.mod requires, which
// the linker writes into it. A test binary has none, and neither has a program built in a workspace
// that uses the module: then the first PPID that the program sends tells, as no assigned one has 0
// in its lower 24 bits. The environment variable RDDP_PPID, host or memory, goes before both.
type PPIDs struct{ order atomic.Int32 }

const (
	orderUnknown = iota
	orderHost
	orderMemory
)

// PPIDsOf returns the order of the program that runs: since is the date of the first version of the
// module that converts PPIDs.
func PPIDsOf(module, since string) *PPIDs {
	p := new(PPIDs)
	info, _ := debug.ReadBuildInfo()
	p.order.Store(orderOf(os.Getenv("RDDP_PPID"), info, module, since))
	return p
}

func orderOf(env string, info *debug.BuildInfo, module, since string) int32 {
	switch {
	case env == "host":
		return orderHost
	case env == "memory":
		return orderMemory
	case info == nil:
		return orderUnknown
	}
	for _, d := range info.Deps {
		if d.Path != module {
			continue
		}
		switch parts := strings.Split(d.Version, "-"); {
		case len(parts) != 3: // v0.0.0-20190922091402-408ec287e38c has a date
		case parts[1] < since:
			return orderMemory
		default:
			return orderHost
		}
	}
	return orderUnknown
}

// Out returns the PPID of a message to send as it lies in memory.
func (p *PPIDs) Out(v uint32) uint32 {
	if p.order.Load() == orderUnknown && v != 0 {
		order := int32(orderHost)
		if Swap(v)>>8 == 0 {
			order = orderMemory
		}
		p.order.CompareAndSwap(orderUnknown, order)
	}
	if p.order.Load() == orderMemory {
		return v
	}
	return Swap(v)
}

// In is the reverse of Out.
func (p *PPIDs) In(v uint32) uint32 {
	if p.order.Load() == orderMemory {
		return v
	}
	return Swap(v)
}
