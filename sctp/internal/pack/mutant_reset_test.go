package pack

import (
	"net/netip"
	"runtime"
	"testing"
	"weak"
)

// A batch that was written and reset keeps none of the user's memory alive.
func TestResetLetsGoOfUserMemory(t *testing.T) {
	b := NewBatch(4)
	user := make([]byte, 1000)
	held := weak.Make(&user[0])
	b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 1200)
	b.Bytes(user)
	b.End()
	runtime.GC()
	if held.Value() == nil {
		t.Fatal("the packet's memory is gone before Reset")
	}
	b.Reset()
	user = nil
	runtime.GC()
	if held.Value() != nil {
		t.Error("the user's memory is still referenced")
	}
	runtime.KeepAlive(b)
}
