package seal

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Limits say when a key is to be replaced. A field that is 0 has its default.
type Limits struct {
	Age     time.Duration // since it was installed: an hour
	Octets  uint64        // of content: 100 GB
	Records uint64        // 2^23, a third of what AES-GCM allows
	Failed  uint64        // attempts to open: 2^35, half of what all suites here allow
}

func (l Limits) withDefaults() Limits {
	if l.Age == 0 {
		l.Age = time.Hour
	}
	if l.Octets == 0 {
		l.Octets = 100e9
	}
	if l.Records == 0 {
		l.Records = 1 << 23
	}
	if l.Failed == 0 {
		l.Failed = maxFailed / 2
	}
	return l
}

// RekeyReason says why a key is to be replaced.
type RekeyReason uint8

// The reasons: the limit that was reached first.
const (
	RekeyNotDue RekeyReason = iota
	RekeyAge
	RekeyOctets
	RekeyRecords
	RekeyFailures
)

var rekeyReasons = [...]string{"not due", "age of the key", "octets under the key", "records under the key",
	"failed attempts to open"}

// String says it in words.
func (r RekeyReason) String() string { return rekeyReasons[r] }

// rekeyReason judges one key, of which either direction may be the busier.
func (l *Limits) rekeyReason(age time.Duration, octets, records, failed uint64) RekeyReason {
	switch {
	case failed >= l.Failed:
		return RekeyFailures
	case records >= l.Records:
		return RekeyRecords
	case octets >= l.Octets:
		return RekeyOctets
	case age >= l.Age:
		return RekeyAge
	}
	return RekeyNotDue
}

// RekeyDue reports whether the keys in use are to be replaced, and why.
func (k *Keyring) RekeyDue(now rawio.Time) RekeyReason {
	reason := RekeyNotDue
	if s := k.send; s != nil {
		reason = k.limits.rekeyReason(now.Sub(s.installedAt), s.octets, s.next, 0)
	}
	if o := k.newest(); o != nil {
		reason = max(reason, k.limits.rekeyReason(now.Sub(o.installedAt), o.octets, o.opened, o.failed))
	}
	return reason
}

// RekeyDueAt returns when the keys in use reach their age.
func (k *Keyring) RekeyDueAt() rawio.Time {
	at := rawio.Never
	if s := k.send; s != nil {
		at = s.installedAt.Add(k.limits.Age)
	}
	if o := k.newest(); o != nil {
		at = min(at, o.installedAt.Add(k.limits.Age))
	}
	return at
}

// Exhausted reports whether a key in use has reached a limit of its suite: nothing more is sealed,
// or opened, with it.
func (k *Keyring) Exhausted() bool {
	o := k.newest()
	return k.send != nil && k.send.Left() == 0 || o != nil && o.failed >= maxFailed
}
