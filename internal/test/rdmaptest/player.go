package rdmaptest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Player plays what happens to a QP and tells what is seen of it.
type Player struct {
	*Setup
	names      map[ddp.STag]string
	before     [][]byte
	told       []string
	id         uint64
	msn        [4]uint32 // of the peer's messages
	seen, lost int       // of the log, of Host.Detach
}

// NewPlayer has what the steps name.
func NewPlayer(t *testing.T) *Player {
	p := &Player{Setup: NewSetup(t), id: 10}
	p.names = map[ddp.STag]string{p.Both.STag(): "both", p.Read.STag(): "read", p.Write.STag(): "write",
		p.Sink.STag(): "sink", p.Recv.STag(): "recv"}
	p.Look()
	return p
}

func (p *Player) noteText(format string, args ...any) {
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

// regionNamed is the one with a name.
func (p *Player) regionNamed(name string) *ddp.Region {
	return map[string]*ddp.Region{"both": p.Both, "read": p.Read, "write": p.Write, "sink": p.Sink,
		"recv": p.Recv}[name]
}

// peerSegment is a segment of the peer's.
func (p *Player) peerSegment(what string) {
	verb, rest, _ := strings.Cut(what, " ")
	number := func(q int) uint32 { p.msn[q]++; return p.msn[q] }
	send := func(op rdmap.Opcode, inv ddp.STag, b string) {
		p.E.Inject(Untagged(rdmap.QueueSend, number(rdmap.QueueSend), Rsvd(op, inv), 0, true, []byte(b)))
	}
	switch verb {
	case "send":
		send(rdmap.OpSend, 0, rest)
	case "sendse":
		send(rdmap.OpSendSE, 0, rest)
	case "sendinv":
		send(rdmap.OpSendInv, p.regionNamed(rest).STag(), "inv")
	case "begin": // of a Send, the end of which never comes
		p.E.Inject(Untagged(rdmap.QueueSend, p.msn[rdmap.QueueSend]+1, Rsvd(rdmap.OpSend, 0), 0, false, []byte(rest)))
	case "imm":
		send(rdmap.OpImmediate, 0, rest)
	case "write":
		p.E.Inject(Tagged(rdmap.Control(rdmap.OpWrite), p.regionNamed(rest).STag(), p.Both.Base()+3, true, []byte("W")))
	case "read":
		p.E.Inject(ReadSegment(number(rdmap.QueueReadRequest), p.regionNamed(rest).STag(), p.Both.Base(), 10))
	case "add":
		var b [rdmap.AtomicRequestLen]byte
		(&rdmap.AtomicRequest{ID: 77, STag: p.regionNamed(rest).STag(), TO: p.Both.Base() + 8,
			Op: rdmap.FetchAdd(1)}).Put(
			&b)
		p.E.Inject(Untagged(rdmap.QueueReadRequest, number(rdmap.QueueReadRequest), Rsvd(rdmap.OpAtomicRequest, 0), 0,
			true, b[:]))
	case "response": // to the Read of 50 octets, or so many of them
		n := 50
		fmt.Sscan(rest, &n)
		p.E.Inject(Tagged(rdmap.Control(rdmap.OpReadResponse), p.Sink.STag(), p.Sink.Base()+10, true, make([]byte, n)))
	case "answer": // to the atomic in a place
		var b [rdmap.AtomicResponseLen]byte
		r := rdmap.AtomicResponse{Original: 5}
		fmt.Sscan(rest, &r.ID)
		r.Put(&b)
		p.E.Inject(Untagged(rdmap.QueueAtomicResponse, number(rdmap.QueueAtomicResponse),
			Rsvd(rdmap.OpAtomicResponse, 0), 0, true, b[:]))
	case "terminate": // quoting what this side has sent in a place of its log, if it has
		tm, at := rdmap.Terminate{Layer: rdmap.LayerDDP, EType: rdmap.EType(ddp.TypeUntagged),
			Code: ddp.CodeNoBuffer}, -1
		if fmt.Sscan(rest, &at); at >= 0 && at < len(p.E.Log) {
			tm.HasDDP, tm.SegLength = true, 18
			copy(tm.DDP[:], p.E.Log[at])
		}
		p.E.Inject(Untagged(rdmap.QueueTerminate, number(rdmap.QueueTerminate), Rsvd(rdmap.OpTerminate, 0), 0, true,
			tm.Append(nil)))
	}
}

// Step is a call, or a segment of the peer's behind "<".
func (p *Player) Step(what string) {
	var err error
	verb, rest, _ := strings.Cut(what, " ")
	post := func(wr rdmap.SendWR) {
		p.id++
		wr.ID = p.id
		if strings.Contains(rest, "quiet") {
			wr.Flags |= rdmap.Unsignaled
		}
		if strings.Contains(rest, "fence") {
			wr.Flags |= rdmap.Fence
		}
		err = p.E.QP.PostSend(&wr)
	}
	all := []rdmap.SGE{SGE(p.Both, 0, 100)}
	if r := p.regionNamed(rest); r != nil {
		all[0] = SGE(r, 0, 100)
	}
	switch verb {
	case "<":
		p.peerSegment(rest)
	case "send":
		post(rdmap.SendWR{Op: rdmap.WRSend, SGL: all})
	case "write":
		post(rdmap.SendWR{Op: rdmap.WRWrite, SGL: all, RemoteSTag: 5, RemoteTO: 100})
	case "writeimm":
		post(rdmap.SendWR{Op: rdmap.WRWriteImm, SGL: all[:1:1], RemoteSTag: 5, RemoteTO: 100, Immediate: 9})
	case "imm":
		post(rdmap.SendWR{Op: rdmap.WRImm, Immediate: 9})
	case "read":
		if rest != "nowhere" {
			all = []rdmap.SGE{SGE(p.Sink, 10, 50)}
		}
		post(rdmap.SendWR{Op: rdmap.WRRead, SGL: all, RemoteSTag: 5, RemoteTO: 100})
	case "add":
		post(rdmap.SendWR{Op: rdmap.WRAtomic, RemoteSTag: 5, RemoteTO: 8, Atomic: rdmap.FetchAdd(1)})
	case "recv":
		p.id++
		err = p.E.QP.PostRecv(&rdmap.RecvWR{ID: p.id, SGL: []rdmap.SGE{SGE(p.Recv, 40, 20)}})
	case "cut":
		p.E.CutOne()
	case "all":
		p.E.CutAll()
	case "ack":
		for p.lost < len(p.E.Log) {
			p.lost++
			p.E.QP.Stream().Acked()
		}
	case "close":
		p.E.QP.Close()
	case "abort":
		p.E.QP.Abort(errors.New("aborted"))
	case "refuse":
		p.E.QP.Refuse(rdmap.CodeNoRTR, errors.New("refused"))
	case "halfclosed":
		p.E.QP.Stream().HalfClosed()
	case "closed":
		p.E.QP.Stream().Closed(errors.New("lost"))
	case "ended":
		p.E.QP.Ended()
	case "high":
		p.E.QP.SetHighWater(0)
	case "invalidate":
		p.regionNamed(rest).Invalidate()
	}
	if err != nil {
		p.noteText("%v", err)
	}
}

// describeSegment says what a segment is.
func describeSegment(b []byte) string {
	c := ddp.Control(b[0])
	_, op := rdmap.SplitControl(b[1])
	if c.Tagged() {
		v := ddp.TaggedView(b)
		return fmt.Sprintf("{%v %d:%d+%d}", op, v.STag(), v.TO(), len(v.Payload()))
	}
	v := ddp.UntaggedView(b)
	what := fmt.Sprintf("%v %d q%d %d+%d", op, v.MSN(), v.QN(), v.MO(), len(v.Payload()))
	if op == rdmap.OpTerminate {
		t, _ := rdmap.ParseTerminate(v.Payload())
		what = fmt.Sprintf("Terminate %d/%d/%02x %v %v %v", t.Layer, t.EType, t.Code, t.HasLength, t.HasDDP, t.HasRDMA)
	}
	return "{" + what + "}"
}

// Look tells what has come of a step: completions, segments, what the owner was told, memory, the
// state.
func (p *Player) Look() string {
	e := p.E
	for _, b := range e.Log[p.seen:] {
		p.noteText("%s", describeSegment(b))
	}
	p.seen = len(e.Log)
	for i, r := range []*Ring{&e.SCQ, &e.RCQ} {
		flushed := ""
		for _, wc := range r.Take() {
			more := ""
			if wc.Status == rdmap.StatusSuccess {
				more = fmt.Sprintf(" %+v", wc)
				more = " ok" +
					strings.Join(regexp.MustCompile(
						`( ByteLen| Immediate| Original):[1-9]\d*|(Solicited| Invalidated):true`).FindAllString(more,
						-1),
						"") + p.names[wc.InvalidatedSTag]
			} else if wc.Status == rdmap.StatusWRFlushErr {
				flushed += fmt.Sprintf(" %v %d", wc.Opcode, wc.ID)
				continue
			} else {
				more = ": " + wc.Status.String()
			}
			p.noteText("%c%v %d%s%c", "(["[i], wc.Opcode, wc.ID, more, ")]"[i])
		}
		if flushed != "" {
			p.noteText("%cflushed%s%c", "(["[i], flushed, ")]"[i])
		}
	}
	for _, err := range e.Failures {
		if tm := err.Terminate; tm == nil {
			p.noteText("LOST %v", err.Cause)
		} else {
			p.noteText("FAILED %s", strings.NewReplacer("rdmap: stream terminated: ", "",
				"rdmap: the peer terminated the stream", "by the peer").Replace(
				(&rdmap.StreamError{Terminate: tm, Remote: err.Remote}).Error()))
		}
	}
	if len(e.Failures) > 0 && e.QP.Err() != e.Failures[0] {
		p.noteText("but Err says %v", e.QP.Err())
	}
	for _, told := range []struct {
		what string
		n    *int
	}{{"detach", &e.Detached}, {"peer closed", &e.ClosedBy}, {"high water", &e.High}} {
		if *told.n > 0 {
			p.noteText("%s*%d", told.what, *told.n)
		}
		*told.n = 0
	}
	for _, told := range []struct {
		what string
		yes  *bool
	}{{"finish", &e.Finished}, {"abort", &e.Aborted}} {
		if *told.yes {
			p.noteText("%s", told.what)
		}
		*told.yes = false
	}
	e.Failures = nil
	for i, name := range []string{"both", "read", "write"} {
		if len(p.before) > 0 && !bytes.Equal(p.Contents[i], p.before[i]) {
			p.noteText("%s written", name)
		}
	}
	p.before = nil
	for _, b := range p.Contents {
		p.before = append(p.before, bytes.Clone(b))
	}
	if !p.Both.Valid() {
		p.noteText("both invalid")
	}
	told := strings.Join(append(p.told, e.QP.State().String()), ", ")
	if q, r := e.QP.QueuedReads(), e.QP.InProcess(); q+r > 0 {
		told += fmt.Sprintf(" %d/%d", q, r)
	}
	p.told = nil
	return told
}
