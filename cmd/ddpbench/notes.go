package main

import (
	"encoding/json"
	"fmt"

	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
)

// notes are what a server tells for the client's report. It writes them, as JSON, into memory that the client opens to it with the first QP.
type notes struct {
	Machine machine       `json:"machine"`
	Line    timeline.Line `json:"line"`
}

// notesLen is how many octets they take at most.
const notesLen = 128 << 10

// notesMemory is what it takes to gather them, and to write them down.
const notesMemory = 4 * notesLen

// takeNotes has the client open memory for the server's notes.
func (e *engine) takeNotes() (err error) {
	if e.notes {
		e.notebook, err = register(e.pd, notesLen, rdma.RemoteWrite)
	}
	return err
}

// notesTarget is that memory.
func (e *engine) notesTarget() (t target) {
	if e.notebook != nil {
		t.stag, t.to = e.notebook.stag, e.notebook.base
	}
	return t
}

// rest ends the watch over the run.
func (e *engine) rest() {
	if e.sampler != nil {
		e.seen = e.sampler.stop()
		e.sampler = nil
	}
}

// tell ends the watch over the run when nothing is left to be done, and writes the server's notes.
func (e *engine) tell() error {
	if e.sampler == nil || !e.begun || !e.over() {
		return nil
	}
	if e.rest(); e.client {
		return nil
	}
	n := notes{Machine: thisMachine(), Line: timeline.Line{Points: e.seen}}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if len(b) > notesLen { // it cannot be
		return fmt.Errorf("notes of %d octets", len(b))
	}
	if e.notebook, err = register(e.pd, len(b), 0); err != nil {
		return err
	}
	copy(e.notebook.buf, b)
	l := e.lanes[0]
	err = l.postControl(rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{e.notebook.sge(0, len(b))}, RemoteSTag: e.tellTo.stag, RemoteTO: e.tellTo.to})
	if err != nil {
		return err
	}
	return l.sendControl(control{kind: ctlNotes, n: uint64(len(b))})
}

// noted takes n octets of notes. The server could still write them while they are read, so its right to do so ends first
// (RFC 5042 section 6.2.2): a JSON decoder panics on octets that change between its two passes.
func (e *engine) noted(n uint64) error {
	if !e.client || !e.notes || e.told || n > notesLen {
		return fmt.Errorf("the peer tells %d octets that nobody has asked for", n)
	}
	e.told = true
	e.notebook.shut()
	if err := json.Unmarshal(e.notebook.buf[:n], &e.theirs); err != nil {
		return fmt.Errorf("what the server tells for the report: %w", err)
	}
	return nil
}
