package main

import (
	"bytes"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/test/interop/internal/pattern"
)

// checker compares received messages with what they have to be.
type checker struct {
	pattern.Pattern
	seen  [pattern.MaxRun][]bool // which messages came
	last  [pattern.MaxRun][]int  // per stream: 1 + index of the last ordered message
	wrong int

	lastSSN      map[uint16]uint16
	numbersAgain int // SSNs that began anew
	want         [pattern.MaxSize]byte
}

// checkMessage returns the run the message belongs to, and its number there.
func (c *checker) checkMessage(b []byte, info sctp.RecvInfo) (run, index int) {
	run, index, ok := pattern.RunAndIndex(info.PPID)
	if !ok {
		c.reportWrong("payload protocol identifier", info)
		return -1, -1
	}
	s := c.ShapeOf(run, index)
	switch {
	case info.Stream != s.Stream:
		c.reportWrong("stream", info)
	case info.Unordered != s.Unordered:
		c.reportWrong("order flag", info)
	case len(b) != s.Size || info.Size != s.Size || info.More:
		c.reportWrong("length", info)
	case !bytes.Equal(b, s.FillOctets(c.want[:])):
		c.reportWrong("content", info)
	}
	if c.seen[run] == nil {
		c.seen[run], c.last[run] = make([]bool, pattern.MaxIndex), make([]int, c.Streams)
	}
	if c.seen[run][index] {
		c.reportWrong("came twice", info)
	}
	c.seen[run][index] = true
	if !s.Unordered {
		if c.last[run][s.Stream] > index {
			c.reportWrong("out of order", info)
		}
		c.last[run][s.Stream] = index + 1
		if last, ok := c.lastSSN[s.Stream]; ok && info.SSN == 0 && last != 65535 {
			c.numbersAgain++
		}
		c.lastSSN[s.Stream] = info.SSN
	}
	return run, index
}

func (c *checker) reportWrong(what string, info sctp.RecvInfo) {
	if c.wrong++; c.wrong <= 5 {
		printLine("wrong message 0x%08x: %s (%+v)", info.PPID, what, info)
	}
}
