package seal

import (
	"encoding/binary"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/bucket"
)

// Opener opens records that the peer has sealed with one key. Each is opened once.
type Opener struct {
	recordCipher
	window      replayWindow
	opened      uint64 // records
	failed      uint64 // attempts
	octets      uint64 // of content
	epoch       uint64
	installedAt rawio.Time
	second      bucket.Bucket // of secondTries
}

// secondTries bounds second attempts. They are rare, and what asks for one may be a record that
// somebody sends again: a forger gets few more attempts than he sends packets.
var secondTries = bucket.Rate{Burst: 16, Interval: 10 * time.Millisecond}

// NewOpener returns an Opener for an epoch. The replay window grows to that many records where the
// order of arrival asks for it.
func NewOpener(now rawio.Time, m *Material, epoch uint64, window int) (*Opener, error) {
	c, err := newRecordCipher(m)
	if err != nil {
		return nil, err
	}
	return &Opener{recordCipher: c, epoch: epoch, installedAt: now, window: newReplayWindow(window)}, nil
}

// Open opens a record where it lies, and returns the content. What was in the record is lost,
// whether it opens or not. scratch takes a copy for the rare second attempt; without room there is
// none.
func (o *Opener) Open(now rawio.Time, record, scratch []byte) (content []byte, err error) {
	if err := checkRecord(record); err != nil {
		return nil, err
	}
	if byte(o.epoch&epochMask) != record[0]&epochMask {
		return nil, ErrNoKey
	}
	if o.failed >= maxFailed {
		return nil, ErrKeyExhausted
	}
	header, sealed := record[:recordHeaderLen], record[recordHeaderLen:]
	encryptNumber(header, o.maskOf(sealed))
	inner, err := o.openAny(now, header, sealed, scratch)
	if err != nil {
		return nil, err
	}
	o.opened++
	if content, err = trimPadding(inner); err != nil {
		return nil, err
	}
	o.octets += uint64(len(content))
	return content, nil
}

// openAny tries the sequence numbers that the 16 bits in the header can stand for. That is the one
// closest to what is expected. Where that one is not above what was received, it may also be the
// one 2^16 higher, if more than 2^15 records were lost in a row.
func (o *Opener) openAny(now rawio.Time, header, sealed, scratch []byte) (inner []byte, err error) {
	low := binary.BigEndian.Uint16(header[1:])
	number := reconstructNumber(low, o.window.next)
	if number >= o.window.next {
		return o.openAs(number, header, sealed)
	}
	isNew, maySecond := o.window.isNew(number), o.second.Has(now, secondTries)
	if !isNew && !maySecond {
		return nil, ErrReplayed
	}
	if isNew {
		if maySecond = maySecond && len(scratch) >= len(sealed); maySecond {
			copy(scratch, sealed)
		}
		if inner, err = o.openAs(number, header, sealed); err == nil || !maySecond {
			return inner, err
		}
		copy(sealed, scratch)
	}
	o.second.Take()
	if inner, err = o.openAs(number+1<<16, header, sealed); err != nil && !isNew {
		err = ErrReplayed // most likely
	}
	return inner, err
}

// openAs opens a record as the one of that number.
func (o *Opener) openAs(number uint64, header, sealed []byte) ([]byte, error) {
	if number > maxNumber {
		return nil, ErrReplayed
	}
	inner, err := o.aead.Open(sealed[:0], o.nonceOf(number), sealed, header)
	if err != nil {
		o.failed++
		return nil, ErrNotAuthentic
	}
	o.window.add(number)
	return inner, nil
}

// Epoch returns the epoch.
func (o *Opener) Epoch() uint64 { return o.epoch }

// Opened returns how many records were opened.
func (o *Opener) Opened() uint64 { return o.opened }

// Failed returns how many attempts have failed.
func (o *Opener) Failed() uint64 { return o.failed }

// Compact gives the memory of the replay window back, while nothing arrives. Records that were not
// received so far are too old from then on.
func (o *Opener) Compact() { o.window.compact() }
