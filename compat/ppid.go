package compat

import (
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// PPIDs is the byte order of a program's payload protocol identifiers, where the original package
// has changed it. Up to its versions of May 2025, github.com/ishidawataru/sctp sent them as they
// lie in memory. Programs for these shift them (46 << 24). Since August 2025 it converts them.
//
// The library reads the required version of the module from the binary, where the linker puts it. A
// test binary has none, and neither has a program built in a workspace that uses the module. Then
// the first PPID that the program sends decides, as no assigned one has 0 in its lower 24 bits. The
// environment variable RDDP_PPID, host or memory, overrides both.
type PPIDs struct{ order atomic.Int32 }

const (
	orderUnknown = iota
	orderHost
	orderMemory
)

// readBuildInfo is replaced by tests, whose binaries name no modules.
var readBuildInfo = debug.ReadBuildInfo

// PPIDsOf returns the order of the running program. since is the date of the first version of the
// module that converts PPIDs.
func PPIDsOf(module, since string) *PPIDs {
	p := new(PPIDs)
	info, _ := readBuildInfo()
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

// Out returns the PPID of an outgoing message as it lies in memory.
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
