//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/rddp-go/rddp/rdma"
)

// Pages of the victim's memory. What lies between them is never registered.
const (
	pageLen = 4096
	pages   = 24

	pageRW      = 1  // strangers may read and write
	pageRO      = 3  // read only
	pageWO      = 5  // write only
	pageLocal   = 7  // no remote access: receives
	pageAtomic  = 9  // atomics only
	pageTop     = 11 // read and write; the last Tagged Offsets there are
	pageForeign = 13 // everything, in another Protection Domain
	pageScoped  = 15 // everything, for another queue pair only
	pageRevoked = 17 // everything, and then invalidated

	recvLen = 64 // octets of a receive

	regionBase = 0xA000_0000_0000
	topBase    = 1<<64 - 1 - pageLen
)

// messageLen is the length of the honest client's messages in octets.
const messageLen = 32 << 10

// secret fills the pages that no stranger may read.
var secret = []byte("\xfesecret\xfe")

// secretIn tells whether the victim has sent what it never exposed.
func secretIn(b []byte) bool { return bytes.Contains(b, secret) }

// memory is what the victim has registered.
type memory struct {
	arena, want []byte
	buffer      []byte // the honest client's
	stranger    map[string]rdma.STag
	advert      []byte // the STags of the strangers' regions, in the order of names

	strangers, friends *rdma.PD
	local, friend      *rdma.MR
}

// names of the strangers' regions, in the order in which they are advertised.
var names = []string{"rw", "ro", "wo", "local", "atomic", "top", "foreign", "scoped", "revoked"}

func newMemory(dev *rdma.Device) (*memory, error) {
	m := &memory{strangers: dev.AllocPD(), friends: dev.AllocPD(), stranger: make(map[string]rdma.STag),
		buffer: flowPattern(messageLen)}
	words := make([]uint64, pages*pageLen/8) // so that it is aligned for atomics
	m.arena = make([]byte, 0, 8*len(words))
	open := map[int]bool{pageRW: true, pageRO: true, pageTop: true}
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range words {
		if open[i*8/pageLen] {
			m.arena = binary.NativeEndian.AppendUint64(m.arena, rnd.Uint64())
		} else {
			m.arena = append(m.arena, secret...)
		}
	}
	m.want = bytes.Clone(m.arena)
	const all = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic
	cq, err := dev.CreateCQ(4)
	if err != nil {
		return nil, err
	}
	other, err := dev.CreateQP(&rdma.QPConfig{PD: m.strangers, SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 1})
	if err != nil {
		return nil, err
	}
	for name, r := range map[string]struct {
		pd     *rdma.PD
		page   int
		access rdma.Access
		opts   rdma.RegionOptions
	}{
		"rw":      {m.strangers, pageRW, rdma.RemoteRead | rdma.RemoteWrite, rdma.RegionOptions{}},
		"ro":      {m.strangers, pageRO, rdma.RemoteRead, rdma.RegionOptions{}},
		"wo":      {m.strangers, pageWO, rdma.RemoteWrite, rdma.RegionOptions{}},
		"local":   {m.strangers, pageLocal, rdma.LocalWrite, rdma.RegionOptions{}},
		"atomic":  {m.strangers, pageAtomic, rdma.RemoteAtomic, rdma.RegionOptions{}},
		"top":     {m.strangers, pageTop, rdma.RemoteRead | rdma.RemoteWrite, rdma.RegionOptions{Base: topBase}},
		"foreign": {dev.AllocPD(), pageForeign, all, rdma.RegionOptions{}},
		"scoped":  {m.strangers, pageScoped, all, rdma.RegionOptions{QP: other}},
		"revoked": {m.strangers, pageRevoked, all, rdma.RegionOptions{}},
	} {
		if r.opts.Base == 0 {
			r.opts.Base = regionBase
		}
		mr, err := r.pd.Register(m.arena[r.page*pageLen:(r.page+1)*pageLen], r.access, &r.opts)
		if err != nil {
			return nil, err
		}
		m.stranger[name] = mr.STag()
		switch name {
		case "local":
			m.local = mr
		case "revoked":
			mr.Invalidate()
		}
	}
	for _, name := range names {
		m.advert = append(m.advert, uint32Octets(uint32(m.stranger[name]))...)
	}
	m.friend, err = m.friends.Register(m.buffer, rdma.RemoteWrite, &rdma.RegionOptions{Base: regionBase})
	return m, err
}

// knownSTags are the STags by name: what an attacker may know.
func (m *memory) knownSTags() map[string]rdma.STag {
	all := map[string]rdma.STag{"friend": m.friend.STag()}
	for name, stag := range m.stranger {
		all[name] = stag
	}
	return all
}

// renewReceive makes the receive what it was. Whoever has a session may send to it what fits.
func (m *memory) renewReceive() {
	at := pageLocal * pageLen
	copy(m.arena[at:at+recvLen], m.want[at:])
}

// checkMemory compares the memory with what it has to hold.
func (m *memory) checkMemory() error {
	for i := range m.want {
		if m.arena[i] != m.want[i] {
			return fmt.Errorf("octet %d of page %d was written", i%pageLen, i/pageLen)
		}
	}
	if !bytes.Equal(m.buffer, flowPattern(messageLen)) {
		return fmt.Errorf("the honest client's memory was written")
	}
	return nil
}

// flowPattern is what the honest client sends and writes.
func flowPattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

// stampSeq puts the number of a message into it.
func stampSeq(b []byte, seq uint64) { binary.BigEndian.PutUint64(b, seq) }
