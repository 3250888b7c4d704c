package assoc

import (
	"errors"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxKeyOctets bounds the octets of messages of key management that are not complete yet. The peer
// may have shown no certificate.
const maxKeyOctets = 128 << 10

var (
	errClearData  = errors.New("DATA in the clear that is not key management")
	errKeyMessage = errors.New("messages of key management are ordered ones of stream 0, of up to 131072 octets")
	errClearRest  = errors.New("DATA in the clear follows the end of the handshake")
	errKeyChunks  = errors.New("a fragment of key management without its message")
)

// keyMessages puts the messages of key management together. They lie outside the receive window, so
// that a program that does not read keeps no keys from being replaced.
type keyMessages struct {
	chunks  []keyChunk // in the order of their TSNs; the cumulative TSN has not passed them
	octets  int        // of chunks and partial
	partial []byte     // the beginning of a message
	lastTSN wire.TSN   // of partial
	isBegun bool       // there is one
}

// keyChunk is a DATA chunk of a message of key management.
type keyChunk struct {
	tsn   wire.TSN
	flags uint8
	data  []byte
	clear bool // it came in the clear
}

// isEmpty reports whether nothing waits.
func (k *keyMessages) isEmpty() bool { return len(k.chunks) == 0 && !k.isBegun }

// hasClear reports whether something waits that came in the clear.
func (k *keyMessages) hasClear() bool {
	return k.isBegun || slices.ContainsFunc(k.chunks, func(c keyChunk) bool { return c.clear })
}

// add keeps a chunk, and says whether there was room.
func (k *keyMessages) add(d wire.Data, clear bool) bool {
	if k.octets+len(d.Payload()) > maxKeyOctets {
		return false
	}
	k.octets += len(d.Payload())
	at, _ := slices.BinarySearchFunc(k.chunks, d.TSN(),
		func(c keyChunk, t wire.TSN) int { return int(int32(c.tsn - t)) })
	k.chunks = slices.Insert(k.chunks, at, keyChunk{d.TSN(), d.Flags(), slices.Clone(d.Payload()), clear})
	return true
}

// next returns the next message that is complete, nil for none. All before it is there, as the
// cumulative TSN has passed it.
func (k *keyMessages) next(cum wire.TSN) (msg []byte, err error) {
	for len(k.chunks) > 0 && k.chunks[0].tsn.LessEq(cum) {
		c := k.chunks[0]
		k.chunks[0] = keyChunk{}
		k.chunks = k.chunks[1:]
		isFirst := c.flags&wire.FlagB != 0
		if isFirst == k.isBegun || k.isBegun && c.tsn != k.lastTSN+1 {
			return nil, errKeyChunks
		}
		k.isBegun, k.lastTSN, k.partial = true, c.tsn, append(k.partial, c.data...)
		if c.flags&wire.FlagE != 0 {
			msg, k.partial, k.isBegun = k.partial, nil, false
			k.octets -= len(msg)
			return msg, nil
		}
	}
	if len(k.chunks) == 0 {
		k.chunks = nil
	}
	return nil, nil
}

// handleKeyData takes DATA of key management, or any that came in the clear. It says whether to go
// on with the packet.
func (a *Assoc) handleKeyData(in *inbound, s *protection, d wire.Data) bool {
	switch {
	case d.PPID() != keymgmt.PPID:
		a.abortForViolation(errClearData)
		return false
	case d.Stream() != keymgmt.Stream || d.U():
		a.abortForViolation(errKeyMessage)
		return false
	}
	a.beginData(in)
	if how := a.recv.AdmitOutside(d); how != rx.New {
		a.countRefusedData(how)
		return true
	}
	in.noteMark(d.TSN())
	if !s.messages.add(d, !s.isOpen) {
		if d.TSN() == a.recv.CumTSN()+1 { // what is missing will not make room
			a.abortForViolation(errKeyMessage)
			return false
		}
		a.recv.LeaveUnacked()
		return true
	}
	if err := a.recv.TakeOutside(d); err != nil {
		a.abortForViolation(err)
		return false
	}
	return true
}

// keyToken is that of own messages. Those of a program are others.
const keyToken = 1<<64 - 1

// sendKeyMessage queues a message of key management.
func (a *Assoc) sendKeyMessage(b []byte) {
	a.sender().EnqueueOwn(&tx.Message{Stream: keymgmt.Stream, PPID: keymgmt.PPID, Token: keyToken, NoBundle: true,
		Body: [2][]byte{b}})
}

// keySink hears of messages of the queue: those of key management are its own.
type keySink struct{ a *Assoc }

// Acked passes on what is the program's.
func (k keySink) Acked(now rawio.Time, stream wire.StreamID, token uint64) {
	a := k.a
	if s := a.protection(); token == keyToken && s != nil {
		s.acked++
		if s.manager != nil {
			s.manager.MessagesAcked(now, s.acked)
		}
		return
	}
	if a.hooks.source != nil {
		a.hooks.source.Acked(now, stream, token)
	}
}

// connectUpper tells a sending half of the layer above. Under protection that waits until there are
// keys.
func (a *Assoc) connectUpper(t *tx.Sender) {
	switch s := a.protection(); {
	case s == nil:
		t.SetUpper(a.hooks.source, a.hooks.source)
	case s.isUp:
		t.SetUpper(a.hooks.source, keySink{a})
	default:
		t.SetUpper(nil, keySink{a})
	}
}
