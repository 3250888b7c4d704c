package sctp

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp/wire"
)

// zeroChecksumMethods returns the methods that an INIT or INIT ACK announces.
func zeroChecksumMethods(t *testing.T, p []byte) (list []wire.ErrorDetectionMethod) {
	cs := wire.Packet(p).Chunks()
	for ch, ok := cs.Next(); ok; ch, ok = cs.Next() {
		init, err := wire.AsInit(ch)
		if err != nil {
			continue
		}
		ps := init.Params()
		for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
			if prm.Type() == wire.ParamZeroChecksum {
				list = append(list, must.Get(prm.ZeroChecksumMethod())(t))
			}
		}
	}
	return list
}

// Where both ends' links detect errors by the same method, packets go without a checksum once that
// is agreed on. Those that set the association up have one, and so do all where it is not agreed
// on.
func TestZeroChecksum(t *testing.T) {
	// req 9653-4-3, 9653-4-4, 9653-5.1-1
	// req 9653-5.2-1, 9653-5.2-2, 9653-5.2-3, 9653-5.2-6, 9653-5.2-7
	// req 9653-5.3-1, 9653-6-1, 9653-7-1
	const dtls, other = rawio.DTLSErrorDetection, rawio.ErrorDetection(7)
	for _, methods := range [][2]rawio.ErrorDetection{{dtls, dtls}, {dtls, 0}, {0, dtls}, {dtls, other}, {0, 0}} {
		for _, opens := range []string{"one", "both"} {
			t.Run(fmt.Sprint(methods, opens), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					agreed := methods == [2]rawio.ErrorDetection{dtls, dtls}
					c := newCarried(t, &netconn.Config{ErrorDetection: methods[0]}, &netconn.Config{ErrorDetection: methods[1]})
					var zeros [2]int
					for end := range c.conns {
						c.losePackets(end, func(p []byte) bool {
							types := chunkTypes(p)
							setsUp := slices.ContainsFunc(types, func(x wire.ChunkType) bool {
								return x == wire.ChunkInit || x == wire.ChunkInitAck || x == wire.ChunkCookieEcho
							})
							if pkt := wire.Packet(p); pkt.Checksum() == 0 {
								zeros[end]++
								check.That(t, agreed && !setsUp, "%v without a checksum", types)
							} else {
								check.That(t, pkt.ChecksumOK(), "%v with a wrong checksum", types)
							}
							want := []wire.ErrorDetectionMethod{wire.ErrorDetectionMethod(methods[end])}
							if methods[end] == 0 || !slices.Contains(types, wire.ChunkInit) && !slices.Contains(types, wire.ChunkInitAck) {
								want = nil
							}
							check.Slice(t, "methods of "+fmt.Sprint(types), zeroChecksumMethods(t, p), want)
							param := wire.AppendZeroChecksumAcceptable(nil, wire.ErrorDetectionMethod(dtls))
							check.That(t, want != nil || !bytes.Contains(p, param), "%v with the parameter", types)
							return false
						})
					}
					var conns [2]*Conn
					if opens == "both" {
						conns = c.openBoth(peerToPeer)
					} else {
						l := must.Get(c.ends[1].Listen(5000, peerToPeer))(t)
						conns[0] = must.Get(c.openEnd(0, peerToPeer))(t)
						conns[1] = must.Get(l.Accept(deadlineCtx(t)))(t)
					}
					for i := range conns {
						check.Equal(t, "agreed on", conns[i].Extensions().Has(ZeroChecksum), agreed)
						must.Do(conns[i].WriteMsg(patternOf(i, 3000), SendInfo{}))(t)
						buf := make([]byte, 4000)
						must.OK(t, conns[1-i].SetReadDeadline(time.Now().Add(time.Minute)))
						n, _, err := conns[1-i].ReadMsg(buf)
						must.That(t, err == nil && bytes.Equal(buf[:n], patternOf(i, 3000)), "%d octets, %v", n, err)
					}
					must.OK(t, conns[0].Close())
					<-conns[1].Done()
					synctest.Wait()
					time.Sleep(time.Second)
					for i := range conns {
						check.That(t, agreed == (zeros[i] > 3), "end %d has sent %d packets without a checksum", i, zeros[i])
						s := c.ends[1-i].Stats().Endpoint
						check.Equal(t, "packets taken without a checksum", s.ZeroChecksum, uint64(zeros[i]))
						check.Equal(t, "packets with a wrong checksum", s.BadChecksum, 0)
					}
				})
			})
		}
	}
}

// A packet without a checksum is taken only where it was announced that it is, and for an
// association. One with a wrong checksum never is, and one with a right one always.
func TestWhichChecksumsAreTaken(t *testing.T) {
	// req 9653-5.2-5
	// req 9653-5.3-1, 9653-5.3-2
	for _, row := range []struct {
		method   rawio.ErrorDetection
		checksum string // right, zero, wrong
		known    bool   // there is an association
		taken    bool
	}{
		{rawio.DTLSErrorDetection, "right", true, true}, {rawio.DTLSErrorDetection, "right", false, true},
		{rawio.DTLSErrorDetection, "zero", true, true}, {rawio.DTLSErrorDetection, "zero", false, false},
		{rawio.DTLSErrorDetection, "wrong", true, false}, {rawio.DTLSErrorDetection, "wrong", false, false},
		{rawio.NoErrorDetection, "right", true, true}, {rawio.NoErrorDetection, "right", false, true},
		{rawio.NoErrorDetection, "zero", true, false}, {rawio.NoErrorDetection, "zero", false, false},
		{rawio.NoErrorDetection, "wrong", true, false},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCarried(t, &netconn.Config{ErrorDetection: row.method})
				var answers atomic.Int64
				c.losePackets(1, func(p []byte) bool {
					if slices.Contains(chunkTypes(p), wire.ChunkHeartbeatAck) || slices.Contains(chunkTypes(p), wire.ChunkAbort) {
						answers.Add(1)
						check.That(t, row.known || wire.Packet(p).ChecksumOK(), "an answer to nobody without a checksum")
					}
					return false
				})
				port, tag := uint16(4999), uint32(1)
				if row.known {
					conns := c.openBoth(peerToPeer)
					conns[1].lock()
					port, tag = 5000, conns[1].core.LocalTag()
					conns[1].unlock()
				}
				synctest.Wait()
				pkt := wire.AppendHeartbeat(wire.AppendHeader(nil, port, port, tag), []byte("x"))
				switch row.checksum {
				case "right":
					wire.PutPacketChecksum([][]byte{pkt})
				case "wrong":
					wire.PutPacketChecksum([][]byte{pkt})
					pkt[8]++
				}
				before := c.ends[1].Stats().Endpoint.BadChecksum
				c.conns[1].Inject(pkt)
				synctest.Wait()
				check.Equal(t, "answers", answers.Load() > 0, row.taken)
				check.Equal(t, "wrong checksums", c.ends[1].Stats().Endpoint.BadChecksum-before == 0, row.taken)
			})
		})
	}
}
