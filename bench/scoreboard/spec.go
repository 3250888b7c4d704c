package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"time"
)

// spec is one thing to measure: who moves what over which link.
type spec struct {
	Peer string `json:"peer"`           // a key of peers
	Verb string `json:"verb,omitempty"` // of ddpbench: write, read or send
	Link string `json:"link,omitempty"` // raw, udp, tun or linkTCP, where there is a choice
	Net  string `json:"net"`            // a key of networks
	// octets in a message; a pump has packets as long as the path takes
	Size     int           `json:"size,omitempty"`
	PingPong bool          `json:"pingpong,omitempty"` // latency in place of throughput
	Poll     time.Duration `json:"poll,omitempty"`     // before blocking: 0 is the default, polling, or atOnce
	Both     bool          `json:"both,omitempty"`     // both ends send; the sum counts
	QPs      int           `json:"qps,omitempty"`      // 0: one
	// octets that messages use in turn on each side; 0: as little as need be
	Memory int `json:"memory,omitempty"`
	// ddpbench: by DTLS chunks; tcp: by crypto/tls. Which suite is its choice: AES-128-GCM on amd64
	Encrypted bool `json:"encrypted,omitempty"`
	PathMTU   int  `json:"path_mtu,omitempty"` // forced upon libusrsctp, octets; 0: its own
	Buffer    int  `json:"buffer,omitempty"`   // of libusrsctp, octets

	// What follows is for the shapes of programs, and for growth.
	Shape  string `json:"shape,omitempty"`
	Conns  int    `json:"conns,omitempty"`  // connections; 0: one
	Procs  int    `json:"procs,omitempty"`  // GOMAXPROCS of both ends; 0: all processors
	Busy   bool   `json:"busy,omitempty"`   // a goroutine of each end computes at the same time
	Beside bool   `json:"beside,omitempty"` // another process computes at the same time
	// twice as many other processes as there are processors compute at the same time
	Crowd bool          `json:"crowd,omitempty"`
	Trips int           `json:"trips,omitempty"` // round trips of a run, at least
	Beat  time.Duration `json:"beat,omitempty"`  // HB.interval; 0: the default, or noBeats
	// the server has a goroutine for each processor, not for each association
	Socket bool `json:"socket,omitempty"`
}

// numBusyProcs is how many processes compute beside.
func (s spec) numBusyProcs() int {
	switch {
	case s.Crowd:
		return 2 * runtime.NumCPU()
	case s.Beside:
		return 1
	}
	return 0
}

// How long an end polls before it blocks, other than by default.
const (
	polling = time.Millisecond
	atOnce  = -1
)

// noBeats in place of an HB.interval turns heartbeats off.
const noBeats = -1

// String is the name that results go by.
func (s spec) String() string {
	words := []string{s.Peer}
	if s.Verb != "" {
		words = append(words, s.Verb)
	}
	if s.Shape != "" {
		words = append(words, s.Shape)
	}
	if s.Link != "" {
		words = append(words, s.Link)
	}
	if s.Link != "mem" {
		words = append(words, s.Net)
	}
	if s.Size > 0 {
		words = append(words, formatSize(s.Size))
	}
	if s.PathMTU > 0 {
		words = append(words, fmt.Sprintf("MTU=%d", s.PathMTU))
	}
	if s.Buffer > 0 {
		words = append(words, "buffer="+formatSize(s.Buffer))
	}
	if s.Memory > 0 {
		words = append(words, "memory="+formatSize(s.Memory))
	}
	if s.QPs > 1 {
		words = append(words, fmt.Sprintf("QPs=%d", s.QPs))
	}
	if s.Conns > 1 {
		words = append(words, fmt.Sprintf("connections=%d", s.Conns))
	}
	switch {
	case s.Beat > 0:
		words = append(words, "HB.interval="+s.Beat.String())
	case s.Beat < 0:
		words = append(words, "no heartbeats")
	}
	if s.Procs > 0 {
		words = append(words, fmt.Sprintf("GOMAXPROCS=%d", s.Procs))
	}
	for _, f := range []struct {
		on   bool
		word string
	}{{s.Encrypted, "encrypted"}, {s.Both, "both-ways"}, {s.PingPong, "ping-pong"}, {s.Poll == polling, "polling"},
		{s.Poll == atOnce, "blocking"}, {s.Busy, "computing"}, {s.Beside, "beside-another"}, {s.Crowd, "crowded"},
		{s.Socket, "Socket"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return strings.Join(words, " ")
}

// formatSize writes octets as people do.
func formatSize(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

// end is one end of a spec: what one process has to do.
type end struct {
	spec
	Server  bool       `json:"server"`
	Seconds float64    `json:"seconds"`
	Local   netip.Addr `json:"local"`
	Remote  netip.Addr `json:"remote"`
	// Host is the host's address on the TUN device of this end.
	Host netip.Prefix `json:"host,omitzero"`
}

func (e *end) runTime() time.Duration { return time.Duration(e.Seconds * float64(time.Second)) }
