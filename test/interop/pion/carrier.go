package main

import (
	"encoding/binary"
	"errors"
	"iter"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// carrier is the UDP socket that pion/sctp writes packets to and reads them from. It keeps some of
// them back, in either direction, until the next has gone. It sees the answers to requests to reset
// streams, of which pion/sctp tells nobody.
type carrier struct {
	net.Conn
	percent int

	mu      sync.Mutex
	changed *sync.Cond
	random  *rand.Rand          // guarded by mu; so is all below
	sent    []byte              // kept back, or nil
	asked   map[uint32][]uint16 // requests to reset streams, by number; nil: performed
	done    map[uint16]int      // requests that were performed, by stream
	closed  bool

	came     []byte   // of the reader: kept back, or nil
	isDue    bool     // of the reader: another has gone since
	answered []uint32 // of the reader: requests that the packet says are performed which it was given last
}

func newCarrier(c net.Conn, percent int, seed uint64) *carrier {
	k := &carrier{Conn: c, percent: percent, random: rand.New(rand.NewPCG(seed, 0)),
		asked: map[uint32][]uint16{}, done: map[uint16]int{}}
	k.changed = sync.NewCond(&k.mu)
	return k
}

func (c *carrier) isKept() bool { return c.random.IntN(100) < c.percent }

func (c *carrier) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.noteRequests(p)
	behind := c.sent
	c.sent = nil
	keep := behind == nil && !needsOrder(p) && c.isKept()
	if keep {
		c.sent = append([]byte(nil), p...)
	}
	c.mu.Unlock()
	if keep {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	if behind != nil && err == nil {
		_, err = c.Conn.Write(behind)
	}
	if errors.Is(err, syscall.ECONNREFUSED) { // the other end's program is not there yet, or no more
		return len(p), nil
	}
	return n, err
}

func (c *carrier) Read(p []byte) (int, error) {
	c.mu.Lock()
	for _, number := range c.answered { // pion/sctp has dealt with that packet
		for _, stream := range c.asked[number] {
			c.done[stream]++
		}
		c.asked[number] = nil
	}
	c.answered = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	n, err := c.readPacket(p)
	if err == nil {
		c.answered = findPerformed(p[:n])
	}
	return n, err
}

func (c *carrier) readPacket(p []byte) (int, error) {
	if c.isDue {
		n := copy(p, c.came)
		c.came, c.isDue = nil, false
		return n, nil
	}
	for {
		n, err := c.Conn.Read(p)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return n, err
		}
		if c.came != nil {
			c.isDue = true
			return n, nil
		}
		c.mu.Lock()
		keep := c.isKept()
		c.mu.Unlock()
		if !keep {
			return n, nil
		}
		c.came = append([]byte(nil), p[:n]...)
	}
}

func (c *carrier) Close() error {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}

// awaitReset waits until a stream was reset n times.
func (c *carrier) awaitReset(stream uint16, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.done[stream] < n && !c.closed {
		c.changed.Wait()
	}
}

func (c *carrier) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// needsOrder says whether a packet of pion/sctp begins with RE-CONFIG or SHUTDOWN COMPLETE. README.md
// says what it does when one of these comes late. Behind the latter it sends nothing.
func needsOrder(p []byte) bool {
	return len(p) > commonHeader && (p[commonHeader] == typeReconfig || p[commonHeader] == typeShutdownComplete)
}

// What is looked for in packets (RFC 9260, 6525).
const (
	commonHeader         = 12
	typeShutdownComplete = 14
	header               = 4 // of a chunk, and of a parameter
	typeReconfig         = 130
	typeRequest          = 13 // Outgoing SSN Reset Request
	requestLen           = 16
	typeResponse         = 16
	responseLen          = 12
	resultPerform        = 1 // Success - Performed
)

// noteRequests has the requests of a packet in asked. Called with the lock held.
func (c *carrier) noteRequests(p []byte) {
	for b := range parametersOf(p) {
		if binary.BigEndian.Uint16(b) != typeRequest || len(b) < requestLen {
			continue
		}
		number := binary.BigEndian.Uint32(b[4:])
		if _, known := c.asked[number]; known {
			continue
		}
		for list := b[requestLen:]; len(list) >= 2; list = list[2:] {
			c.asked[number] = append(c.asked[number], binary.BigEndian.Uint16(list))
		}
	}
}

// findPerformed returns the numbers of the requests that a packet says are performed.
func findPerformed(p []byte) (numbers []uint32) {
	for b := range parametersOf(p) {
		if binary.BigEndian.Uint16(b) == typeResponse && len(b) >= responseLen &&
			binary.BigEndian.Uint32(b[8:]) == resultPerform {
			numbers = append(numbers, binary.BigEndian.Uint32(b[4:]))
		}
	}
	return numbers
}

// parametersOf are those of a packet's RE-CONFIG chunks.
func parametersOf(p []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(p) < commonHeader {
			return
		}
		for chunk := range fieldsOf(p[commonHeader:]) {
			if chunk[0] != typeReconfig {
				continue
			}
			for b := range fieldsOf(chunk[header:]) {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// fieldsOf cuts what has a length behind its first two octets, and is padded to four.
func fieldsOf(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) >= header {
			size := int(binary.BigEndian.Uint16(b[2:]))
			if size < header || size > len(b) || !yield(b[:size]) {
				return
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}
