package sctp

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
)

// RestartStore keeps what an association with Config.TLS needs to be restarted after a crash of
// this program: keys, for one association under each name. NewFileRestartStore makes one of files.
// A store belongs to one Transport at a time. Its methods are called one after the other, and may
// wait for a disk.
//
// Records hold secrets: whoever reads one can take the association over. Names consist of letters,
// digits, '.', '-' and '_'.
type RestartStore interface {
	// Put keeps a record, in place of one with the same name. When it returns the record outlives a
	// crash.
	Put(name string, record []byte) error
	// Take removes a record for good, and returns it. No other call ever returns it, whatever
	// crashes: the keys in it may be used once. The error is fs.ErrNotExist if there is none.
	Take(name string) (record []byte, err error)
}

// restartJobs does what restart stores are asked for, in a goroutine of its own.
type restartJobs struct {
	mu      sync.Mutex // a leaf lock
	queue   []func()
	idleCh  chan struct{} // closed when all is done; nil: nothing is to do
	running bool
}

// add queues a job.
func (j *restartJobs) add(job func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queue = append(j.queue, job); !j.running {
		j.running, j.idleCh = true, make(chan struct{})
		go j.run()
	}
}

func (j *restartJobs) run() {
	for {
		j.mu.Lock()
		if len(j.queue) == 0 {
			j.queue, j.running = nil, false
			close(j.idleCh)
			j.mu.Unlock()
			return
		}
		job := j.queue[0]
		j.queue[0] = nil
		j.queue = j.queue[1:]
		j.mu.Unlock()
		job()
	}
}

// idle returns a channel that is closed when all that was added is done.
func (j *restartJobs) idle() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.running {
		return closedChan
	}
	return j.idleCh
}

// restartKeeper keeps the restart keys of an association in a store. It is the keyShell's.
type restartKeeper struct {
	k     *keyShell
	store RestartStore
	name  string // in the store

	isStored bool // the association has stored something; guarded by its lock

	mu      sync.Mutex // a leaf lock
	waiting []byte     // guarded by mu: a record that is to be put
}

// restartName names an association in a store: by its ports, and the address of the peer that it
// was set up with.
func restartName(local, peer uint16, addr netip.Addr) string {
	text := strings.NewReplacer(":", "_", "%", "-").Replace(addr.Unmap().String())
	return fmt.Sprintf("%d-%d-%s", local, peer, text)
}

// keepRestartKeys has a store keep the restart keys of the association, if there is one.
func (k *keyShell) keepRestartKeys(store RestartStore) {
	if store == nil {
		return
	}
	a := &k.c.core
	k.keeper = &restartKeeper{k: k, store: store, name: restartName(a.LocalPort(), a.PeerPort(), a.PeerAddr().Addr())}
	a.SetRestartKeeper(k.keeper)
}

// StoreRestart implements assoc.RestartKeeper. Of records that wait for the disk the last counts.
func (r *restartKeeper) StoreRestart(keys assoc.RestartKeys) {
	r.isStored = true
	record := keymgmt.RestartRecord{Name: r.name, Keys: keys, Peer: r.k.first.Raw}
	r.mu.Lock()
	isQueued := r.waiting != nil
	r.waiting = record.Append(nil)
	r.mu.Unlock()
	if !isQueued {
		r.k.c.t.restartJobs.add(r.put)
	}
}

func (r *restartKeeper) put() {
	r.mu.Lock()
	record := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	if err := r.store.Put(r.name, record); err != nil {
		r.log("the keys for a restart are not stored", err)
	}
}

// TakeRestart implements assoc.RestartKeeper.
func (r *restartKeeper) TakeRestart() { r.k.c.t.restartJobs.add(r.take) }

// take takes the record away, and gives the keys in it to the association.
func (r *restartKeeper) take() {
	var keys *assoc.RestartKeys
	record, err := r.read()
	if err == nil {
		keys = &record.Keys
	} else if !errors.Is(err, fs.ErrNotExist) {
		r.log("the keys for a restart are not used", err)
	}
	r.k.locked(func(a *assoc.Assoc, now rawio.Time) {
		if first, err := x509.ParseCertificate(record.Peer); err == nil && r.k.first == nil {
			r.k.first = first
		}
		a.RestartTaken(now, keys)
	})
}

func (r *restartKeeper) read() (record keymgmt.RestartRecord, err error) {
	b, err := r.store.Take(r.name)
	if err == nil {
		record, err = keymgmt.ParseRestartRecord(b)
	}
	if err == nil && record.Name != r.name {
		return keymgmt.RestartRecord{}, keymgmt.ErrRestartRecord
	}
	return record, err
}

// drop forgets the keys of an association that has ended. Those that were there before it began are
// left for another try. Owner only.
func (r *restartKeeper) drop() {
	if !r.isStored {
		return
	}
	r.k.c.t.restartJobs.add(func() {
		if _, err := r.store.Take(r.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.log("the keys for a restart are still stored", err)
		}
	})
}

func (r *restartKeeper) log(msg string, err error) {
	a, _ := r.k.c.lock()
	remote := a.PeerAddr()
	r.k.c.unlock()
	r.k.c.t.logLine(slog.LevelWarn, remote, msg, slog.String("reason", err.Error()))
}
