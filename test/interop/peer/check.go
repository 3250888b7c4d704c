package main

import (
	"bytes"

	"github.com/rddp-go/rddp/sctp"
)

// checker compares received messages with what they have to be.
type checker struct {
	pattern
	seen  [maxRun][]bool // which messages came
	last  [maxRun][]int  // per stream: 1 + index of the last ordered message
	wrong int
	want  [maxSize]byte
}

// check returns the run the message belongs to.
func (c *checker) check(b []byte, info sctp.RecvInfo) (run int) {
	run, index, ok := which(info.PPID)
	if !ok {
		c.fail("payload protocol identifier", info)
		return -1
	}
	s := c.shape(run, index)
	switch {
	case info.Stream != s.stream:
		c.fail("stream", info)
	case info.Unordered != s.unordered:
		c.fail("order flag", info)
	case len(b) != s.size || info.Size != s.size || info.More:
		c.fail("length", info)
	case !bytes.Equal(b, s.fill(c.want[:])):
		c.fail("content", info)
	}
	if c.seen[run] == nil {
		c.seen[run], c.last[run] = make([]bool, maxIndex), make([]int, c.streams)
	}
	if c.seen[run][index] {
		c.fail("came twice", info)
	}
	c.seen[run][index] = true
	if !s.unordered {
		if c.last[run][s.stream] > index {
			c.fail("out of order", info)
		}
		c.last[run][s.stream] = index + 1
	}
	return run
}

func (c *checker) fail(what string, info sctp.RecvInfo) {
	if c.wrong++; c.wrong <= 5 {
		line("wrong message 0x%08x: %s (%+v)", info.PPID, what, info)
	}
}
