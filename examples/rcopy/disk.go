package main

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/quota"
)

// disk shares the free space of the server's directory among the copies under way. Each copy
// reserves all of its file before a single octet has come. Without a share one client could keep
// all others out, and fill the disk.
type disk struct {
	share uint64                                               // percent of free space that one address may take
	space func(root *os.Root) (free, total uint64, known bool) // in octets

	mu    sync.Mutex
	taken map[netip.Addr]uint64 // guarded by mu: reserved, by the address that stands for the client's host
	all   uint64                // guarded by mu
	short time.Time             // guarded by mu: when a copy found too little
}

// spare is the part of the disk that no copy takes: one in spare octets.
const spare = 20

func newDisk(share uint64) *disk {
	return &disk{share: share, space: space, taken: make(map[netip.Addr]uint64)}
}

// create makes room for a client's file, or says why there is none.
func (d *disk) create(root *os.Root, from netip.Addr, size uint64) (*incoming, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from = quota.HostKey(from)
	if err := d.refuse(root, from, size); err != nil {
		d.short = time.Now()
		return nil, err
	}
	in, err := create(root, size)
	if err != nil {
		return nil, err
	}
	d.all += size
	d.taken[from] += size
	return in, nil
}

func (d *disk) refuse(root *os.Root, from netip.Addr, size uint64) error {
	free, total, known := d.space(root)
	if !known || size == 0 {
		return nil
	}
	room := uint64(0) // for all copies under way, with this one
	if free+d.all > total/spare {
		room = free + d.all - total/spare
	}
	mine := room / 100 * d.share
	switch {
	case size > room-min(room, d.all):
		return fmt.Errorf("there is not enough free space for %d octets", size)
	case size > mine-min(mine, d.taken[from]):
		return fmt.Errorf("%d octets are too many: the copies of one client may reserve %d %% of the free space "+
			"at a time, %d octets", size, d.share, mine)
	}
	return nil
}

// give releases what a copy has reserved. Its file is stored by then, or gone.
func (d *disk) give(from netip.Addr, size uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from = quota.HostKey(from)
	d.all -= size
	if d.taken[from] -= size; d.taken[from] == 0 {
		delete(d.taken, from)
	}
}

// wanted reports whether a copy has found too little space since then.
func (d *disk) wanted(since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.short.After(since)
}
