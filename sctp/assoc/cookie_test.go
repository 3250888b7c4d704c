package assoc_test

import (
	"bytes"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func sampleCookie(now rawio.Time) assoc.Cookie {
	c := assoc.Cookie{Created: now, Life: time.Minute, LocalPort: 1, PeerPort: 2, LocalTag: 3, PeerTag: 4,
		LocalTie: 5, PeerTie: 6,
		LocalTSN: 7, PeerTSN: 8, PeerRwnd: 9, OutStreams: 10, InStreams: 11, PeerAdaptation: 12, HasAdaptation: true,
		Local: netip.MustParseAddr("10.0.0.1"), NumAddrs: 2}
	c.Addrs[0], c.Addrs[1] = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8::1")
	return c
}

func TestCookieComesBackAsItWas(t *testing.T) {
	now := rawio.Time(time.Hour)
	jar := assoc.NewJar(crand.Reader)
	for i, local := range []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1"), {}} {
		want := sampleCookie(now)
		for want.NumAddrs = i; i == 2 && want.NumAddrs < assoc.MaxPaths; want.NumAddrs++ {
			want.Addrs[want.NumAddrs] = netip.AddrFrom4([4]byte{10, 0, 1, byte(want.NumAddrs)})
		}
		clear(want.Addrs[want.NumAddrs:])
		want.Local = local
		b, ok := jar.Seal(now, nil, &want)
		must.That(t, ok, "not sealed")
		var got assoc.Cookie
		// req 9260-3.3.3.1.1-1
		check.That(t, jar.Open(now.Add(time.Second), b, &got) && got == want, "got %+v\nwant %+v", got, want)
	}
}

func TestCookieIsAuthenticated(t *testing.T) {
	now := rawio.Time(time.Hour)
	jar := assoc.NewJar(crand.Reader)
	c := sampleCookie(now)
	b, _ := jar.Seal(now, nil, &c)
	var out assoc.Cookie
	for i := range b { // req 9260-5.1.5-2, 9260-5.1.3-1
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x10
		must.That(t, !jar.Open(now, bad, &out), "octet %d may be changed", i)
	}
	for n := range b {
		must.That(t, !jar.Open(now, b[:n], &out), "accepted cut to %d octets", n)
	}
	check.That(t, !assoc.NewJar(crand.Reader).Open(now, b, &out), "another key opens it")
	// What cannot be a cookie by its length is not hashed, which would allocate.
	long := append(b[:len(b):len(b)], make([]byte, 60_000)...)
	n := testing.AllocsPerRun(10, func() { jar.Open(now, long, &out) })
	check.That(t, n <= 0, "%v allocations for a cookie of %d octets", n, len(long))
}

func TestCookieKeyChangesEveryHour(t *testing.T) {
	start := rawio.Time(time.Hour)
	for _, row := range []struct {
		name string
		used []time.Duration // when the jar is used in between
		at   time.Duration
		want bool
	}{
		{"within the hour", nil, 59 * time.Minute, true},
		// req 9260-5.1.3-4
		{"the previous key is still accepted", []time.Duration{61 * time.Minute}, 62 * time.Minute, true},
		// req 9260-5.1.5-1
		{"after two changes it is gone", []time.Duration{61 * time.Minute, 122 * time.Minute}, 122 * time.Minute,
			false},
		{"after two hours of silence it is gone", nil, 121 * time.Minute, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			jar := assoc.NewJar(crand.Reader)
			c := sampleCookie(start)
			b, _ := jar.Seal(start, nil, &c)
			for _, d := range row.used {
				_, ok := jar.Seal(start.Add(d), nil, &c)
				must.That(t, ok, "not sealed")
			}
			var out assoc.Cookie
			check.Equal(t, "opened", jar.Open(start.Add(row.at), b, &out), row.want)
		})
	}
}

type dry struct{}

func (dry) Read([]byte) (int, error) { return 0, errors.New("dry") }

func TestJarWithoutRandomnessSealsNothing(t *testing.T) {
	jar := assoc.NewJar(dry{})
	c := sampleCookie(0)
	_, ok := jar.Seal(0, nil, &c)
	check.That(t, !ok, "sealed without a key")
	check.That(t, !jar.Open(0, make([]byte, 300), &c), "opened without a key")
}

// A cookie that comes with another port, another tag or from another host than it says is nobody's.
func TestCookieIsOfItsPacket(t *testing.T) {
	c := sampleCookie(0)
	from := netip.AddrPortFrom(c.Addrs[1], 0)
	for _, row := range []struct {
		name     string
		src, dst uint16
		tag      uint32
		from     netip.AddrPort
		want     bool
	}{
		{"as it says", 2, 1, 3, from, true},
		{"another own port", 2, 9, 3, from, false}, // req 9260-5.1.5-3
		{"another port of the peer", 9, 1, 3, from, false},
		{"another tag", 2, 1, 9, from, false},
		{"another host", 2, 1, 3, netip.MustParseAddrPort("10.0.0.9:0"), false},
	} {
		got := c
		check.That(t, got.Matches(&rawio.Packet{Data: sctptest.Packet(row.src, row.dst, row.tag),
			Remote: row.from}) == row.want,
			"%s: %v", row.name, !row.want)
	}
}

func TestConfigRanges(t *testing.T) {
	for _, row := range []struct {
		field string
		cfg   assoc.Config
	}{
		{"RecvBuffer", assoc.Config{RecvBuffer: 1499}},                 // req 9260-3.3.2-7
		{"SackDelay", assoc.Config{SackDelay: 501 * time.Millisecond}}, // req 9260-6.2-11
		{"RTOMin", assoc.Config{RTOMin: time.Minute + 1}},
		{"PotentiallyFailedMaxRetrans", assoc.Config{PotentiallyFailedMaxRetrans: -1}},
		{"Adaptation", assoc.Config{RequireAdaptation: true}},
		{"RecvBuffer", assoc.Config{RecvBuffer: 1 << 31}},
		{"SendBuffer", assoc.Config{SendBuffer: -1}},
		{"MaxMessage", assoc.Config{MaxMessage: -1}},
		{"RTOMin", assoc.Config{RTOMin: -1}},
		{"RTOInitial", assoc.Config{RTOInitial: -1}},
		{"RTOInitial", assoc.Config{RTOInitial: time.Minute + 1}},
		{"SackDelay", assoc.Config{SackDelay: -1}},
		{"LoneSackDelay", assoc.Config{LoneSackDelay: -1}},
		{"LoneSackDelay", assoc.Config{LoneSackDelay: 200*time.Millisecond + 1}},
		{"CookieLife", assoc.Config{CookieLife: -1}},
		{"CookieLife", assoc.Config{CookieLife: time.Hour + 1}},
		{"HBMaxBurst", assoc.Config{HBMaxBurst: -1}},
		{"AssocMaxRetrans", assoc.Config{AssocMaxRetrans: -1}},
		{"PathMaxRetrans", assoc.Config{PathMaxRetrans: -1}},
		{"MaxInitRetrans", assoc.Config{MaxInitRetrans: -1}},
		{"MaxInitRTO", assoc.Config{MaxInitRTO: -1}},
		{"PartialDelivery", assoc.Config{PartialDelivery: 1<<20 + 1}},
		{"AutoClose", assoc.Config{AutoClose: -1}},
		{"PartialDelivery", assoc.Config{PartialDelivery: -1}},
		{"MTU", assoc.Config{MTU: rawio.MinMTU - 1}},
		{"MaxSegment", assoc.Config{MaxSegment: 443}},
		{"DSCP", assoc.Config{DSCP: 64}},
		{"FlowLabel", assoc.Config{FlowLabel: 1 << 20}},
		{"", assoc.Config{RecvBuffer: 1500, SendBuffer: 1, RTOMin: 1, RTOInitial: 1, RTOMax: 1,
			SackDelay: 500 * time.Millisecond, LoneSackDelay: 500 * time.Millisecond,
			CookieLife: time.Hour, HBMaxBurst: 1, AssocMaxRetrans: 1, PathMaxRetrans: 1, MaxInitRetrans: 1,
			MTU:             rawio.MinMTU,
			PartialDelivery: 1500, MaxSegment: 444, DSCP: 63, FlowLabel: 1<<20 - 1}},
		// req 7829-5-1
		{"PrimarySwitchoverMaxRetrans", assoc.Config{PotentiallyFailedMaxRetrans: 2,
			PrimarySwitchoverMaxRetrans: ptrTo(1)}},
		{"", assoc.Config{PotentiallyFailedMaxRetrans: 2, PrimarySwitchoverMaxRetrans: ptrTo(2)}},
		// that state is off
		{"PrimarySwitchoverMaxRetrans", assoc.Config{PotentiallyFailedMaxRetrans: 9, PathMaxRetrans: 4,
			PrimarySwitchoverMaxRetrans: ptrTo(3)}},
		{"", assoc.Config{PotentiallyFailedMaxRetrans: 9, PathMaxRetrans: 4, PrimarySwitchoverMaxRetrans: ptrTo(4)}},
		{"", assoc.Config{RecvBuffer: 1<<31 - 1, RTOMin: time.Minute, RTOInitial: time.Minute, LoneSackDelay: 200 * time.Millisecond}},
	} {
		var ce *assoc.ConfigError
		_, err := row.cfg.Complete()
		check.That(t, errors.As(err, &ce) == (row.field != "") && (ce == nil || ce.Field == row.field), "%s: %v",
			row.field, err)
	}
	c, err := (*assoc.Config)(nil).Complete() // req 9260-16-1, 9260-16-2, 9260-16-3, 9260-16-4
	check.That(t, err == nil && c.RTOInitial == time.Second && c.RTOMin == time.Second && c.RTOMax == time.Minute &&
		c.MaxBurst == 4 &&
		c.CookieLife == time.Minute && c.SackDelay == 200*time.Millisecond && c.HeartbeatInterval == 30*time.Second &&
		c.HBMaxBurst == 1 &&
		c.SendBuffer == 0 && c.RecvBuffer == 0 && c.OutStreams == 0 && c.InStreams == 65535 &&
		c.AssocMaxRetrans == 10 && c.PathMaxRetrans == 5 && c.MaxInitRetrans == 8,
		"defaults %+v, %v", c, err)
}

func TestWhatTheCookieHolds(t *testing.T) {
	j := sctptest.NewCookieLab(t, &assoc.Config{CookieLife: 17 * time.Second})
	ack, c := j.Answer(sctptest.InitChunk(j.PeerTag, j.TSN))
	// req 9260-5.1.3-2
	check.That(t, c.Created == j.Now && c.Life == 17*time.Second && c.LocalPort == sctptest.PortB &&
		c.PeerPort == sctptest.PortA && c.LocalTag == ack.Tag() && c.PeerTag == j.PeerTag, "%+v", c)
	// req 9260-5.2.2-9: in CLOSED
	check.That(t, c.LocalTie == 0 && c.PeerTie == 0, "tie-tags %#x %#x with no association", c.LocalTie, c.PeerTie)
	// req 9260-3.3.11-4, 9260-12.4-5: header, INIT ACK and a cookie for one address.
	n := wire.CommonHeaderLen + len(ack)
	check.That(t, len(j.Cookie) <= 128 && n <= 180, "cookie of %d octets in a packet of %d", len(j.Cookie), n)
}

// A cookie does not tell how long the host has been up, neither in nanoseconds nor about.
func TestCookieHidesTheAgeOfTheHost(t *testing.T) {
	for _, age := range []time.Duration{0, time.Second, 1000 * time.Hour} {
		now := rawio.Time(age)
		jar := assoc.NewJar(rand.New(rand.NewSource(1)))
		c := sampleCookie(now)
		b, ok := jar.Seal(now, nil, &c)
		shown := time.Duration(int64(binary.BigEndian.Uint64(b)))
		check.That(t, ok && (shown-age).Abs() > 10_000*time.Hour, "a host that is up for %v shows %v", age, shown)
		var got assoc.Cookie
		check.That(t, jar.Open(now, b, &got) && got.Created == now, "made at %v, and opened as of %v", now, got.Created)
		check.That(t, jar.Open(now.Add(time.Hour), b, &got) && got.Created == now,
			"made at %v, and opened as of %v under the key before", now, got.Created)
	}
}

func TestCookieIsSignedByHMACSHA256(t *testing.T) {
	// req 9260-5.1.3-3
	key := bytes.Repeat([]byte("0123456789abcdef"), 2)
	jar := assoc.NewJar(io.MultiReader(bytes.NewReader(key), rand.New(rand.NewSource(1))))
	c := sampleCookie(0)
	b, _ := jar.Seal(0, nil, &c)
	mac := hmac.New(sha256.New, key)
	mac.Write(b[:len(b)-sha256.Size])
	check.That(t, hmac.Equal(mac.Sum(nil), b[len(b)-sha256.Size:]),
		"the cookie does not end with the HMAC-SHA-256 of the rest under the first 32 octets of randomness")
	check.That(t, !bytes.Contains(b, key[:16]), "the cookie shows its key") // req 9260-5.1.3-5
}

// Behind CVE-2026-53224 and CVE-2026-53246, Linux read beyond a cookie whose inner lengths were
// wrong. Ours has one count, and even a right signature does not make another length of it.
func TestCookieOfAnotherLayoutIsRefused(t *testing.T) {
	key := bytes.Repeat([]byte("0123456789abcdef"), 2)
	jar := assoc.NewJar(io.MultiReader(bytes.NewReader(key), rand.New(rand.NewSource(1))))
	c := sampleCookie(0)
	whole, _ := jar.Seal(0, nil, &c)
	body := whole[:len(whole)-sha256.Size]
	opens := func(body []byte) bool {
		mac := hmac.New(sha256.New, key)
		mac.Write(body)
		var got assoc.Cookie
		return jar.Open(0, mac.Sum(bytes.Clone(body)), &got)
	}
	must.That(t, opens(body), "the cookie as it was is refused")
	for n := range len(body) + 64 {
		check.That(t, n == len(body) || !opens(append(bytes.Clone(body), make([]byte, 64)...)[:n]),
			"a body of %d octets is taken; it has %d", n, len(body))
	}
	for n := range 256 {
		b := bytes.Clone(body)
		b[57] = byte(n)
		check.That(t, n == c.NumAddrs || !opens(b), "%d addresses are read of %d", n, c.NumAddrs)
		check.That(t, opens(append(b[:76], make([]byte, 16*n)...)) == (n <= assoc.MaxPaths),
			"a cookie with %d addresses", n)
	}
}

func TestCookieKeepsTheTagsOfALiveAssociationSecret(t *testing.T) {
	// req 9260-5.1.3-5: who sends an INIT for somebody else's association gets a cookie that has
	// its tie-tags, which are random, and not the tags that would let it send packets.
	j := sctptest.NewCookieLab(t, nil)
	_, first := j.Answer(sctptest.InitChunk(0xaabbccdd, 1))
	j.Accept(&first)
	j.SendInit(sctptest.InitChunk(0x01020304, 2))
	for name, tag := range map[string]uint32{"own": first.LocalTag, "peer's": first.PeerTag} {
		check.That(t, !bytes.Contains(j.Cookie, binary.BigEndian.AppendUint32(nil, tag)),
			"the cookie shows the %s Verification Tag of the association", name)
	}
}

func TestTieTagsByState(t *testing.T) {
	other := sctptest.InitChunk(0x55667788, 3)
	t.Run("COOKIE-WAIT: 0", func(t *testing.T) {
		j := sctptest.NewCookieLab(t, nil)
		j.Connect()
		_, c := j.SendInit(other)
		check.That(t, c.LocalTie == 0 && c.PeerTie == 0, "tie-tags %#x %#x", c.LocalTie, c.PeerTie) // req 9260-5.2.2-9
	})
	t.Run("COOKIE-ECHOED: random, the same in TCB and cookie", func(t *testing.T) {
		j := sctptest.NewCookieLab(t, nil)
		j.Connect()
		j.Pass(sctptest.Packet(sctptest.PortA, sctptest.PortB, j.Tag,
			sctptest.InitAckChunk(j.PeerTag, j.TSN, []byte("theirs"))))
		j.Expect(j.Flush(), "COOKIE ECHO")
		_, c := j.SendInit(other)
		// req 9260-5.2.1-10, 9260-5.2.2-9
		check.That(t, c.LocalTie != 0 && c.PeerTie != 0 && c.LocalTie != c.PeerTie && c.LocalTie != j.Tag &&
			c.PeerTie != j.PeerTag, "tie-tags %#x %#x", c.LocalTie, c.PeerTie)
		_, again := j.SendInit(other)
		check.That(t, again.LocalTie == c.LocalTie && again.PeerTie == c.PeerTie, "the tie-tags of the TCB changed")
	})
	t.Run("ESTABLISHED: random, and the TCB knows them again", func(t *testing.T) {
		j := sctptest.NewCookieLab(t, &assoc.Config{OutStreams: 3, InStreams: 4})
		_, first := j.Answer(sctptest.InitChunk(j.PeerTag, j.TSN))
		j.Accept(&first)
		ack, c := j.SendInit(other)
		// req 9260-5.2.2-5, 9260-5.2.2-9
		check.That(t, c.LocalTie != 0 && c.PeerTie != 0, "tie-tags %#x %#x", c.LocalTie, c.PeerTie)
		check.That(t, ack.OutStreams() == 3 && ack.InStreams() == 4 && c.OutStreams == 3 && c.InStreams == 4,
			// req 9260-5.2.2-7
			"INIT ACK with OS %d MIS %d, cookie %d %d, want those of the association", ack.OutStreams(),
			ack.InStreams(), c.OutStreams, c.InStreams)
		j.Pass(sctptest.Packet(sctptest.PortA, sctptest.PortB, c.LocalTag, wire.AppendCookieEcho(nil, j.Cookie)))
		j.Expect(j.Flush(), "COOKIE ACK")
		if _, c := j.SendInit(sctptest.InitChunk(5, 5)); c.LocalTie < 2 || c.PeerTie == 0 {
			t.Errorf("tie-tags %#x %#x of what has restarted", c.LocalTie, c.PeerTie)
		}
		// Table 12, action A: the tie-tags match
		check.That(t, j.A.LocalTag() == c.LocalTag && j.A.PeerTag() == 0x55667788, "no restart")
	})
}
