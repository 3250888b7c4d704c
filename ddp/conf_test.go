package ddp

import (
	"errors"
	"fmt"
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

// vast is a device of any size that keeps count, and not what is written.
type vast struct {
	octets, end uint64
}

func (v *vast) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func (v *vast) WriteAt(p []byte, off int64) (int, error) {
	v.octets += uint64(len(p))
	v.end = max(v.end, uint64(off)+uint64(len(p)))
	return len(p), nil
}

// Messages of 2^32-1 octets are cut, placed at the right offsets and delivered, one octet more is refused, also where the
// peer's last segment would go beyond what the 32 bits of a message offset can tell.
func TestTheLongestMessages(t *testing.T) {
	// req 5041-5.2-2
	const most = 1<<32 - 1
	mib := make([]byte, 1<<20)
	var from Gather // the same octets over and over
	for left := uint64(most); left > 0; {
		n := min(left, uint64(len(mib)))
		from = append(from, Piece{Mem: Bytes(mib), Len: n})
		left -= n
	}
	for _, tagged := range []bool{true, false} {
		r := newRig(t)
		dev := new(vast)
		var want string
		if tagged {
			reg := r.register(t, Spec{PD: testPD, Mem: Device(dev, most), Base: 1<<63 + 5, Access: RemoteWrite})
			if err := r.SendTagged(reg.STag(), reg.Base(), 0, from, 7); err != nil {
				t.Fatal(err)
			}
			want = fmt.Sprintf("tagged rsvd=0x0 stag=%#x to=%d len=%d", uint32(reg.STag()), reg.Base(), uint64(most))
		} else {
			b, err := MakeRecvBuffer(Gather{{Mem: Device(dev, most), Len: most}}, 3)
			if err != nil || r.ulp.queues[0].Post(b) != nil {
				t.Fatal(err)
			}
			if err := r.SendUntagged(0, [5]byte{}, from, 7); err != nil {
				t.Fatal(err)
			}
			want = fmt.Sprintf("untagged qn=0 msn=1 rsvd=0000000000 len=%d token=3", uint64(most))
		}
		var seg Segment
		wire := make([]byte, 1<<16) // the payload is of no interest
		for r.NextSegment(len(wire), &seg) {
			copy(wire, seg.Header[:seg.HeaderLen])
			r.arrive(wire[:seg.Len()])
		}
		r.ulp.want(t, want)
		if dev.octets != most || dev.end != most {
			t.Errorf("tagged %v: %d octets placed, the last before %d", tagged, dev.octets, dev.end)
		}
	}
	r := newRig(t)
	b, err := MakeRecvBuffer(Gather{{Mem: Device(new(vast), most), Len: most}}, 3)
	if err != nil || r.ulp.queues[0].Post(b) != nil {
		t.Fatal(err)
	}
	r.arrive(untaggedSeg(true, 0, 1, most, []byte{1}))
	r.ulp.want(t, "fatal 0x2/0x04") // the offset is no octet of the buffer
}
