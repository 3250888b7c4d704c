//go:build linux

package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// errSilence is that the victim did not answer in time.
var errSilence = errors.New("the victim did not answer")

// patience is how long the attacker waits for an answer. What sets an association up it sends anew
// each second, as any peer does.
const patience = 10 * time.Second

// peer is an association with the victim, made by hand. It does what it is told and nothing else.
type peer struct {
	w        *wireTap
	src, dst netip.AddrPort
	inits    []byte // parameters of the INIT
	rwnd     uint32

	tag, own uint32 // the victim's Verification Tag, and the attacker's
	next     wire.TSN
	cum      wire.TSN // the victim's, all received up to here
	cookie   []byte
	streams  uint16 // that it asks for; 0: 1024
	silent   bool   // DATA is not acknowledged, a HEARTBEAT not answered
	asked    []byte // the information of the last HEARTBEAT that was not
	in       chan []byte
	from     uint16 // port that the last packet came from

	messages map[uint16][]receivedChunk // DATA received and not taken yet, by stream
}

// receivedChunk is one DATA chunk of the victim.
type receivedChunk struct {
	ppid uint32
	data []byte
}

// newPeer returns an association that is yet to be set up, from an address and port of the
// attacker.
func (w *wireTap) newPeer(src, dst netip.AddrPort) *peer {
	p := &peer{
		w: w, src: src, dst: dst, rwnd: 1 << 20, own: w.rnd.Uint32() | 1, next: wire.TSN(w.rnd.Uint32()),
		in: make(chan []byte, 256), messages: make(map[uint16][]receivedChunk),
	}
	w.mu.Lock()
	w.peers[src] = p
	w.mu.Unlock()
	return p
}

// stopReceiving takes no more packets.
func (p *peer) stopReceiving() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.peers[p.src] == p {
		delete(p.w.peers, p.src)
	}
}

// handlePacket leaves a packet to whoever waits for it; one too many is lost.
func (p *peer) handlePacket(_ netip.Addr, sctp []byte) {
	select {
	case p.in <- sctp:
	default:
	}
}

// sendChunks sends chunks with the victim's tag.
func (p *peer) sendChunks(chunks []byte) error { return p.w.sendSCTP(p.src, p.dst, p.tag, chunks) }

// init is the INIT chunk.
func (p *peer) init() []byte {
	return initStreams(p.own, p.next, p.rwnd, cmp.Or(p.streams, 1024), p.inits)
}

func initChunk(tag uint32, tsn wire.TSN, rwnd uint32, params []byte) []byte {
	return initStreams(tag, tsn, rwnd, 1024, params)
}

func initStreams(tag uint32, tsn wire.TSN, rwnd uint32, streams uint16, params []byte) []byte {
	b := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: tag, ARwnd: rwnd, OutStreams: streams,
		InStreams: streams, TSN: tsn})
	return wire.CloseChunk(append(b, params...), 0)
}

// requestCookie sends the INIT and keeps the cookie that comes back.
func (p *peer) requestCookie() error {
	c, err := p.sendUntil(wire.ChunkInitAck, func() error { return p.w.sendSCTP(p.src, p.dst, 0, p.init()) })
	if err != nil {
		return err
	}
	ack, err := wire.AsInit(c)
	if err != nil {
		return err
	}
	p.tag, p.cum = ack.Tag(), ack.TSN()-1
	ps := ack.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		if prm.Type() == wire.ParamStateCookie {
			p.cookie = append([]byte(nil), prm.Value()...)
			return nil
		}
	}
	return errors.New("an INIT ACK without a cookie")
}

// connectAssoc sets the association up.
func (p *peer) connectAssoc() error {
	if err := p.requestCookie(); err != nil {
		return fmt.Errorf("INIT: %w", err)
	}
	if _, err := p.sendUntil(wire.ChunkCookieAck,
		func() error { return p.sendChunks(wire.AppendCookieEcho(nil, p.cookie)) }); err != nil {
		return fmt.Errorf("COOKIE ECHO: %w", err)
	}
	return nil
}

// abortAssoc ends the association, so that the victim is rid of it.
func (p *peer) abortAssoc() {
	_ = p.sendChunks(wire.AppendAbort(nil, false)) // it may be gone already
	p.stopReceiving()
}

// waitForChunk returns the next chunk of a type; an ABORT ends the wait. DATA on the way is kept.
func (p *peer) waitForChunk(t wire.ChunkType) (wire.Chunk, error) { return p.waitFor(t, patience) }

// sendUntil sends, again and again, until a chunk of a type has come.
func (p *peer) sendUntil(t wire.ChunkType, send func() error) (c wire.Chunk, err error) {
	for end := time.Now().Add(patience); ; {
		if err := send(); err != nil {
			return nil, err
		}
		if c, err = p.waitFor(t, time.Second); err != errSilence || time.Now().After(end) {
			return c, err
		}
	}
}

func (p *peer) waitFor(t wire.ChunkType, d time.Duration) (wire.Chunk, error) {
	timeout := time.After(d)
	for {
		select {
		case b := <-p.in:
			if c, err := p.findChunk(b, t); c != nil || err != nil {
				return c, err
			}
		case <-timeout:
			return nil, errSilence
		}
	}
}

// errAborted is that the victim has ended the association.
var errAborted = errors.New("the victim aborted the association")

// findChunk takes a packet in and returns the chunk of type t in it, if there is one.
func (p *peer) findChunk(b []byte, t wire.ChunkType) (found wire.Chunk, err error) {
	if tag := wire.Packet(b).VTag(); tag != p.own && tag != p.tag {
		return nil, nil // of an earlier association between these ports
	}
	p.from = wire.Packet(b).SrcPort()
	cs := wire.Packet(b).Chunks()
	data := false
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if c.Type() == wire.ChunkData {
			data = p.takeInOrder(c) || data
		}
		switch {
		case c.Type() == t:
			found = c
		case c.Type() == wire.ChunkAbort:
			return nil, errAborted
		case c.Type() == wire.ChunkHeartbeat:
			h, err := wire.AsHeartbeat(c)
			if err != nil {
				break
			}
			if p.silent {
				p.asked = slices.Clone(h.Info())
			} else {
				_ = p.sendChunks(wire.AppendHeartbeatAck(nil, h.Info())) // the victim asks again
			}
		}
	}
	if data && !p.silent {
		return found, p.sendChunks(wire.AppendSack(nil, wire.SackFields{CumTSN: p.cum, ARwnd: p.rwnd}))
	}
	return found, nil
}

// takeInOrder keeps a DATA chunk that is next in turn. The victim sends the others again.
func (p *peer) takeInOrder(c wire.Chunk) bool {
	d, err := wire.AsData(c)
	if err != nil || d.TSN() != p.cum+1 {
		return err == nil
	}
	p.cum++
	id := uint16(d.Stream())
	p.messages[id] = append(p.messages[id], receivedChunk{d.PPID(), append([]byte(nil), d.Payload()...)})
	return true
}

// nextData returns the next DATA chunk of a stream.
func (p *peer) nextData(stream uint16) (receivedChunk, error) {
	timeout := time.After(patience)
	for len(p.messages[stream]) == 0 {
		select {
		case b := <-p.in:
			if _, err := p.findChunk(b, wire.ChunkData); err != nil {
				return receivedChunk{}, err
			}
		case <-timeout:
			return receivedChunk{}, errSilence
		}
	}
	m := p.messages[stream][0]
	p.messages[stream] = p.messages[stream][1:]
	return m, nil
}

// drainPackets takes in what has come, without waiting.
func (p *peer) drainPackets() {
	for {
		select {
		case b := <-p.in:
			_, _ = p.findChunk(b, wire.ChunkData) // an ABORT shows in the record
		default:
			return
		}
	}
}

// appendData appends a DATA chunk with the next TSN.
func (p *peer) appendData(b []byte, flags uint8, stream, ssn uint16, ppid uint32, payload []byte) []byte {
	b = dataChunk(b, p.next, flags, stream, ssn, ppid, payload)
	p.next++
	return b
}

func dataChunk(b []byte, tsn wire.TSN, flags uint8, stream, ssn uint16, ppid uint32, payload []byte) []byte {
	return forge.AppendData(b, wire.DataFields{Flags: flags, TSN: tsn, Stream: wire.StreamID(stream),
		SSN: wire.SSN(ssn), PPID: ppid}, payload)
}

const whole = wire.FlagB | wire.FlagE

// sendMessage sends one whole ordered message on stream 0, its SSN 0.
func (p *peer) sendMessage(s string) error {
	return p.sendChunks(p.appendData(nil, whole, 0, 0, 0, []byte(s)))
}

// sendDDP sends one message of DDP: a segment, or a session control message.
func (p *peer) sendDDP(stream uint16, ppid uint32, b []byte) error {
	return p.sendChunks(p.appendData(nil, whole|wire.FlagU, stream, 0, ppid, b))
}

// adaptationParam is the parameter of an INIT for DDP.
func adaptationParam() []byte { return wire.AppendAdaptationIndication(nil, ddpadapt.AdaptationDDP) }

// randomTag is a Verification Tag out of the air.
func (w *wireTap) randomTag() uint32 { return w.rnd.Uint32() | 1 }

// uint32Octets is 4 octets.
func uint32Octets(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
