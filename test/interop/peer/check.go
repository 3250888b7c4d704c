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

	lastSSN      map[uint16]uint16
	numbersAgain int // SSNs that began anew
	want         [maxSize]byte
}

// checkMessage returns the run the message belongs to, and its number there.
func (c *checker) checkMessage(b []byte, info sctp.RecvInfo) (run, index int) {
	run, index, ok := runAndIndex(info.PPID)
	if !ok {
		c.reportWrong("payload protocol identifier", info)
		return -1, -1
	}
	s := c.shapeOf(run, index)
	switch {
	case info.Stream != s.stream:
		c.reportWrong("stream", info)
	case info.Unordered != s.unordered:
		c.reportWrong("order flag", info)
	case len(b) != s.size || info.Size != s.size || info.More:
		c.reportWrong("length", info)
	case !bytes.Equal(b, s.fillOctets(c.want[:])):
		c.reportWrong("content", info)
	}
	if c.seen[run] == nil {
		c.seen[run], c.last[run] = make([]bool, maxIndex), make([]int, c.streams)
	}
	if c.seen[run][index] {
		c.reportWrong("came twice", info)
	}
	c.seen[run][index] = true
	if !s.unordered {
		if c.last[run][s.stream] > index {
			c.reportWrong("out of order", info)
		}
		c.last[run][s.stream] = index + 1
		if last, ok := c.lastSSN[s.stream]; ok && info.SSN == 0 && last != 65535 {
			c.numbersAgain++
		}
		c.lastSSN[s.stream] = info.SSN
	}
	return run, index
}

func (c *checker) reportWrong(what string, info sctp.RecvInfo) {
	if c.wrong++; c.wrong <= 5 {
		printLine("wrong message 0x%08x: %s (%+v)", info.PPID, what, info)
	}
}
