package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// mutantResult is what became of a mutant.
type mutantResult struct {
	ID      string
	Outcome string // of those below
	By      string // the test that noticed
	How     string // it noticed: an assertion, a crash, a hang
	Seconds float64
}

// The outcomes of a mutant.
const (
	fateCaught    = "caught"
	fateLate      = "late"      // only by a test that hangs
	fateSurvived  = "survived"  // tests come there, none fails
	fateUncovered = "uncovered" // no test comes there
)

// state is a directory of what is known so far, so that an interrupted run goes on.
type state struct {
	dir    string
	mu     sync.Mutex
	fates  map[string]mutantResult
	former map[string]string // the tests that caught mutants of other trees, which are asked first
}

// openState opens the directory of a sample. What was made of the same tree is taken up; of others,
// which lie beside it, it is known which test caught a mutant.
func openState(dir string) (*state, error) {
	s := &state{dir: dir, fates: make(map[string]mutantResult), former: make(map[string]string)}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", fatesFile))
	if err != nil {
		return nil, err
	}
	for _, file := range others {
		err := readFates(file, func(x mutantResult) {
			if x.Outcome == fateCaught {
				s.former[x.ID] = x.By
			}
		})
		if err != nil {
			return nil, err
		}
	}
	err = readFates(filepath.Join(dir, fatesFile), func(x mutantResult) { s.fates[x.ID] = x })
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return s, nil
}

const fatesFile = "fates.jsonl"

func readFates(file string, add func(mutantResult)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var x mutantResult
		if json.Unmarshal(lines.Bytes(), &x) == nil { // the last line may be cut off
			add(x)
		}
	}
	return lines.Err()
}

func (s *state) addResult(x mutantResult) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates[x.ID] = x
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, fatesFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", b)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// knownTests returns what an earlier run knew of a suite's tests.
func (s *state) knownTests(name string) (list []*test, found bool) {
	b, err := os.ReadFile(filepath.Join(s.dir, name+".json"))
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil, false
	}
	return list, true
}

func (s *state) keepTests(name string, list []*test) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, name+".json"), b, 0o644)
}
