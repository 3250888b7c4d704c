package rdmap

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/conduct"
)

// player plays what befalls a QP and tells what is seen of it.
type player struct {
	*setup
	names      map[ddp.STag]string
	before     [][]byte
	told       []string
	id         uint64
	msn        [4]uint32 // of the peer's messages
	seen, lost int       // of the log, of Host.Detach
}

func newPlayer(t *testing.T) *player {
	p := &player{setup: newSetup(t), id: 10}
	p.names = map[ddp.STag]string{p.both.STag(): "both", p.read.STag(): "read", p.write.STag(): "write", p.sink.STag(): "sink", p.recv.STag(): "recv"}
	p.look()
	return p
}

func (p *player) say(format string, args ...any) {
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

// region is the one with a name.
func (p *player) region(name string) *ddp.Region {
	return map[string]*ddp.Region{"both": p.both, "read": p.read, "write": p.write, "sink": p.sink, "recv": p.recv}[name]
}

// peer is a segment of the peer's.
func (p *player) peer(what string) {
	verb, rest, _ := strings.Cut(what, " ")
	number := func(q int) uint32 { p.msn[q]++; return p.msn[q] }
	send := func(op Opcode, inv ddp.STag, b string) {
		p.e.inject(untagged(QueueSend, number(QueueSend), untaggedRsvd(op, inv), 0, true, []byte(b)))
	}
	switch verb {
	case "send":
		send(OpSend, 0, rest)
	case "sendse":
		send(OpSendSE, 0, rest)
	case "sendinv":
		send(OpSendInv, p.region(rest).STag(), "inv")
	case "begin": // of a Send, the end of which never comes
		p.e.inject(untagged(QueueSend, p.msn[QueueSend]+1, untaggedRsvd(OpSend, 0), 0, false, []byte(rest)))
	case "imm":
		send(OpImmediate, 0, rest)
	case "write":
		p.e.inject(tagged(Control(OpWrite), p.region(rest).STag(), p.both.Base()+3, true, []byte("W")))
	case "read":
		p.e.inject(readSegment(number(QueueReadRequest), p.region(rest).STag(), p.both.Base(), 10))
	case "add":
		var b [AtomicRequestLen]byte
		(&AtomicRequest{ID: 77, STag: p.region(rest).STag(), TO: p.both.Base() + 8, Op: FetchAdd(1)}).Put(&b)
		p.e.inject(untagged(QueueReadRequest, number(QueueReadRequest), untaggedRsvd(OpAtomicRequest, 0), 0, true, b[:]))
	case "response": // to the Read of 50 octets, or so many of them
		n := 50
		fmt.Sscan(rest, &n)
		p.e.inject(tagged(Control(OpReadResponse), p.sink.STag(), p.sink.Base()+10, true, make([]byte, n)))
	case "answer": // to the atomic in a place
		var b [AtomicResponseLen]byte
		r := AtomicResponse{Original: 5}
		fmt.Sscan(rest, &r.ID)
		r.Put(&b)
		p.e.inject(untagged(QueueAtomicResponse, number(QueueAtomicResponse), untaggedRsvd(OpAtomicResponse, 0), 0, true, b[:]))
	case "terminate": // quoting what this side has sent in a place of its log, if it has
		tm, at := Terminate{Layer: LayerDDP, EType: EType(ddp.TypeUntagged), Code: ddp.CodeNoBuffer}, -1
		if fmt.Sscan(rest, &at); at >= 0 && at < len(p.e.log) {
			tm.HasDDP, tm.SegLength = true, 18
			copy(tm.DDP[:], p.e.log[at])
		}
		p.e.inject(untagged(QueueTerminate, number(QueueTerminate), untaggedRsvd(OpTerminate, 0), 0, true, tm.Append(nil)))
	}
}

// step is a call, or a segment of the peer's behind "<".
func (p *player) step(what string) {
	var err error
	verb, rest, _ := strings.Cut(what, " ")
	post := func(wr SendWR) {
		p.id++
		wr.ID = p.id
		if strings.Contains(rest, "quiet") {
			wr.Flags |= Unsignaled
		}
		if strings.Contains(rest, "fence") {
			wr.Flags |= Fence
		}
		err = p.e.qp.PostSend(&wr)
	}
	all := []SGE{sge(p.both, 0, 100)}
	if r := p.region(rest); r != nil {
		all[0] = sge(r, 0, 100)
	}
	switch verb {
	case "<":
		p.peer(rest)
	case "send":
		post(SendWR{Op: WRSend, SGL: all})
	case "write":
		post(SendWR{Op: WRWrite, SGL: all, RemoteSTag: 5, RemoteTO: 100})
	case "writeimm":
		post(SendWR{Op: WRWriteImm, SGL: all[:1:1], RemoteSTag: 5, RemoteTO: 100, Immediate: 9})
	case "imm":
		post(SendWR{Op: WRImm, Immediate: 9})
	case "read":
		if rest != "nowhere" {
			all = []SGE{sge(p.sink, 10, 50)}
		}
		post(SendWR{Op: WRRead, SGL: all, RemoteSTag: 5, RemoteTO: 100})
	case "add":
		post(SendWR{Op: WRAtomic, RemoteSTag: 5, RemoteTO: 8, Atomic: FetchAdd(1)})
	case "recv":
		p.id++
		err = p.e.qp.PostRecv(&RecvWR{ID: p.id, SGL: []SGE{sge(p.recv, 40, 20)}})
	case "cut":
		p.e.cutOne()
	case "all":
		p.e.cutAll()
	case "ack":
		for p.lost < len(p.e.log) {
			p.lost++
			p.e.qp.Stream().Acked()
		}
	case "close":
		p.e.qp.Close()
	case "abort":
		p.e.qp.Abort(errors.New("aborted"))
	case "refuse":
		p.e.qp.Refuse(CodeNoRTR, errors.New("refused"))
	case "halfclosed":
		p.e.qp.Stream().HalfClosed()
	case "closed":
		p.e.qp.Stream().Closed(errors.New("lost"))
	case "ended":
		p.e.qp.Ended()
	case "high":
		p.e.qp.SetHighWater(0)
	case "invalidate":
		p.region(rest).Invalidate()
	}
	if err != nil {
		p.say("%v", err)
	}
}

// segment says what a segment is.
func segment(b []byte) string {
	c := ddp.Control(b[0])
	_, op := SplitControl(b[1])
	if c.Tagged() {
		v := ddp.TaggedView(b)
		return fmt.Sprintf("{%v %d:%d+%d}", op, v.STag(), v.TO(), len(v.Payload()))
	}
	v := ddp.UntaggedView(b)
	what := fmt.Sprintf("%v %d q%d %d+%d", op, v.MSN(), v.QN(), v.MO(), len(v.Payload()))
	if op == OpTerminate {
		t, _ := ParseTerminate(v.Payload())
		what = fmt.Sprintf("Terminate %d/%d/%02x %v %v %v", t.Layer, t.EType, t.Code, t.HasLength, t.HasDDP, t.HasRDMA)
	}
	return "{" + what + "}"
}

// look tells what has come of a step: completions, segments, what the owner was told, memory, the state.
func (p *player) look() string {
	e := p.e
	for _, b := range e.log[p.seen:] {
		p.say("%s", segment(b))
	}
	p.seen = len(e.log)
	for i, r := range []*ring{&e.scq, &e.rcq} {
		flushed := ""
		for _, wc := range r.take() {
			more := ""
			if wc.Status == StatusSuccess {
				more = fmt.Sprintf(" %+v", wc)
				more = " ok" + strings.Join(regexp.MustCompile(`( ByteLen| Immediate| Original):[1-9]\d*|(Solicited| Invalidated):true`).FindAllString(more, -1), "") + p.names[wc.InvalidatedSTag]
			} else if wc.Status == StatusWRFlushErr {
				flushed += fmt.Sprintf(" %v %d", wc.Opcode, wc.ID)
				continue
			} else {
				more = ": " + wc.Status.String()
			}
			p.say("%c%v %d%s%c", "(["[i], wc.Opcode, wc.ID, more, ")]"[i])
		}
		if flushed != "" {
			p.say("%cflushed%s%c", "(["[i], flushed, ")]"[i])
		}
	}
	for _, err := range e.failed {
		if tm := err.Terminate; tm == nil {
			p.say("LOST %v", err.Cause)
		} else {
			p.say("FAILED %s", strings.NewReplacer("rdmap: stream terminated: ", "", "rdmap: the peer terminated the stream", "by the peer").Replace((&StreamError{Terminate: tm, Remote: err.Remote}).Error()))
		}
	}
	if len(e.failed) > 0 && e.qp.Err() != e.failed[0] {
		p.say("but Err says %v", e.qp.Err())
	}
	for _, told := range []struct {
		what string
		n    *int
	}{{"detach", &e.detached}, {"peer closed", &e.closedBy}, {"high water", &e.high}} {
		if *told.n > 0 {
			p.say("%s*%d", told.what, *told.n)
		}
		*told.n = 0
	}
	for _, told := range []struct {
		what string
		yes  *bool
	}{{"finish", &e.finish}, {"abort", &e.abort}} {
		if *told.yes {
			p.say("%s", told.what)
		}
		*told.yes = false
	}
	e.failed = nil
	for i, name := range []string{"both", "read", "write"} {
		if len(p.before) > 0 && !bytes.Equal(p.contents[i], p.before[i]) {
			p.say("%s written", name)
		}
	}
	p.before = nil
	for _, b := range p.contents {
		p.before = append(p.before, bytes.Clone(b))
	}
	if !p.both.Valid() {
		p.say("both invalid")
	}
	told := strings.Join(append(p.told, e.qp.State().String()), ", ")
	if q, r := e.qp.QueuedReads(), e.qp.InProcess(); q+r > 0 {
		told += fmt.Sprintf(" %d/%d", q, r)
	}
	p.told = nil
	return told
}

// In each situation of a QP and for each thing that can happen then, testdata/conduct.txt has what comes of it: at once, when all
// has left and is acknowledged, when the peer closes, and when the stream is gone.
func TestConductIsAsWrittenDown(t *testing.T) {
	conduct.Table(t, "testdata/conduct.txt", func(situation []string, step string) string {
		p := newPlayer(t)
		for _, s := range situation {
			p.step(s)
		}
		p.look()
		p.step(step)
		told := []string{p.look()}
		for _, then := range [][]string{{"all", "ack"}, {"halfclosed", "all", "ack"}, {"closed", "ended"}} {
			for _, s := range then {
				p.step(s)
			}
			if now := p.look(); now != told[len(told)-1] && now != "LOST lost, Error" {
				told = append(told, now)
			}
		}
		if p.e.broken != nil {
			told = append(told, "BROKEN")
		}
		return strings.Join(told, " | ")
	})
}
