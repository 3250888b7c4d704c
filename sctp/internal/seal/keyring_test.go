package seal

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// ring is the two ends of an association.
type ring struct {
	t     testing.TB
	suite Suite
	a, b  *Keyring
	epoch uint64
}

// newRing returns two ends with the keys of the first epoch.
func newRing(t testing.TB, s Suite) *ring {
	t.Helper()
	r := &ring{t: t, suite: s, a: NewKeyring(Limits{}, 0), b: NewKeyring(Limits{}, 0), epoch: FirstEpoch - 1}
	r.rekey()
	return r
}

// toB and toA are the material of an epoch in each direction.
func (r *ring) toB(epoch uint64) *Material { return testMaterial(r.suite, byte(2*epoch)) }
func (r *ring) toA(epoch uint64) *Material { return testMaterial(r.suite, byte(2*epoch+1)) }

// rekey installs the next epoch at both ends, receive keys first.
func (r *ring) rekey() {
	r.t.Helper()
	r.epoch++
	must.OK(r.t, r.a.InstallReceive(now, r.epoch, r.toA(r.epoch)))
	must.OK(r.t, r.b.InstallReceive(now, r.epoch, r.toB(r.epoch)))
	must.OK(r.t, r.a.InstallSend(now, r.epoch, r.toB(r.epoch)))
	must.OK(r.t, r.b.InstallSend(now, r.epoch, r.toA(r.epoch)))
}

func (r *ring) drain(epoch uint64) {
	r.a.RemoveReceive(epoch)
	r.b.RemoveReceive(epoch)
}

// sealed returns a chunk that from sealed.
func sealed(t testing.TB, from *Keyring) []byte {
	t.Helper()
	return must.Get(from.Append(nil, testContent(8)))(t)
}

// opens says with which epoch k opens a copy of the chunk, 0 if it does not.
func opens(t testing.TB, k *Keyring, b []byte) uint64 {
	t.Helper()
	content, epoch, err := k.Open(now, asChunk(t, bytes.Clone(b)), nil)
	if err != nil {
		return 0
	}
	check.Slice(t, "content", content, testContent(8))
	return epoch
}

func TestEpochsFollowOneAnother(t *testing.T) {
	// req dtlschunk-3.1-7
	// req dtlschunk-3.1-8
	// req dtlskeys-6.2.5-1
	m := testMaterial(AES128GCM, 1)
	k := NewKeyring(Limits{}, 0)
	check.Error(t, "a key to send with first", k.InstallSend(now, 3, m), ErrEpoch)
	for _, epoch := range []uint64{0, 2, 4, 1 << 48} {
		check.Error(t, "not the first epoch", k.InstallReceive(now, epoch, m), ErrEpoch)
	}
	must.OK(t, k.InstallReceive(now, 3, m))
	for _, epoch := range []uint64{3, 5, 7} {
		check.Error(t, "not the next epoch", k.InstallReceive(now, epoch, m), ErrEpoch)
	}
	check.Error(t, "another epoch to send with", k.InstallSend(now, 4, m), ErrEpoch)
	check.That(t, !k.CanSeal(), "there is nothing to seal with")
	must.OK(t, k.InstallSend(now, 3, m))
	check.Error(t, "the same key again, whose numbers begin at 0", k.InstallSend(now, 3, m), ErrEpoch)
	must.OK(t, k.InstallReceive(now, 4, m))
	check.Error(t, "a third epoch", k.InstallReceive(now, 5, m), ErrStillDraining)
	check.Error(t, "an older one to send with", k.InstallSend(now, 3, m), ErrEpoch)
	k.RemoveReceive(3)
	k.RemoveReceive(4) // all of them
	check.Error(t, "an epoch that was there", k.InstallReceive(now, 3, m), ErrEpoch)
	must.OK(t, k.InstallReceive(now, 5, m))
	check.Error(t, "material of no suite", k.InstallReceive(now, 6, &Material{}), ErrSuite)
	check.Error(t, "material of no suite", k.InstallSend(now, 5, &Material{}), ErrSuite)
	k.nextEpoch = maxEpoch + 1
	check.Error(t, "past the last epoch", k.InstallReceive(now, maxEpoch+1, m), ErrEpoch)
}

// A key that the peer has not begun to use can be taken back, and another of the same epoch comes
// in its place.
func TestWithdraw(t *testing.T) {
	r := restartRing(t, AES128GCM, 3)
	check.Error(t, "a key in use", r.a.Withdraw(3), ErrEpoch)
	check.Error(t, "a key that is not there", r.a.Withdraw(4), ErrEpoch)
	must.OK(t, r.a.InstallReceive(now, 4, testMaterial(AES128GCM, 200)))
	must.OK(t, r.a.InstallRestart(now, 4, testMaterial(AES128GCM, 201), testMaterial(AES128GCM, 202)))
	check.Error(t, "the one in use, which is not the newest", r.a.Withdraw(3), ErrEpoch)
	must.OK(t, r.a.Withdraw(4))
	check.That(t, len(r.a.primary) == 1 && len(r.a.restart) == 1, "%d primary keys, %d restart keys",
		len(r.a.primary), len(r.a.restart))
	check.Equal(t, "a record of the epoch in use", opens(t, r.a, sealed(t, r.b)), 3)
	r.rekey()
	check.Equal(t, "a record of the next", opens(t, r.a, sealed(t, r.b)), 4)

	must.OK(t, r.a.UseRestart(now, 3))
	must.OK(t, r.b.UseRestart(now, 3))
	must.OK(t, r.a.InstallReceive(now, 3, testMaterial(AES128GCM, 203)))
	must.OK(t, r.a.Withdraw(3))
	check.Equal(t, "a record under the restart key, of the same epoch", opens(t, r.a, sealed(t, r.b)), 3)
}

// Two bits tell two epochs apart, for ever: records of the epoch before are opened until its key is
// removed, and none with a key of another epoch.
func TestTwoBitsOfTheEpochTurn(t *testing.T) {
	// req dtlschunk-5.2-10
	for _, suite := range Suites() {
		r := newRing(t, suite)
		var old []byte
		for range 300 {
			was := r.epoch
			before, late := sealed(t, r.a), sealed(t, r.a)
			r.rekey()
			check.Equal(t, "epoch of a record of before", opens(t, r.b, before), was)
			check.Equal(t, "epoch of a record", opens(t, r.b, sealed(t, r.a)), r.epoch)
			check.Equal(t, "epoch of an answer", opens(t, r.a, sealed(t, r.b)), r.epoch)
			r.drain(was)
			check.Equal(t, "a record whose key is gone", opens(t, r.b, late), 0)
			if old != nil {
				check.Equal(t, "a record of four epochs ago", opens(t, r.b, old), 0)
			}
			if r.epoch%4 == 0 {
				old = late
			}
		}
	}
}

// Nothing that is wrong with a packet changes more than counts, and each reason has its own.
func TestRefusedRecordsAreCounted(t *testing.T) {
	// req dtlschunk-7.10-1, dtlschunk-7.11-1, dtlschunk-7.12-1
	r := newRing(t, AES128GCM)
	first := sealed(t, r.a)
	must.Equal(t, "epoch", opens(t, r.b, first), 3)
	check.Equal(t, "the same again", opens(t, r.b, first), 0)
	forged := sealed(t, r.a)
	forged[20] ^= 1
	check.Equal(t, "forged", opens(t, r.b, forged), 0)
	otherEpoch := sealed(t, r.a)
	otherEpoch[5] ^= 1
	check.Equal(t, "of no epoch", opens(t, r.b, otherEpoch), 0)
	restart := sealed(t, r.a)
	restart[1] = 1
	check.Equal(t, "with the R bit, and no restart key", opens(t, r.b, restart), 0)
	check.Equal(t, "too short", opens(t, r.b, []byte{0x41, 0, 0, 8, 0, 0x2b, 0, 0}), 0)
	check.Equal(t, "to oneself", opens(t, r.a, sealed(t, r.a)), 0)
	want := Stats{Opened: 1}
	want.Refused[ErrReplayed], want.Refused[ErrNotAuthentic], want.Refused[ErrNoKey] = 1, 1, 2
	want.Refused[ErrRecordLength] = 1
	check.Equal(t, "counts", r.b.Stats(), want)
	check.Equal(t, "sealed", r.a.Stats().Sealed, 5)
	check.Equal(t, "sealed with the key", r.a.Sealer().Sealed(), 5)
	o := r.b.primary[0]
	check.That(t, o.Opened() == 1 && o.Failed() == 2, "%d opened, %d attempts failed", o.Opened(), o.Failed())
}

// restartRing returns two ends with restart keys of the epochs from the first to that one.
func restartRing(t testing.TB, suite Suite, epoch uint64) *ring {
	t.Helper()
	r := newRing(t, suite)
	for {
		must.OK(t, r.a.InstallRestart(now, r.epoch, r.restartToB(r.epoch), r.restartToA(r.epoch)))
		must.OK(t, r.b.InstallRestart(now, r.epoch, r.restartToA(r.epoch), r.restartToB(r.epoch)))
		if r.epoch == epoch {
			return r
		}
		r.rekey()
		r.drain(r.epoch - 1)
		if r.epoch > FirstEpoch+1 {
			r.a.RemoveRestart(r.epoch - 2)
			r.b.RemoveRestart(r.epoch - 2)
		}
	}
}

func (r *ring) restartToB(epoch uint64) *Material { return testMaterial(r.suite, 128+byte(2*epoch)) }
func (r *ring) restartToA(epoch uint64) *Material { return testMaterial(r.suite, 128+byte(2*epoch+1)) }

func TestRestartKeysComeAfterPrimaryOnes(t *testing.T) {
	// req dtlschunk-7.4-1
	// req dtlschunk-3.1-3
	m := testMaterial(AES128GCM, 1)
	r := newRing(t, AES128GCM)
	check.Error(t, "of an epoch without primary keys", r.a.InstallRestart(now, 4, m, m), ErrEpoch)
	check.Error(t, "without a suite to send with", r.a.InstallRestart(now, 3, &Material{}, m), ErrSuite)
	check.Error(t, "without a suite to open with", r.a.InstallRestart(now, 3, m, &Material{}), ErrSuite)
	must.OK(t, r.a.InstallRestart(now, 3, m, m))
	check.Error(t, "twice", r.a.InstallRestart(now, 3, m, m), ErrEpoch)
	r.rekey()
	must.OK(t, r.a.InstallRestart(now, 4, m, m))
	r.drain(3)
	r.rekey()
	check.Error(t, "a third epoch", r.a.InstallRestart(now, 5, m, m), ErrStillDraining)
	r.a.RemoveRestart(3)
	check.OK(t, r.a.InstallRestart(now, 5, m, m))
	check.Error(t, "keys of an epoch that are gone", r.a.UseRestart(now, 3), ErrNoKey)

	fresh := NewKeyring(Limits{}, 0) // of a host that has crashed
	for _, epoch := range []uint64{0, 2, maxEpoch + 1} {
		check.Error(t, "an epoch that there is not", fresh.InstallRestart(now, epoch, m, m), ErrEpoch)
	}
	check.OK(t, fresh.InstallRestart(now, 77, m, m))
	check.Error(t, "nothing to send with before they are used", func() error {
		_, err := fresh.Append(nil, testContent(4))
		return err
	}(), ErrNoKey)
}

// The host that has crashed has nothing but the restart keys; the other has both epochs of them,
// and learns which one it is from the first record that opens.
func TestRestart(t *testing.T) {
	// req dtlschunk-5.4-4
	// req dtlschunk-5.4-9
	// req dtlschunk-5.4-10
	// req dtlschunk-5.4-12
	// req dtlschunk-5.2-6
	// req dtlschunk-3.1-3
	for _, stored := range []uint64{5, 6} { // the last one was stored, or not yet
		for _, suite := range Suites() {
			r := restartRing(t, suite, 6)
			lost := sealed(t, r.a)
			crashed := NewKeyring(Limits{}, 0)
			must.OK(t, crashed.InstallRestart(now, stored, r.restartToB(stored), r.restartToA(stored)))
			must.OK(t, crashed.UseRestart(now, stored))
			cookieEcho := sealed(t, crashed)
			check.Equal(t, "flags", cookieEcho[1], 1)
			must.Equal(t, "epoch", opens(t, r.b, cookieEcho), stored)
			check.Equal(t, "until the restart is sure, what is sealed with", r.b.Sealer().IsRestart(), false)
			must.OK(t, r.b.UseRestart(now, stored))
			cookieAck := sealed(t, r.b)
			check.Equal(t, "flags", cookieAck[1], 1)
			check.Equal(t, "epoch", opens(t, crashed, cookieAck), stored)
			check.Equal(t, "of before the crash", opens(t, r.b, lost), 0)
			check.Equal(t, "the same again", opens(t, r.b, cookieEcho), 0)
			check.Error(t, "once more, with numbers from 0", r.b.UseRestart(now, stored), ErrKeyExhausted)
			check.Error(t, "the other epoch", r.b.UseRestart(now, 11-stored), ErrNoKey)

			m := testMaterial(suite, 99)
			check.Error(t, "the epoch goes on", r.b.InstallReceive(now, 7, m), ErrEpoch)
			must.OK(t, r.b.InstallReceive(now, 3, m))
			must.OK(t, crashed.InstallReceive(now, 3, m))
			must.OK(t, crashed.InstallSend(now, 3, m))
			primary := sealed(t, crashed)
			check.Equal(t, "flags", primary[1], 0)
			check.Equal(t, "epoch", opens(t, r.b, primary), 3)
			check.Equal(t, "an answer under the old key", opens(t, crashed, sealed(t, r.b)), stored)
		}
	}
}

// Restart keys seal nothing before a restart, and the crashed host's keys open nothing else.
func TestRestartKeysAreForNothingElse(t *testing.T) {
	r := restartRing(t, AES256GCM, 4)
	b := sealed(t, r.a)
	check.Equal(t, "flags", b[1], 0)
	b[1] = 1
	check.Equal(t, "an ordinary record with the R bit", opens(t, r.b, b), 0)
	b[1] = 0
	check.Equal(t, "without", opens(t, r.b, b), 4)
	check.That(t, r.a.restart[0].opener == nil && r.a.restart[0].send.Suite != 0, "the restart key was used")
}

func TestCompactReachesAllKeys(t *testing.T) {
	r := restartRing(t, AES128GCM, 3)
	crashed := NewKeyring(Limits{}, 0)
	must.OK(t, crashed.InstallRestart(now, 3, r.restartToB(3), r.restartToA(3)))
	must.OK(t, crashed.UseRestart(now, 3))
	r.rekey()
	r.b.window = MaxReplayWindow
	var openers []*Opener
	for _, from := range []*Keyring{r.a, crashed} {
		lost := sealed(t, from)
		for range 300 {
			must.That(t, opens(t, r.b, sealed(t, from)) != 0, "not opened")
		}
		check.Equal(t, "one that comes late, which makes no difference", opens(t, r.b, lost) != 0, from == crashed)
	}
	openers = append(slices.Clone(r.b.primary), r.b.restart[0].opener)
	r.b.Compact()
	for i, o := range openers {
		check.That(t, o.window.floor == o.window.next && len(o.window.ring) == 2, "key %d: %+v", i, o.window)
	}
}

// Two may seal after the end, the association and what outlives it: no number is used twice, and
// only one of them opens.
func TestBequeath(t *testing.T) {
	for _, s := range Suites() {
		r := newRing(t, s)
		fromA := sealed(t, r.a)
		heir := must.Get(r.a.Bequeath(3))(t)
		seen := map[string]bool{string(fromA): true}
		for i := range 6 {
			for _, k := range []*Keyring{r.a, heir} {
				b, err := k.Append(nil, testContent(8))
				if k == r.a && i >= 3 {
					check.Error(t, "one number more", err, ErrKeyExhausted)
					continue
				}
				must.OK(t, err)
				check.That(t, !seen[string(b)], "a record was sealed twice")
				seen[string(b)] = true
				check.Equal(t, "opened by", opens(t, r.b, b), FirstEpoch)
			}
		}
		b := sealed(t, r.b)
		check.Equal(t, "opened by the association", opens(t, r.a, b), 0)
		check.Equal(t, "opened by what outlives it", opens(t, heir, b), FirstEpoch)
		check.Equal(t, "opened again", opens(t, heir, b), 0)
	}
	r := newRing(t, AES128GCM)
	r.a.send.next = r.a.send.suite.maxSeals() - 3
	check.Fails(r.a.Bequeath(3))(t, "a key that is used up", ErrKeyExhausted)
	check.Fails(NewKeyring(Limits{}, 0).Bequeath(3))(t, "no key", ErrNoKey)
}

// After a restart the keys in use are restart keys.
func TestBequeathRestartKeys(t *testing.T) {
	r := newRing(t, AES128GCM)
	must.OK(t, r.a.InstallRestart(now, FirstEpoch, r.restartToB(FirstEpoch), r.restartToA(FirstEpoch)))
	must.OK(t, r.a.UseRestart(now, FirstEpoch))
	heir := must.Get(r.a.Bequeath(1))(t)
	check.Equal(t, "a rekey that is due", r.a.RekeyDue(now), RekeyNotDue)
	check.That(t, heir.Sealer().IsRestart(), "it seals with other keys")
}

// A restart key that only forgers have used costs no memory while the association is idle, and its
// failed attempts go on counting.
func TestCompactForgetsWhatForgersUsed(t *testing.T) {
	r := newRing(t, AES128GCM)
	must.OK(t, r.b.InstallRestart(now, 3, testMaterial(AES128GCM, 90), testMaterial(AES128GCM, 91)))
	peer := NewKeyring(Limits{}, 0)
	must.OK(t, peer.InstallRestart(now, 3, testMaterial(AES128GCM, 91), testMaterial(AES128GCM, 90)))
	must.OK(t, peer.UseRestart(now, 3))
	forged := sealed(t, peer)
	forged[len(forged)-8]++
	for i := range 3 {
		check.Equal(t, "a forged record opens with", opens(t, r.b, forged), 0)
		check.Equal(t, "failed attempts", r.b.restart[0].opener.Failed(), uint64(i+1))
		r.b.Compact()
		check.That(t, r.b.restart[0].opener == nil, "the key is still ready")
	}
	check.Equal(t, "a record opens with", opens(t, r.b, sealed(t, peer)), 3)
	r.b.Compact()
	check.That(t, r.b.restart[0].opener != nil, "the numbers that were opened are forgotten")
}
