package ddp

import (
	"errors"
	"testing"
)

func TestARegionIsTheSliceAndNoMore(t *testing.T) {
	// req 5041-8.3-5, 5042-2.2.2-2, 5042-7.3-1: what lies behind it in the same array was not handed in.
	r := newRig(t)
	array := make([]byte, 100)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(array[10:20]), Access: RemoteWrite | RemoteRead})
	for _, to := range []uint64{10, 89, 1<<64 - 10} {
		if p := r.place(taggedSeg(true, 0, reg.STag(), to, []byte{1})); p.Err == nil {
			t.Errorf("an octet at TO %d was placed", to)
		}
		if _, err := r.Resolve(reg.STag(), to, 1, RemoteRead); err == nil {
			t.Errorf("an octet at TO %d can be read", to)
		}
	}
	if !zero(array) {
		t.Error("memory outside of the slice was written")
	}
	if err := r.table.Rebind(reg, Bytes(array[10:20:20]), 5, RemoteWrite); err != nil {
		t.Fatal(err)
	}
	if p := r.place(taggedSeg(true, 0, reg.STag(), 4, []byte{1})); p.Err == nil {
		t.Error("placed in front of a slice bound to TO 5")
	}
}

func TestAccessRights(t *testing.T) {
	// req 5042-2.2.2-1, 5040-8.1.1-5: each right alone, granted and taken away.
	r := newRig(t)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: LocalWrite})
	for _, row := range []struct {
		name        string
		access      Access
		write, read bool
	}{
		{"local only", LocalWrite, false, false},
		{"nothing", 0, false, false},
		{"remote write", RemoteWrite, true, false},
		{"remote read", RemoteRead, false, true},
		{"both", RemoteWrite | RemoteRead, true, true},
		{"local only again", LocalWrite, false, false},
	} {
		if err := r.table.SetAccess(reg, row.access); err != nil {
			t.Fatal(err)
		}
		p := r.place(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
		_, err := r.Resolve(reg.STag(), 0, 1, RemoteRead)
		if (p.Err == nil) != row.write || (err == nil) != row.read {
			t.Errorf("%s: written %v, read %v", row.name, p.Err == nil, err == nil)
		}
	}
}

func TestScopeOfAnSTag(t *testing.T) {
	// req 5042-2.2.5-1, 5042-2.2.4-2: streams of one Protection Domain share what is not bound to one stream; a
	// stream in a domain of its own shares nothing.
	tab := NewTable(new(entropy))
	streams := map[string]*Stream{}
	for _, s := range []struct {
		name string
		id   StreamID
		pd   PD
	}{{"first", 1, 5}, {"second", 2, 5}, {"alone", 3, 6}} {
		streams[s.name] = NewStream(StreamConfig{ID: s.id, PD: s.pd, Table: tab, ULP: &recorder{need: RemoteWrite}, Queues: 1})
		streams[s.name].Attach(&lower{mulpdu: 1500})
	}
	for _, row := range []struct {
		name  string
		spec  Spec
		valid map[string]bool
	}{
		{"Protection Domain", Spec{PD: 5}, map[string]bool{"first": true, "second": true}},
		{"single stream", Spec{PD: 5, Scope: 2}, map[string]bool{"second": true}},
	} {
		row.spec.Mem, row.spec.Access = Bytes(make([]byte, 4)), RemoteWrite
		reg, err := tab.Register(row.spec)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range streams {
			var p Placed
			s.Place(taggedSeg(true, 0, reg.STag(), 0, []byte{1}), &p)
			if (p.Err == nil) != row.valid[name] {
				t.Errorf("scope %s, stream %s: %v", row.name, name, p.Err)
			}
		}
	}
}

func TestMissingBufferEndsTheStream(t *testing.T) {
	// req 5041-7.1-6, 5041-7.1-8: a fault of the system, told once, and the end of the stream: it cannot recur.
	r := newRig(t)
	for msn := range uint32(3) {
		r.arrive(untaggedSeg(true, 0, 1+msn, 0, []byte{1}))
	}
	r.ulp.want(t, "fatal 0x2/0x02")
	if !errors.Is(r.ulp.fault, &Error{Type: TypeUntagged, Code: CodeNoBuffer}) {
		t.Errorf("fault %v", r.ulp.fault)
	}
	if err := r.SendUntagged(0, [5]byte{}, nil, 1); err == nil {
		if err = r.SendUntagged(0, [5]byte{}, nil, 2); err == nil {
			t.Error("the stream goes on")
		}
	}
}
