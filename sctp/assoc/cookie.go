package assoc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Cookie is what a state cookie carries (section 5.1.3). It is enough to create the association
// when the cookie comes back, so an INIT leaves nothing behind.
type Cookie struct {
	Created rawio.Time
	Life    time.Duration

	LocalPort, PeerPort uint16
	LocalTag, PeerTag   uint32
	LocalTie, PeerTie   uint32 // tie-tags of section 5.2, 0 without an existing association
	LocalTSN, PeerTSN   wire.TSN
	PeerRwnd            uint32
	OutStreams          uint16 // already limited by the peer's MIS
	InStreams           uint16 // already limited by the peer's OS

	PeerAdaptation uint32
	HasAdaptation  bool
	ECN            bool // both sides are ECN-capable
	Extensions     Extensions

	// Local is the address the INIT came to, Addrs[:NumAddrs] the peer's, the source of the INIT
	// first.
	Local    netip.Addr
	Addrs    [MaxPaths]netip.Addr
	NumAddrs int

	localOffer, peerOffer keyOffer // of both sides, under protection
}

// Expired says whether the cookie's life has ended at now, and Staleness by how much.
func (c *Cookie) Expired(now rawio.Time) bool { return now.Sub(c.Created) > c.Life }

// Staleness returns the value of a Stale Cookie cause: microseconds since expiry, rounded up.
func (c *Cookie) Staleness(now rawio.Time) uint32 {
	over := now.Sub(c.Created.Add(c.Life))
	us := (over + time.Microsecond - 1) / time.Microsecond
	return uint32(min(max(us, 0), 1<<32-1))
}

// hasAddr says whether the peer announced addr, or sent its INIT from there.
func (c *Cookie) hasAddr(addr netip.Addr) bool {
	for _, a := range c.Addrs[:c.NumAddrs] {
		if a == addr {
			return true
		}
	}
	return false
}

// addAddr records an address of the peer if there is space for it.
func (c *Cookie) addAddr(addr netip.Addr) {
	if c.NumAddrs < MaxPaths && !c.hasAddr(addr) {
		c.Addrs[c.NumAddrs] = addr
		c.NumAddrs++
	}
}

// IsProtected says whether both sides have agreed on protection.
func (c *Cookie) IsProtected() bool { return c.localOffer.isThere() }

const (
	cookieFixedLen = 76 // octets before the peer's addresses
	maxCookieLen   = cookieFixedLen + 16*MaxPaths + ownKeyOfferLen + maxKeyOffer + cookieMACLen
	cookieMACLen   = sha256.Size
	// Flags of the cookie.
	cookieFlagAdaptation = 1
	cookieFlagECN        = 2
	// keyLifetime is how long one secret key signs. A cookie is accepted for one more keyLifetime
	// at most, so it also bounds Config.CookieLife.
	keyLifetime = time.Hour
)

// Jar signs state cookies with HMAC-SHA256 and opens those that come back. Its secret key changes
// every hour, and the previous one is accepted until the next change. A Jar is safe for concurrent
// use if its source of randomness is.
type Jar struct {
	rand io.Reader
	keys atomic.Pointer[keyPair]
}

type keyPair struct {
	madeAt    rawio.Time
	cur, prev secret
}

// secret signs cookies. age is what it adds to the time at which one was made. It hides from the
// peer how long this host has been up.
type secret struct {
	key        [sha256.Size]byte
	timeOffset uint64
}

func newSecret(key [sha256.Size]byte) secret {
	sum := sha256.Sum256(append([]byte("age"), key[:]...))
	return secret{key, binary.BigEndian.Uint64(sum[:])}
}

// findSigner returns the key that has signed a body, nil if neither has.
func (k *keyPair) findSigner(body, sum []byte) *secret {
	switch {
	case k.cur.verifiesMAC(body, sum):
		return &k.cur
	case k.prev.verifiesMAC(body, sum):
		return &k.prev
	}
	return nil
}

func (s *secret) newMAC(body []byte) hash.Hash {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(body)
	return mac
}

func (s *secret) verifiesMAC(body, sum []byte) bool {
	var have [cookieMACLen]byte
	return hmac.Equal(s.newMAC(body).Sum(have[:0]), sum)
}

// NewJar returns a Jar that draws its keys from rand, the first when it is first used.
func NewJar(rand io.Reader) *Jar { return &Jar{rand: rand} }

// currentKeys returns the keys for now, making or changing them when they are due. It returns nil
// if there is no randomness to make the first ones.
func (j *Jar) currentKeys(now rawio.Time) *keyPair {
	k := j.keys.Load()
	if k != nil && now.Sub(k.madeAt) < keyLifetime {
		return k
	}
	var fresh [2 * sha256.Size]byte
	if _, err := io.ReadFull(j.rand, fresh[:]); err != nil {
		return k // better an old key than none
	}
	next := &keyPair{madeAt: now, cur: newSecret([sha256.Size]byte(fresh[:])),
		prev: newSecret([sha256.Size]byte(fresh[sha256.Size:]))}
	if k != nil && now.Sub(k.madeAt) < 2*keyLifetime {
		next.prev = k.cur // else nobody signed for a whole key life: no cookie is left
	}
	j.keys.CompareAndSwap(k, next)
	return j.keys.Load() // perhaps somebody else's
}

// Seal appends the signed cookie to b. It fails only when there is no randomness for a key.
func (j *Jar) Seal(now rawio.Time, b []byte, c *Cookie) ([]byte, bool) {
	k := j.currentKeys(now)
	if k == nil {
		return b, false
	}
	start := len(b)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Created)+k.cur.timeOffset)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Life))
	b = binary.BigEndian.AppendUint16(b, c.LocalPort)
	b = binary.BigEndian.AppendUint16(b, c.PeerPort)
	for _, v := range [...]uint32{c.LocalTag, c.PeerTag, c.LocalTie, c.PeerTie,
		uint32(c.LocalTSN), uint32(c.PeerTSN), c.PeerRwnd} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint16(b, c.OutStreams)
	b = binary.BigEndian.AppendUint16(b, c.InStreams)
	b = binary.BigEndian.AppendUint32(b, c.PeerAdaptation)
	var flags byte
	if c.HasAdaptation {
		flags |= cookieFlagAdaptation
	}
	if c.ECN {
		flags |= cookieFlagECN
	}
	b = append(b, flags, byte(c.NumAddrs), byte(c.Extensions), c.peerOffer.length)
	b = appendAddr(b, c.Local)
	for _, a := range c.Addrs[:c.NumAddrs] {
		b = appendAddr(b, a)
	}
	b = append(append(b, c.localOffer.param()...), c.peerOffer.param()...)
	return k.cur.newMAC(b[start:]).Sum(b), true
}

// Open returns the cookie in b if this Jar has signed it. It does not look at its age: see Expired.
func (j *Jar) Open(now rawio.Time, b []byte, c *Cookie) bool {
	if len(b) < cookieFixedLen+cookieMACLen || int(b[57]) > MaxPaths || int(b[59]) > maxKeyOffer ||
		len(b) != cookieFixedLen+16*int(b[57])+keyOffersLen(b[59])+cookieMACLen {
		return false // at once: a MAC over whatever length takes its time
	}
	body, sum := b[:len(b)-cookieMACLen], b[len(b)-cookieMACLen:]
	k := j.currentKeys(now)
	if k == nil {
		return false
	}
	signer := k.findSigner(body, sum)
	if signer == nil {
		return false
	}
	be := binary.BigEndian
	u32 := func(at int) uint32 { return be.Uint32(body[at:]) }
	*c = Cookie{
		Created: rawio.Time(be.Uint64(body) - signer.timeOffset), Life: time.Duration(be.Uint64(body[8:])),
		LocalPort: be.Uint16(body[16:]), PeerPort: be.Uint16(body[18:]),
		LocalTag: u32(20), PeerTag: u32(24), LocalTie: u32(28), PeerTie: u32(32),
		LocalTSN: wire.TSN(u32(36)), PeerTSN: wire.TSN(u32(40)), PeerRwnd: u32(44),
		OutStreams: be.Uint16(body[48:]), InStreams: be.Uint16(body[50:]),
		PeerAdaptation: u32(52), HasAdaptation: body[56]&cookieFlagAdaptation != 0, ECN: body[56]&cookieFlagECN != 0,
		Extensions: Extensions(body[58]),
		Local:      readAddr(body[60:]), NumAddrs: int(body[57]),
	}
	for i := range c.NumAddrs {
		c.Addrs[i] = readAddr(body[cookieFixedLen+16*i:])
	}
	if offers := body[cookieFixedLen+16*c.NumAddrs:]; len(offers) > 0 {
		c.localOffer.length = uint8(copy(c.localOffer.octets[:], offers[:ownKeyOfferLen]))
		c.peerOffer.length = uint8(copy(c.peerOffer.octets[:], offers[ownKeyOfferLen:]))
	}
	return true
}

// keyOffersLen returns the octets of both parameters in a cookie, for that of the peer.
func keyOffersLen(peer byte) int {
	if peer == 0 {
		return 0
	}
	return ownKeyOfferLen + int(peer)
}

// appendAddr writes an address as 16 octets; an IPv4 one in its mapped form.
func appendAddr(b []byte, a netip.Addr) []byte {
	var v [16]byte
	if a.IsValid() {
		v = a.As16()
	}
	return append(b, v[:]...)
}

func readAddr(b []byte) netip.Addr {
	v := [16]byte(b)
	if v == ([16]byte{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom16(v).Unmap()
}
