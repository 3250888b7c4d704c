package main

import (
	"encoding/binary"

	"github.com/pion/webrtc/v4"
)

const (
	perMessage = 16 << 10
	highWater  = 1 << 20 // octets that may wait in the channel
)

// messagesOf returns how many messages so many octets make, the last of them being shorter.
func messagesOf(octets int) int { return (octets + perMessage - 1) / perMessage }

// send writes messages, with little waiting in the channel. Each word of a message is its number.
func send(d *webrtc.DataChannel, octets int) error {
	isLow := make(chan struct{}, 1)
	signal := func() {
		select {
		case isLow <- struct{}{}:
		default:
		}
	}
	d.SetBufferedAmountLowThreshold(highWater / 2)
	d.OnBufferedAmountLow(signal)
	d.OnClose(signal)
	message := make([]byte, perMessage)
	for number := range messagesOf(octets) {
		for d.BufferedAmount() > highWater && d.ReadyState() == webrtc.DataChannelStateOpen {
			<-isLow
		}
		for at := 0; at < perMessage; at += 4 {
			binary.LittleEndian.PutUint32(message[at:], uint32(number))
		}
		if err := d.Send(message[:min(perMessage, octets-number*perMessage)]); err != nil {
			return err
		}
	}
	return nil
}

// tally is what has come of messages.
type tally struct {
	Messages  int `json:"messages"`
	Octets    int `json:"octets"`
	Overtaken int `json:"overtaken"` // came after a later one
	Twice     int `json:"twice"`
	Damaged   int `json:"damaged"`

	last int
	seen []bool // by number
}

func newTally(octets int) *tally { return &tally{last: -1, seen: make([]bool, messagesOf(octets))} }

func (t *tally) add(message []byte) {
	t.Messages++
	t.Octets += len(message)
	if len(message) < 4 || len(message)%4 != 0 {
		t.Damaged++
		return
	}
	number := binary.LittleEndian.Uint32(message)
	for at := 4; at < len(message); at += 4 {
		if binary.LittleEndian.Uint32(message[at:]) != number {
			t.Damaged++
			return
		}
	}
	switch n := int(number); {
	case n >= len(t.seen):
		t.Damaged++
	case t.seen[n]:
		t.Twice++
	default:
		if n < t.last {
			t.Overtaken++
		}
		t.last, t.seen[n] = max(t.last, n), true
	}
}
