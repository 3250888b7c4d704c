package seal

import (
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FirstEpoch is the first epoch of an association, and the first one after a restart (section 3.1).
const FirstEpoch = 3

// maxEpoch is the highest epoch (RFC 9147 section 4.2.1).
const maxEpoch = 1<<48 - 1

// maxKeys is how many epochs of a kind are held: two, of which the records of one are draining.
// Their last two bits differ.
const maxKeys = 2

// Keyring holds the keys of one association. There are primary keys, for all its packets, and
// restart keys, for the packets that replace it after a crash. Those are kept as they came, and
// made ready when the peer uses them.
type Keyring struct {
	limits    Limits
	window    int       // of each key, in records
	send      *Sealer   // nil: there is none
	primary   []*Opener // the newest first
	nextEpoch uint64    // of primary keys
	restart   []*restartKeys
	stats     Stats
}

// restartKeys are those of one epoch.
type restartKeys struct {
	epoch         uint64
	send, receive Material // send without a Suite: it was used
	installedAt   rawio.Time
	opener        *Opener // nil until somebody uses it
	failed        uint64  // attempts of those before it
}

// Stats counts what a Keyring has done.
type Stats struct {
	Sealed, Opened uint64            // records
	Refused        [numErrors]uint64 // records that were not opened, by Error
}

// NewKeyring returns a Keyring without keys. The replay window of each key grows up to that many
// records, at most MaxReplayWindow.
func NewKeyring(l Limits, window int) *Keyring {
	return &Keyring{limits: l.withDefaults(), window: window, nextEpoch: FirstEpoch}
}

// Stats returns the counts.
func (k *Keyring) Stats() Stats { return k.stats }

// newest returns the key to open with of the epoch that is in use, nil for none.
func (k *Keyring) newest() *Opener {
	switch {
	case len(k.primary) > 0:
		return k.primary[0]
	case k.send != nil && k.send.isRestart && len(k.restart) > 0:
		return k.restart[0].opener
	}
	return nil
}

func (k *Keyring) primaryOf(epoch uint64) *Opener {
	for _, o := range k.primary {
		if o.epoch == epoch {
			return o
		}
	}
	return nil
}

func (k *Keyring) restartOf(epoch uint64) *restartKeys {
	for _, r := range k.restart {
		if r.epoch == epoch {
			return r
		}
	}
	return nil
}

// InstallReceive installs a primary key to open with. Epochs follow one another, and of older ones
// only the last may still be there.
func (k *Keyring) InstallReceive(now rawio.Time, epoch uint64, m *Material) error {
	switch {
	case epoch != k.nextEpoch || epoch > maxEpoch:
		return ErrEpoch
	case len(k.primary) >= maxKeys:
		return ErrStillDraining
	}
	o, err := NewOpener(now, m, epoch, k.window)
	if err != nil {
		return err
	}
	k.primary = slices.Insert(k.primary, 0, o)
	k.nextEpoch++
	return nil
}

// InstallSend installs a primary key to seal with. All packets are sealed with it from now on. The
// key to open with is there already.
func (k *Keyring) InstallSend(now rawio.Time, epoch uint64, m *Material) error {
	if len(k.primary) == 0 || k.primary[0].epoch != epoch ||
		k.send != nil && !k.send.isRestart && k.send.epoch >= epoch {
		return ErrEpoch
	}
	s, err := NewSealer(now, m, epoch, false)
	if err != nil {
		return err
	}
	k.send = s
	return nil
}

// InstallRestart installs the keys for a restart, after the primary ones of their epoch. An
// association that has no primary keys is about to restart, and takes those of any epoch.
func (k *Keyring) InstallRestart(now rawio.Time, epoch uint64, send, receive *Material) error {
	switch {
	case epoch < FirstEpoch || epoch > maxEpoch, len(k.primary) > 0 && k.primaryOf(epoch) == nil,
		len(k.restart) > 0 && epoch != k.restart[0].epoch+1:
		return ErrEpoch
	case len(k.restart) >= maxKeys:
		return ErrStillDraining
	case send.Suite.KeyLen() == 0 || receive.Suite.KeyLen() == 0:
		return ErrSuite
	}
	k.restart = slices.Insert(k.restart, 0, &restartKeys{epoch: epoch, send: *send, receive: *receive,
		installedAt: now})
	return nil
}

// RemoveReceive removes the primary key of an epoch, whose records have drained.
func (k *Keyring) RemoveReceive(epoch uint64) {
	k.primary = slices.DeleteFunc(k.primary, func(o *Opener) bool { return o.epoch == epoch })
}

// RemoveRestart removes the restart keys of an epoch: the peer has stored newer ones.
func (k *Keyring) RemoveRestart(epoch uint64) {
	k.restart = slices.DeleteFunc(k.restart, func(r *restartKeys) bool {
		if r.epoch == epoch {
			*r = restartKeys{}
			return true
		}
		return false
	})
}

// Withdraw takes the newest primary key to open with back, and the restart keys of its epoch. The
// peer does not use them, as the handshake failed. The next handshake is for the same epoch.
func (k *Keyring) Withdraw(epoch uint64) error {
	if len(k.primary) == 0 || k.primary[0].epoch != epoch ||
		k.send != nil && !k.send.isRestart && k.send.epoch == epoch {
		return ErrEpoch
	}
	k.RemoveReceive(epoch)
	if k.send == nil || !k.send.isRestart { // else they are in use, and of another time
		k.RemoveRestart(epoch)
	}
	k.nextEpoch = epoch
	return nil
}

// UseRestart makes the restart keys of an epoch those that packets are sealed with, and removes all
// others: the association has restarted. The next primary epoch is FirstEpoch (section 5.4). The
// keys of an epoch are used once, as their numbers begin at 0.
func (k *Keyring) UseRestart(now rawio.Time, epoch uint64) error {
	r := k.restartOf(epoch)
	switch {
	case r == nil:
		return ErrNoKey
	case r.send.Suite == 0:
		return ErrKeyExhausted
	}
	s, err := NewSealer(now, &r.send, epoch, true)
	if err == nil {
		_, err = r.makeReady(k.window)
	}
	if err != nil {
		return err
	}
	r.send = Material{}
	k.send, k.primary, k.restart, k.nextEpoch = s, nil, []*restartKeys{r}, FirstEpoch
	return nil
}

// CanSeal reports whether there is a key to seal with.
func (k *Keyring) CanSeal() bool { return k.send != nil }

// Sealer returns the key that packets are sealed with, nil for none.
func (k *Keyring) Sealer() *Sealer { return k.send }

// Append seals the pieces as Sealer.Append does, with the newest key.
func (k *Keyring) Append(b []byte, pieces ...[]byte) ([]byte, error) {
	if k.send == nil {
		return b, ErrNoKey
	}
	b, err := k.send.Append(b, pieces...)
	if err == nil {
		k.stats.Sealed++
	}
	return b, err
}

// Open opens the record of a DTLS chunk as Opener.Open does. The R bit and two bits of the record
// say with which key. It returns the epoch of the key.
func (k *Keyring) Open(now rawio.Time, d wire.DTLS, scratch []byte) (content []byte, epoch uint64, err error) {
	content, epoch, err = k.open(now, d, scratch)
	if err == nil {
		k.stats.Opened++
	} else if e, ok := err.(Error); ok {
		k.stats.Refused[e]++
	}
	return content, epoch, err
}

func (k *Keyring) open(now rawio.Time, d wire.DTLS, scratch []byte) (content []byte, epoch uint64, err error) {
	record := d.Record()
	if err := checkRecord(record); err != nil {
		return nil, 0, err
	}
	o, err := k.openerFor(d.Restart(), record[0]&epochMask)
	if o == nil {
		return nil, 0, err
	}
	content, err = o.Open(now, record, scratch)
	return content, o.epoch, err
}

// openerFor returns the key of an epoch by its last two bits.
func (k *Keyring) openerFor(isRestart bool, bits byte) (*Opener, error) {
	if !isRestart {
		for _, o := range k.primary {
			if byte(o.epoch&epochMask) == bits {
				return o, nil
			}
		}
		return nil, ErrNoKey
	}
	for _, r := range k.restart {
		if byte(r.epoch&epochMask) == bits {
			return r.makeReady(k.window)
		}
	}
	return nil, ErrNoKey
}

// makeReady makes the key to open with, once.
func (r *restartKeys) makeReady(window int) (o *Opener, err error) {
	if r.opener == nil {
		if r.opener, err = NewOpener(r.installedAt, &r.receive, r.epoch, window); err == nil {
			r.opener.failed = r.failed
		}
	}
	return r.opener, err
}

// Bequeath returns the keys in use for what outlives the association. k opens nothing any more. It
// may still seal that many records; the numbers of the others are higher.
func (k *Keyring) Bequeath(left uint64) (*Keyring, error) {
	if k.send == nil {
		return nil, ErrNoKey
	}
	if k.send.Left() <= left {
		return nil, ErrKeyExhausted
	}
	heir := &Keyring{limits: k.limits, window: k.window, send: k.send.split(left), primary: k.primary,
		nextEpoch: k.nextEpoch}
	if k.send.isRestart {
		heir.restart = k.restart
	}
	k.primary, k.restart = nil, nil
	heir.Compact()
	return heir, nil
}

// Compact gives memory back while the association is idle: see Opener.Compact. A restart key that
// only forgers have used is as it came again.
func (k *Keyring) Compact() {
	for _, o := range k.primary {
		o.Compact()
	}
	for _, r := range k.restart {
		switch o := r.opener; {
		case o != nil && o.opened == 0 && r.send.Suite != 0:
			r.failed, r.opener = o.failed, nil
		case o != nil:
			o.Compact()
		}
	}
}
