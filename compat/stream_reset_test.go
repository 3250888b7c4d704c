package compat

import (
	"slices"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
)

// resetEvents are those of RFC 6525 section 6.1.
var resetEvents = []int{eventStreamReset, eventAssocReset, eventStreamChange}

// offerResets sets what a socket offers and enables.
func offerResets(t *testing.T, s *Socket, enabled int) {
	t.Helper()
	must.OK(t, s.Setsockopt(optReconfigSupported, uint32s(0, 1)))
	must.OK(t, s.Setsockopt(optEnableStreamReset, uint32s(0, enabled)))
}

// newResetPair returns both ends of an association that can reset streams. The flags are those of
// SCTP_ENABLE_STREAM_RESET.
func newResetPair(t *testing.T, clientFlags, serverFlags int) (client, server *Socket) {
	l, at := listenSocket(t)
	offerResets(t, l, serverFlags)
	client = NewSocket(false, false)
	offerResets(t, client, clientFlags)
	subscribeEvents(t, client, resetEvents...)
	subscribeEvents(t, l, resetEvents...)
	must.Get(client.Connect(at))(t)
	server = must.Get(l.Accept())(t)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// readNotification waits for a notification, and returns it without the identifier of the
// association.
func readNotification(t *testing.T, s *Socket) []byte {
	t.Helper()
	b := make([]byte, 200)
	for {
		n, _, flags, err := s.Recv(b, nil)
		must.OK(t, err)
		if flags&MsgNotification != 0 {
			must.That(t, nativeOrder.Uint32(b[4:]) == uint32(n), "the length %d is not %d", nativeOrder.Uint32(b[4:]), n)
			return slices.Concat(b[:4], b[12:n])
		}
	}
}

// Streams are reset and added, and both programs hear of it.
func TestStreamsAreResetAndAdded(t *testing.T) {
	client, server := newResetPair(t, 7, 7)
	for _, s := range []*Socket{client, server} {
		b := uint32s(9, 9)
		must.Get(s.Getsockopt(optReconfigSupported, b))(t)
		checkSame(t, b, uint32s(0, 1))
	}
	ask := func(opt int, b []byte) { t.Helper(); must.OK(t, client.Setsockopt(opt, b)) }
	hear := func(name string, s *Socket, want ...[]byte) {
		t.Helper()
		got := readNotification(t, s)
		check.That(t, slices.Equal(got, slices.Concat(want...)), "%s: % x, want % x", name, got, slices.Concat(want...))
	}
	ask(optResetStreams, slices.Concat(uint32s(0), uint16s(resetOutgoing, 2, 3, 5)))
	hear("a reset", client, uint16s(typeStreamReset, 2, 3, 5))
	hear("a reset by the peer", server, uint16s(typeStreamReset, 1, 3, 5))
	must.Get(server.Send([]byte("x"), nil))(t) // else there is nothing to reset
	ask(optResetStreams, slices.Concat(uint32s(0), uint16s(resetIncoming, 0)))
	hear("a reset of what comes in", client, uint16s(typeStreamReset, 1))
	hear("a reset that the peer has asked for", server, uint16s(typeStreamReset, 2))
	ask(optAddStreams, slices.Concat(uint32s(0), uint16s(0, 4)))
	hear("streams", client, uint16s(typeStreamChange, 0, 0, 4))
	hear("streams of the peer", server, uint16s(typeStreamChange, 0, 4, 0))

	ask(optResetAssoc, uint32s(0))
	own, peers := readNotification(t, client), readNotification(t, server)
	check.That(t, len(own) == 12 && slices.Equal(own[:4], uint16s(typeAssocReset, 0)) && slices.Equal(own[:4], peers[:4]) &&
		slices.Equal(own[4:8], peers[8:]) && slices.Equal(own[8:], peers[4:8]), "TSNs: % x, of the peer % x", own, peers)
	checkSame(t, client.Setsockopt(optResetAssoc, uint32s(0)), error(syscall.EAGAIN)) // so soon
}

// A peer that has enabled nothing refuses.
func TestStreamResetsThatThePeerDenies(t *testing.T) {
	client, _ := newResetPair(t, 7, 0)
	for name, row := range map[string]struct {
		opt       int
		set, want []byte
	}{
		"reset": {optResetStreams, slices.Concat(uint32s(0), uint16s(resetOutgoing, 0)), uint16s(typeStreamReset, 2|4)},
		"more":  {optAddStreams, slices.Concat(uint32s(0), uint16s(0, 1)), uint16s(typeStreamChange, 4, 0, 1)},
	} {
		must.OK(t, client.Setsockopt(row.opt, row.set))
		got := readNotification(t, client)
		check.That(t, slices.Equal(got, row.want), "%s: % x", name, got)
	}
}

// What cannot be asked for is refused at once, as on Linux.
func TestStreamRequestsThatAreRefused(t *testing.T) {
	reset := func(flags, n int, list ...int) []byte {
		return slices.Concat(uint32s(0), uint16s(append([]int{flags, n}, list...)...))
	}
	add := func(in, out int) []byte { return slices.Concat(uint32s(0), uint16s(in, out)) }
	client, _ := newResetPair(t, enableResetStreams|enableChangeAssoc, 7)
	plain, _ := newPair(t)
	offered, _ := newPair(t) // to a peer that has not
	offerResets(t, offered, 7)
	for name, row := range map[string]struct {
		s    *Socket
		opt  int
		set  []byte
		want syscall.Errno
	}{
		"no flags":                    {client, optResetStreams, reset(0, 0), syscall.EINVAL},
		"a short list":                {client, optResetStreams, reset(resetOutgoing, 2, 1), syscall.EINVAL},
		"less than a structure":       {client, optResetStreams, reset(resetOutgoing, 0)[:7], syscall.EINVAL},
		"a stream that there is not":  {client, optResetStreams, reset(resetOutgoing, 1, 10), syscall.EINVAL},
		"more than a packet names":    {client, optResetStreams, reset(resetOutgoing, 20000, make([]int, 20000)...), syscall.EINVAL},
		"no streams":                  {client, optAddStreams, add(0, 0), syscall.EINVAL},
		"too many":                    {client, optAddStreams, add(0, 65526), syscall.EINVAL},
		"streams in a long structure": {client, optAddStreams, append(add(1, 1), 0), syscall.EINVAL},
		"TSNs, which is not enabled":  {client, optResetAssoc, uint32s(0), syscall.ENOPROTOOPT},
		"TSNs of a long structure":    {client, optResetAssoc, uint32s(0, 0), syscall.EINVAL},
		"not supported":               {plain, optResetStreams, reset(resetOutgoing, 0), syscall.ENOPROTOOPT},
		"streams, not supported":      {plain, optAddStreams, add(1, 1), syscall.ENOPROTOOPT},
		"not by the peer":             {offered, optResetStreams, reset(resetOutgoing, 0), syscall.ENOPROTOOPT},
		"without an association":      {NewSocket(false, false), optAddStreams, add(1, 1), syscall.EINVAL},
	} {
		check.Equal(t, name, row.s.Setsockopt(row.opt, row.set), error(row.want))
	}
	b := uint32s(9, 9)
	must.Get(offered.Getsockopt(optReconfigSupported, b))(t)
	checkSame(t, b, uint32s(0, 0))
	s := NewSocket(false, false)
	offerResets(t, s, 0)
	must.Get(s.Getsockopt(optReconfigSupported, b))(t)
	checkSame(t, b, uint32s(0, 1))
	must.OK(t, s.Close())

	all, _, out := overMemoryWith(t, 1, sctp.Config{StreamReset: sctp.OfferStreamReset})
	all[0].opts.setStreamResets(streamResetOptions{supported: true, enabled: 7})
	out.Lose.Store(true)
	must.OK(t, all[0].Setsockopt(optAddStreams, add(1, 1)))
	checkSame(t, all[0].Setsockopt(optAddStreams, add(1, 1)), error(syscall.EINPROGRESS))
	all[0].conn.Abort("")
	checkSame(t, all[0].Setsockopt(optAddStreams, add(1, 1)), error(syscall.EINVAL))
}

// What is enabled later holds for the association that there is.
func TestResetsAreEnabledLater(t *testing.T) {
	client, server := newResetPair(t, 7, 0)
	must.OK(t, server.Setsockopt(optEnableStreamReset, uint32s(0, enableResetStreams)))
	var cfg sctp.Config
	must.OK(t, server.conn.Reconfigure(func(c *sctp.Config) { cfg = *c }))
	check.Equal(t, "what is allowed", cfg.StreamReset, sctp.OfferStreamReset|sctp.AllowStreamReset)
	must.OK(t, client.Setsockopt(optResetStreams, slices.Concat(uint32s(0), uint16s(resetOutgoing, 0))))
	got := readNotification(t, client)
	check.That(t, slices.Equal(got, uint16s(typeStreamReset, 2)), "% x", got)
}

// A request that has failed otherwise than by a denial says so.
func TestNotificationsOfFailedResets(t *testing.T) {
	busy := &sctp.StreamResetError{Result: wire.ReconfigAlreadyInProgress}
	for kind, want := range map[sctp.EventKind][]byte{
		sctp.EventStreamsReset: slices.Concat(uint16s(typeStreamReset, 1|8), uint32s(0, 7), uint16s(1, 2)),
		sctp.EventTSNsReset:    slices.Concat(uint16s(typeAssocReset, 8), uint32s(0, 7, 33, 44)),
		sctp.EventStreamsAdded: slices.Concat(uint16s(typeStreamChange, 8), uint32s(0, 7), uint16s(3, 0)),
	} {
		_, f := streamNotification(&sctp.Event{Kind: kind, Err: busy, Change: &sctp.StreamChange{Incoming: true,
			Streams: []uint16{1, 2}, Added: 3, NextTSN: 33, PeerTSN: 44}}, 7)
		check.That(t, slices.Equal(f, want), "%v: % x, want % x", kind, []byte(f), want)
	}
}
