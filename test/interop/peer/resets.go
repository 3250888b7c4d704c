package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
)

// askIfDue asks the peer for what --resets names, one after the other at even distances among the
// messages, before message i is sent. It waits for the answer.
func (t *transfer) askIfDue(i int) {
	if t.resets == "" {
		return
	}
	list := strings.Split(t.resets, ",")
	if step := t.send / (len(list) + 1); i > 0 && i%step == 0 && i/step <= len(list) {
		t.ask(list[i/step-1])
	}
}

// ask asks for one thing until the peer has answered. A peer that has a request of its own under
// way is asked again.
func (t *transfer) ask(what string) {
	ctx := context.Background() // the timeout ends the program
	two := []uint16{t.streams - 1, 0}
	for {
		var err error
		switch what {
		case "first":
			t.changed.L.Lock()
			t.closed = true
			t.changed.L.Unlock()
			err = t.c.ResetStreams(ctx, sctp.Outgoing, 0)
		case "out":
			err = t.c.ResetStreams(ctx, sctp.Outgoing, two...)
		case "in":
			err = t.c.ResetStreams(ctx, sctp.Incoming, two...)
		case "all-out":
			err = t.c.ResetStreams(ctx, sctp.Outgoing)
		case "all-in":
			err = t.c.ResetStreams(ctx, sctp.Incoming)
		case "add-out":
			err = t.c.AddStreams(ctx, 1, 0)
		case "add-in":
			err = t.c.AddStreams(ctx, 0, 1)
		case "tsns":
			err = t.c.ResetTSNs(ctx)
		}
		var refused *sctp.StreamResetError
		switch {
		case err == nil:
			printLine("asked %s performed", what)
			return
		case errors.As(err, &refused) && refused.Result == wire.ReconfigAlreadyInProgress:
			time.Sleep(10 * time.Millisecond)
			continue
		}
		printLine("asked %s: %v", what, err)
		return
	}
}

// closeToo resets our side of streams that the peer has reset, as data channels are closed. The first
// one we have reset ourselves.
func (t *transfer) closeToo(ev sctp.Event) {
	if t.resets != "first" || ev.Kind != sctp.EventStreamsReset || !ev.Change.ByPeer || ev.Err != nil {
		return
	}
	t.changed.L.Lock()
	defer t.changed.L.Unlock()
	for _, stream := range ev.Change.Streams {
		if stream == 0 && t.closed {
			continue
		}
		go func() {
			err := t.c.ResetStreams(context.Background(), sctp.Outgoing, stream)
			printLine("closed %d: %v", stream, err)
		}()
	}
}

// reportChange prints what an event says of streams.
func reportChange(ev sctp.Event) {
	side, by := "out", "us"
	if ev.Change.Incoming {
		side = "in"
	}
	if ev.Change.ByPeer {
		by = "peer"
	}
	err := ""
	if ev.Err != nil {
		err = ": " + ev.Err.Error()
	}
	printLine("%s %s by=%s%s", strings.ReplaceAll(ev.Kind.String(), " ", "-"), side, by, err)
}
