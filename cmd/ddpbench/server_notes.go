package main

import (
	"encoding/json"
	"fmt"

	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
)

// notes are what a server tells for the client's report. It writes them, as JSON, into memory that
// the client opens to it with the first QP.
type notes struct {
	Machine machine       `json:"machine"`
	Line    timeline.Line `json:"line"`
}

// maxNotesLen is how many octets they take at most.
const maxNotesLen = 128 << 10

// notesMemory is what it takes to gather them, and to write them down.
const notesMemory = 4 * maxNotesLen

// openNotesRegion has the client open memory for the server's notes.
func (e *engine) openNotesRegion() (err error) {
	if e.wantsNotes {
		e.notesRegion, err = registerRegion(e.pd, maxNotesLen, rdma.RemoteWrite)
	}
	return err
}

// notesTarget is that memory.
func (e *engine) notesTarget() (t target) {
	if e.notesRegion != nil {
		t.stag, t.to = e.notesRegion.stag, e.notesRegion.base
	}
	return t
}

// stopSampler ends the watch over the run.
func (e *engine) stopSampler() {
	if e.sampler != nil {
		e.samples = e.sampler.stopAndReturn()
		e.sampler = nil
	}
}

// sendNotes ends the watch over the run when nothing is left to be done, and writes the server's
// notes.
func (e *engine) sendNotes() error {
	if e.sampler == nil || !e.hasBegun || !e.messagesFinished() {
		return nil
	}
	if e.stopSampler(); e.client {
		return nil
	}
	n := notes{Machine: thisMachine(), Line: timeline.Line{Points: e.samples}}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if len(b) > maxNotesLen { // it cannot be
		return fmt.Errorf("notes of %d octets", len(b))
	}
	if e.notesRegion, err = registerRegion(e.pd, len(b), 0); err != nil {
		return err
	}
	copy(e.notesRegion.buf, b)
	l := e.lanes[0]
	err = l.postControl(rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{e.notesRegion.sgeAt(0, len(b))}, RemoteSTag: e.clientNotesTarget.stag, RemoteTO: e.clientNotesTarget.to})
	if err != nil {
		return err
	}
	return l.sendControl(control{kind: controlNotes, count: uint64(len(b))})
}

// receiveNotes takes n octets of notes. The server could still write them while they are read, so
// its right to do so ends first (RFC 5042 section 6.2.2): a JSON decoder panics on octets that
// change between its two passes.
func (e *engine) receiveNotes(n uint64) error {
	if !e.client || !e.wantsNotes || e.notesReceived || n > maxNotesLen {
		return fmt.Errorf("the peer tells %d octets that nobody has asked for", n)
	}
	e.notesReceived = true
	e.notesRegion.endAccess()
	if err := json.Unmarshal(e.notesRegion.buf[:n], &e.serverNotes); err != nil {
		return fmt.Errorf("what the server tells for the report: %w", err)
	}
	return nil
}
