//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	perSession  = 512  // messages of one session, each way
	maxSessions = 1024 // of one process between two rests
)

// What a sender knows of a message. The high nibble of the octet is the order it belongs to.
const (
	posted    = 1 << iota // given to the stack, or about to be
	completed             // the stack says that the peer's stack has it
	failed                // the stack says that the peer may not have it

	orderShift = 4
	unordered  = 15 // the order of messages that have none
)

// How a session ended.
const (
	stateOpen     = iota // it did not, or its process was killed
	stateGraceful        // after everything was done
	stateFailed          // by a fault
	stateCut             // on purpose, with requests outstanding
	stateRefused         // it was never set up
)

const (
	kindRDMA = iota + 1
	kindSCTP
)

// entry is what one end writes down of one session. It lies in a file that is mapped into memory,
// so a kill -9 leaves it as it was between two instructions. A mark is made before a message is
// given to the stack. Another one is made after a message was taken from it and its content
// compared. So a kill can only hide what was on its way between the two.
type entry struct {
	id           uint64 // of the session, 0 for a free entry; names the client's incarnation
	begun, ended int64  // Unix time in nanoseconds
	counter      uint64 // server: the peer's atomics operate right here
	kind, state  uint32
	server       uint32 // client: index of the server's name
	window       uint32 // the most requests outstanding

	reads, readsDone uint32 // RDMA Reads, which only their requester sees
	adds, addsDone   uint32 // atomics
	wrong            uint32 // contents that were not what was sent
	disorder         uint32 // arrivals out of order
	twice            uint32 // completions of what was complete
	stuck            uint32 // waits without end

	reason [96]byte // why it failed or was refused

	sent, got [perSession]byte
}

// noteReason notes the first reason of a failure.
func (e *entry) noteReason(format string, args ...any) {
	if e.reason[0] == 0 {
		copy(e.reason[:], fmt.Sprintf(format, args...))
	}
}

// reasonText is the reason of a failure.
func (e *entry) reasonText() string { return string(bytes.TrimRight(e.reason[:], "\x00")) }

const ledgerSize = maxSessions * int(unsafe.Sizeof(entry{}))

// ledger is the file of one process.
type ledger struct {
	entries []entry

	mu   sync.Mutex
	used int
	live int // sessions that have not ended
}

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(ledgerSize)); err != nil {
		return nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, ledgerSize, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED|syscall.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	return &ledger{entries: unsafe.Slice((*entry)(unsafe.Pointer(&mem[0])), maxSessions)}, nil
}

// closeFile unmaps the file; the entries are gone then.
func (l *ledger) closeFile() error {
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&l.entries[0])), ledgerSize)
	l.entries = nil
	return syscall.Munmap(mem)
}

var errLedgerFull = errors.New("the ledger is full until the next rest")

// beginEntry opens an entry; its counter is the place for the peer's atomics.
func (l *ledger) beginEntry(id uint64, kind uint32, window int) (*entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == len(l.entries) {
		return nil, errLedgerFull
	}
	e := &l.entries[l.used]
	l.used++
	l.live++
	e.kind, e.window, e.begun = kind, uint32(window), time.Now().UnixNano()
	e.id = id
	return e, nil
}

func (l *ledger) endEntry(e *entry, state uint32) {
	e.ended = time.Now().UnixNano()
	e.state = state
	l.mu.Lock()
	l.live--
	l.mu.Unlock()
}

// reuseEntries starts over with empty entries, which whoever audits has cleared.
func (l *ledger) reuseEntries() {
	l.mu.Lock()
	l.used = 0
	l.mu.Unlock()
}

func (e *entry) notePosted(seq int, order byte) { e.sent[seq] = posted | order<<orderShift }

// undoPost takes back what the stack refused to take.
func (e *entry) undoPost(seq int) { e.sent[seq] = 0 }

// noteOutcome notes what became of a message.
func (e *entry) noteOutcome(seq int, how byte) {
	if e.sent[seq]&(completed|failed) != 0 {
		e.twice++
	}
	e.sent[seq] |= how
}

// settleRest notes what became of all messages that nothing was said of.
func (e *entry) settleRest(how byte) {
	for i, s := range e.sent {
		if s&posted != 0 && s&(completed|failed) == 0 {
			e.sent[i] |= how
		}
	}
}

// noteArrival notes an arrival.
func (e *entry) noteArrival(seq int) {
	if e.got[seq] < 255 {
		e.got[seq]++
	}
}

// counterBytes is the counter as memory.
func (e *entry) counterBytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&e.counter)), 8) }
