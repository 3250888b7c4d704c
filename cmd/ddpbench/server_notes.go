package main

import (
	"encoding/json"
	"fmt"

	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
)

// notes are the server's part of the client's report. The server writes them, as JSON, into memory
// that the client opens to it with the first QP.
type notes struct {
	Machine machine       `json:"machine"`
	Line    timeline.Line `json:"line"`
}

// maxNotesLen is the most octets that notes take.
const maxNotesLen = 128 << 10

// notesMemory is what gathering and encoding the notes takes.
const notesMemory = 4 * maxNotesLen

// openNotesRegion opens the client's memory for the server's notes.
func (e *engine) openNotesRegion() (err error) {
	if e.wantsNotes {
		e.notesRegion, err = registerRegion(e.pd, maxNotesLen, rdma.RemoteWrite)
	}
	return err
}

// notesTarget returns that memory as a target.
func (e *engine) notesTarget() (t target) {
	if e.notesRegion != nil {
		t.stag, t.to = e.notesRegion.stag, e.notesRegion.base
	}
	return t
}

// stopSampler ends the sampling of the run.
func (e *engine) stopSampler() {
	if e.sampler != nil {
		e.samples = e.sampler.stopAndReturn()
		e.sampler = nil
	}
}

// sendNotes ends the sampling when nothing is left to be done, and writes the server's notes.
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
	if len(b) > maxNotesLen { // this cannot happen
		return fmt.Errorf("notes of %d octets", len(b))
	}
	if e.notesRegion, err = registerRegion(e.pd, len(b), 0); err != nil {
		return err
	}
	copy(e.notesRegion.buf, b)
	l := e.lanes[0]
	err = l.postControl(rdma.SendWR{Op: rdma.OpWrite, SGL: []rdma.SGE{e.notesRegion.sgeAt(0, len(b))},
		RemoteSTag: e.clientNotesTarget.stag, RemoteTO: e.clientNotesTarget.to})
	if err != nil {
		return err
	}
	return l.sendControl(control{kind: controlNotes, count: uint64(len(b))})
}

// receiveNotes takes n octets of notes. It first ends the server's access (RFC 5042 section 6.2.2),
// as the server could still write them while they are read. A JSON decoder panics on octets that
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
