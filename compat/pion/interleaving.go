package sctp

// AssociationInterleavingOption is an option of WithInterleavingOptions.
type AssociationInterleavingOption func(*interleavingSettings) error

type interleavingSettings struct{ scheduling }

// InterleavingStreamScheduler chooses the stream that sends next.
type InterleavingStreamScheduler interface {
	// Reset forgets everything.
	Reset()
	// Push adds a chunk.
	Push(StreamSchedulerChunk)
	// Peek returns the next chunk, nil if there is none.
	Peek() StreamSchedulerChunk
	// Pop takes off the chunk that Peek has returned.
	Pop(StreamSchedulerChunk) error
}

// InterleavingStreamSchedulerFactory makes a scheduler for an association.
type InterleavingStreamSchedulerFactory func() InterleavingStreamScheduler

// StreamSchedulerChunk is what a scheduler sees of a chunk.
type StreamSchedulerChunk interface {
	StreamIdentifier() uint16
	UserDataLen() int
	// IsStreamReset says that there is no data: the stream ends here.
	IsStreamReset() bool

	isChunk() // of this package
}

// WithEnableInterleaving sets whether messages of several streams may be interleaved, if the peer
// agrees (RFC 8260). By default they may.
func WithEnableInterleaving(b bool) AssociationOption {
	return option(func(s *settings) error { s.noInterleaving = !b; return nil })
}

// WithInterleavingOptions chooses how messages are interleaved. The default is weighted fair
// queueing with equal weights.
func WithInterleavingOptions(opts ...AssociationInterleavingOption) AssociationOption {
	return option(func(s *settings) error {
		i := interleavingSettings{s.scheduling}
		for _, o := range opts {
			if o != nil {
				if err := o(&i); err != nil {
					return err
				}
			}
		}
		s.scheduling = i.scheduling
		return nil
	})
}

// WithInterleavingRoundRobinScheduler has the streams take turns.
func WithInterleavingRoundRobinScheduler() AssociationInterleavingOption {
	return func(i *interleavingSettings) error { i.roundRobin, i.custom = true, nil; return nil }
}

// WithInterleavingStreamSchedulerFactory has a scheduler of the program choose.
func WithInterleavingStreamSchedulerFactory(
	newScheduler InterleavingStreamSchedulerFactory) AssociationInterleavingOption {
	return func(i *interleavingSettings) error {
		if i.custom = newScheduler; newScheduler == nil {
			return errNoSchedule
		}
		return nil
	}
}

// WithInterleavingWeightedFairQueueingScheduler gives each stream its share by weight.
func WithInterleavingWeightedFairQueueingScheduler() AssociationInterleavingOption {
	return func(i *interleavingSettings) error { i.roundRobin, i.custom = false, nil; return nil }
}

// WithInterleavingWeightedFairQueueingWeight sets the weight of a stream, 1 by default.
func WithInterleavingWeightedFairQueueingWeight(streamID uint16, weight uint16) AssociationInterleavingOption {
	return func(i *interleavingSettings) error {
		if weight == 0 {
			return errWeight
		}
		if i.weights == nil {
			i.weights = make(map[uint16]uint16)
		}
		i.weights[streamID], i.roundRobin, i.custom = weight, false, nil
		return nil
	}
}
