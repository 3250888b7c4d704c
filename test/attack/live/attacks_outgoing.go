//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// reachAttacks are of a server that the victim's program connects to. Such a peer can have a cookie
// signed for an association that the victim sets up, because its own INIT meets the victim's (RFC
// 9260 section 5.2.1). Whenever it returns that cookie, the association goes on with another tag of
// its own (section 5.2.4 action B). That is no restart.
func reachAttacks() []attack {
	usual := []string{"INIT", "COOKIE ECHO", "SHUTDOWN", "INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK", "control",
		"session Terminate", "opcode 3"}
	return []attack{
		// A layer took the other tag for a restart. Then the program got back the memory of its
		// requests. What it wrote there next, the secret, was retransmitted, and its requests did
		// not end well.
		{name: "a server that returns a cookie of the collision while Sends are under way, and asks for them again",
			rfc:  "9260 5.2.4 B, 5042 6.3.2",
			must: []string{"COOKIE ACK", "opcode 3"}, may: usual, start: withoutAssoc(func(x *attackEnv, _ int) error {
				s, err := x.awaitOutgoing()
				if err != nil {
					return err
				}
				defer s.leaveAssoc(x)
				s.silent = true
				known := s.cum
				if err := x.victim.callAgent("post", reachSends, nil); err != nil {
					return err
				}
				for range reachSends {
					if _, err := s.nextData(0); err != nil {
						return fmt.Errorf("a Send: %w", err)
					}
				}
				if err := s.swappedCookie(); err != nil {
					return err
				}
				if err := x.victim.callAgent("completed", nil, nil); err != nil { // what was flushed is the program's
					return err
				}
				for end := range uint16(reachSends - 1) { // thrice one more than the first of them (section 7.2.4)
					gap := []wire.GapBlock{{Start: 2, End: 2 + end}}
					if err := s.sendChunks(wire.AppendSack(nil,
						wire.SackFields{CumTSN: known, ARwnd: s.rwnd, Gaps: gap})); err != nil {
						return err
					}
				}
				if _, err := s.waitForChunk(wire.ChunkData); err != nil {
					return fmt.Errorf("nothing is sent again: %w", err)
				}
				if err := s.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: s.cum, ARwnd: s.rwnd})); err !=
					nil {
					return err
				}
				return x.awaitCompleted(reachSends)
			})},
		// Both cookies had been read before the layers above looked. Then the tag was the one that
		// they knew. The first message on a stream that the new life does not have ended the
		// process.
		{name: "a server that swaps its tag by a cookie, and restarts with the tag before and one stream",
			rfc:  "9260 5.2.4 A, B",
			must: []string{"COOKIE ACK"}, may: usual, start: withoutAssoc(func(x *attackEnv, _ int) error {
				s, err := x.awaitOutgoing()
				if err != nil {
					return err
				}
				defer s.leaveAssoc(x)
				cookie, tag, err := s.requestSigned(s.own, 1)
				if err != nil {
					return err
				}
				if err := s.sendChunks(wire.AppendCookieEcho(nil, s.cookie)); err != nil {
					return err
				}
				s.tag = tag
				if err := s.sendChunks(wire.AppendCookieEcho(nil, cookie)); err != nil {
					return err
				}
				if _, err := s.waitForChunk(wire.ChunkCookieAck); err != nil {
					return err
				}
				return x.victim.callAgent("post", 1, nil) // on each session
			})},
	}
}

const (
	reachSends   = 4    // as many full packets as the first congestion window has
	reachLen     = 1000 // octets of each
	reachStreams = 2    // sessions of the victim's program, with its own numbers for them
)

// victimAssoc is an association that the victim has set up.
type victimAssoc struct {
	*peer
	other  uint32 // another tag of the attacker's, which the cookie has
	cookie []byte
}

// awaitOutgoing has the victim's program connect to the attacker, and the sessions that it asks for
// accepted.
func (x *attackEnv) awaitOutgoing() (*victimAssoc, error) {
	p := x.newPeer(netip.AddrPort{}, nil)
	s := &victimAssoc{peer: p, other: x.w.randomTag()}
	if err := x.victim.callAgent("reach", p.src, nil); err != nil {
		return nil, err
	}
	c, err := p.waitForChunk(wire.ChunkInit)
	if err != nil {
		return nil, fmt.Errorf("the victim does not connect: %w", err)
	}
	ini, err := wire.AsInit(c)
	if err != nil {
		return nil, err
	}
	p.tag, p.cum, p.dst = ini.Tag(), ini.TSN()-1, netip.AddrPortFrom(x.victimAddr, p.from)
	b := wire.AppendInit(nil, wire.ChunkInitAck, wire.InitFields{Tag: p.own, ARwnd: p.rwnd, OutStreams: 1024,
		InStreams: 1024, TSN: p.next})
	if err := p.sendChunks(wire.CloseChunk(wire.AppendParam(append(b, adaptationParam()...), wire.ParamStateCookie,
		uint32Octets(1)),
		0)); err != nil {
		return nil, err
	}
	if _, err := p.waitForChunk(wire.ChunkCookieEcho); err != nil {
		return nil, err
	}
	if s.cookie, _, err = s.requestSigned(s.other, 1024); err != nil {
		return nil, err
	}
	if err := p.sendChunks(wire.AppendCookieAck(nil)); err != nil {
		return nil, err
	}
	for i := range uint16(reachStreams) {
		stream := 2 * i // whoever sets the association up takes the even ones
		if _, err := p.nextData(stream); err != nil {
			return nil, fmt.Errorf("no Initiate on stream %d: %w", stream, err)
		}
		if err := p.sendDDP(stream, ddpadapt.PPIDControl, forge.Control(0, forge.Accept, nil)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// requestSigned has the victim sign a cookie for an INIT with a tag, and tells the tag that the
// victim has in it.
func (s *victimAssoc) requestSigned(tag uint32, streams uint16) (cookie []byte, theirs uint32, err error) {
	q := *s.peer
	q.own, q.streams, q.inits = tag, streams, adaptationParam()
	if err := q.requestCookie(); err != nil {
		return nil, 0, fmt.Errorf("an INIT of the server's: %w", err)
	}
	return q.cookie, q.tag, nil
}

// leaveAssoc ends the association.
func (s *victimAssoc) leaveAssoc(x *attackEnv) {
	s.abortAssoc()
	x.dropPeer(s.peer)
}

// swappedCookie returns the cookie with the other tag.
func (s *victimAssoc) swappedCookie() error {
	if err := s.sendChunks(wire.AppendCookieEcho(nil, s.cookie)); err != nil {
		return err
	}
	s.own = s.other
	_, err := s.waitForChunk(wire.ChunkCookieAck)
	return err
}

// awaitCompleted waits until the victim's program has had its Sends completed, and well.
func (x *attackEnv) awaitCompleted(n int) error {
	var did outgoingStats
	for end := time.Now().Add(patience); did.Good < n && did.Failed == 0; time.Sleep(time.Millisecond) {
		if err := x.victim.callAgent("completed", nil, &did); err != nil {
			return err
		}
		if time.Now().After(end) {
			return errors.New("the victim's requests do not complete")
		}
	}
	if did.Failed > 0 {
		return fmt.Errorf("%d of the victim's requests have failed", did.Failed)
	}
	return nil
}

// lateAttacks are about what comes when an association, or a session, is about to end.
func lateAttacks() []attack {
	bad, served := uint64(0), 0
	return []attack{
		// Where these answers were taken for forged, they were counted as such.
		{name: "answers to the victim's own probes of the path MTU that meet a shutdown", rfc: "9260 9.2, 8899 6.2.1.2", must: []string{"SHUTDOWN ACK"},
			may: []string{"INIT ACK", "COOKIE ACK", "HEARTBEAT", "SACK"},
			start: func(x *attackEnv) (func(int) error, error) {
				var s victimStats
				err := x.victim.callAgent("stats", nil, &s)
				bad, served = s.BadAnswers, s.Served
				return func(int) error {
					p := x.newPeer(x.victimPort(portSCTP), nil)
					p.silent = true
					if err := p.connectAssoc(); err != nil {
						return err
					}
					probe := p.asked             // the first may come with the COOKIE ACK
					for len(probe) != mtuProbe { // and no HEARTBEAT, whose information is longer
						c, err := p.waitForChunk(wire.ChunkHeartbeat)
						if err != nil {
							return fmt.Errorf("no probe: %w", err)
						}
						if h, err := wire.AsHeartbeat(c); err == nil {
							probe = slices.Clone(h.Info())
						}
					}
					if err := p.sendChunks(wire.AppendShutdown(nil, p.cum)); err != nil {
						return err
					}
					if _, err := p.waitForChunk(wire.ChunkShutdownAck); err != nil {
						return err
					}
					if err := p.sendChunks(wire.AppendHeartbeatAck(nil, probe)); err != nil {
						return err
					}
					defer x.dropPeer(p)
					return p.sendChunks(wire.AppendShutdownComplete(nil, false))
				}, err
			},
			finish: func(x *attackEnv) error {
				var s victimStats
				for end := time.Now().Add(leave); time.Now().Before(end); time.Sleep(time.Millisecond) {
					if err := x.victim.callAgent("stats", nil, &s); err != nil {
						return err
					}
					if s.Served <= served { // it counts those of associations that have ended
						break
					}
				}
				if n := s.BadAnswers - bad; n > 0 {
					return fmt.Errorf("%d answers to probes are counted as forged", n)
				}
				return nil
			}},
	}
}

// mtuProbe is how many octets the Heartbeat Information of a probe of the path MTU has.
const mtuProbe = 16

// malformedBehindTerminate opens a session and breaks it, and sends a malformed Initiate behind its
// own Terminate, before it acknowledges the victim's. Where that Initiate was swallowed no second
// Terminate came, and the wait for it ended the attack.
func malformedBehindTerminate(_ *attackEnv, p *peer, i int) error {
	s := &session{peer: p, stream: uint16(i % 1000), stags: make(map[string]rdma.STag)}
	if err := s.openSession(); err != nil {
		return err
	}
	p.silent = true
	defer func() { p.silent = false }()
	if err := s.sendDDP(s.stream, 4711, forge.Numbered(s.ssn, nil)); err != nil {
		return err
	}
	if err := s.awaitTerminate(); err != nil {
		return err
	}
	if err := s.sendDDP(s.stream, ddpadapt.PPIDControl, forge.Control(s.ssn+1, forge.Terminate, nil)); err != nil {
		return err
	}
	if err := s.sendDDP(s.stream, ddpadapt.PPIDControl,
		forge.Control(0, forge.Initiate, make([]byte, llp.MaxPrivateData+1))); err != nil {
		return err
	}
	p.silent = false
	if err := p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: p.rwnd})); err != nil {
		return err
	}
	return s.awaitTerminate()
}
