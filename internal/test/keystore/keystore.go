// Package keystore keeps the records of a sctp.RestartStore in memory, for tests.
package keystore

import (
	"io/fs"
	"maps"
	"sync"
)

// Memory is a sctp.RestartStore of this process. Its zero value is empty.
type Memory struct {
	Err error // what Put and Take fail with

	mu      sync.Mutex
	records map[string]string // guarded by mu
}

// Put implements sctp.RestartStore.
func (s *Memory) Put(name string, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Err != nil {
		return s.Err
	}
	if s.records == nil {
		s.records = make(map[string]string)
	}
	s.records[name] = string(record)
	return nil
}

// Take implements sctp.RestartStore.
func (s *Memory) Take(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.records[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	delete(s.records, name)
	return []byte(record), s.Err
}

// Len returns how many records there are.
func (s *Memory) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// Clone returns the store as a crash leaves it.
func (s *Memory) Clone() *Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Memory{records: maps.Clone(s.records)}
}
