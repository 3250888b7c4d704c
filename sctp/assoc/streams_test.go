package assoc_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// By default each message of the peer can be answered on its stream: a listener opens as many
// streams as the peer does, ten at least, and no more than the peer accepts. What Config says goes
// before that.
func TestListenerOpensAsManyStreamsAsThePeer(t *testing.T) {
	paired := func(out, in uint16) *assoc.Config {
		return &assoc.Config{OutStreams: out, InStreams: in, Adaptation: new(uint32), RequireAdaptation: true}
	}
	for _, row := range []struct {
		name                  string
		cfg                   *assoc.Config
		peerOut, peerIn       uint16
		out, in               uint16 // of the INIT ACK
		cookieOut, cookieIn   uint16
		streamsOut, streamsIn int
	}{
		{"as many as the peer", nil, 64, 65535, 64, 65535, 64, 64, 64, 64},
		{"one more than ten", nil, 11, 65535, 11, 65535, 11, 11, 11, 11},
		{"ten at least", nil, 3, 65535, 10, 65535, 10, 3, 10, 3},
		{"all there can be", nil, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535},
		{"no more than the peer accepts", nil, 64, 20, 20, 65535, 20, 64, 20, 64}, // req 9260-3.3.3-8
		{"fewer than ten, as the peer accepts no more", nil, 64, 2, 2, 65535, 2, 64, 2, 64},
		{"no more than are accepted here", &assoc.Config{InStreams: 30}, 64, 65535, 30, 30, 30, 30, 30, 30},
		{"as many as Config says", &assoc.Config{OutStreams: 5}, 64, 65535, 5, 65535, 5, 64, 5, 64},
		{"ten, as Config says", &assoc.Config{OutStreams: 10}, 64, 65535, 10, 65535, 10, 64, 10, 64},
		{"as many as Config says, both ways", &assoc.Config{OutStreams: 5, InStreams: 5}, 64, 3, 3, 5, 3, 5, 3, 5},
		{"pairs: as many both ways", paired(1024, 1024), 64, 64, 64, 64, 64, 64, 64, 64},
		{"pairs: no more than are asked for", paired(16, 16), 64, 64, 16, 16, 16, 16, 16, 16},
		{"pairs: of a peer that has none", paired(1024, 1024), 5, 8, 5, 5, 5, 5, 5, 5},
		{"pairs: of a peer that accepts fewer", paired(1024, 1024), 8, 5, 5, 5, 5, 5, 5, 5},
		{"an adaptation layer without pairs", paired(1024, 512), 64, 8, 8, 512, 8, 64, 8, 64},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := sctptest.NewCookieLab(t, row.cfg)
			var params [][]byte
			if row.cfg != nil && row.cfg.RequireAdaptation {
				params = append(params, wire.AppendAdaptationIndication(nil, 0))
			}
			ack, c := j.Answer(sctptest.InitLike(wire.ChunkInit,
				wire.InitFields{Tag: j.PeerTag, ARwnd: 1 << 20, OutStreams: row.peerOut, InStreams: row.peerIn,
					TSN: j.TSN}, params...))
			// req 9260-5.1.1-1, 9260-5.1.1-2
			check.That(t, ack.OutStreams() == row.out && ack.InStreams() == row.in, "INIT ACK: OS %d, MIS %d",
				ack.OutStreams(), ack.InStreams())
			check.That(t, c.OutStreams == row.cookieOut && c.InStreams == row.cookieIn, "cookie: %d out, %d in",
				c.OutStreams, c.InStreams)
			j.Accept(&c)
			check.That(t, j.A.OutStreams() == row.streamsOut && j.A.InStreams() == row.streamsIn,
				"association: %d out, %d in", j.A.OutStreams(), j.A.InStreams())
			err := j.A.Send(j.Now, &assoc.Message{Stream: wire.StreamID(row.streamsOut - 1), Body: [2][]byte{{1}}})
			check.That(t, err == nil, "a message on the last stream: %v", err)
			if row.streamsOut < 65535 {
				err = j.A.Send(j.Now, &assoc.Message{Stream: wire.StreamID(row.streamsOut), Body: [2][]byte{{1}}})
				check.Error(t, "a message on the next", err, assoc.ErrInvalidStream) // req 9260-5.1.1-4
			}
		})
	}
}

// An INIT that meets our own, or an association, is answered with what the peer was told before,
// however many streams it asks for.
func TestStreamsOfACollidingInitAreThoseOfTheOwn(t *testing.T) {
	wide := sctptest.InitLike(wire.ChunkInit, wire.InitFields{Tag: 0x55667788, ARwnd: 1 << 20, OutStreams: 300,
		InStreams: 300, TSN: 3})
	j := sctptest.NewCookieLab(t, nil)
	j.Connect()
	ack, c := j.SendInit(wide)
	// req 9260-5.2.1-1
	check.That(t, ack.OutStreams() == 10 && c.OutStreams == 10,
		"COOKIE-WAIT: OS %d, in the cookie %d; the INIT has said 10", ack.OutStreams(), c.OutStreams)
	j = sctptest.NewCookieLab(t, nil)
	_, first := j.Answer(sctptest.InitChunk(j.PeerTag, j.TSN))
	j.Accept(&first)
	ack, c = j.SendInit(wide)
	// req 9260-5.2.2-7
	check.That(t, ack.OutStreams() == 16 && c.OutStreams == 16,
		"ESTABLISHED: OS %d, in the cookie %d; the association has 16", ack.OutStreams(), c.OutStreams)
}
