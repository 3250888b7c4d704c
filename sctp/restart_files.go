package sctp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
)

// FileRestartStore is a RestartStore of files.
type FileRestartStore struct{ dir storeDir }

// RestartStoreError is about a folder or a file of a FileRestartStore that others could read, or
// that holds something else.
type RestartStoreError struct {
	Path string
	What string
}

func (e *RestartStoreError) Error() string { return "sctp: restart store: " + e.Path + ": " + e.What }

// maxRestartAge is how old a record is kept. A peer gives an association up long before.
const maxRestartAge = 24 * time.Hour

// NewFileRestartStore returns a store of files in a folder, which it makes if need be. The folder
// has mode 0700 and its files 0600; it fails with a *RestartStoreError where that is not so, or
// where somebody else owns them. A folder is for one Transport at a time. Records that are older
// than a day are removed.
//
// A record is written to a file of its own, which takes the place of the one before when the disk
// has it. Take removes it from the disk before it returns.
func NewFileRestartStore(dir string) (*FileRestartStore, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	if err := checkPrivate(dir, fs.ModeDir); err != nil {
		return nil, err
	}
	s := &FileRestartStore{osDir(dir)}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if err := checkPrivate(path, 0); err != nil {
			return nil, err
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(e.Name(), partPrefix) || time.Since(info.ModTime()) > maxRestartAge {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	return s, s.dir.sync()
}

// makeFolder makes a folder that outlives a crash, if there is none.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Join(err, osDir(filepath.Dir(dir)).sync())
}

// checkPrivate says why a folder or a file is not for this user alone.
func checkPrivate(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch m := info.Mode(); {
	case m.Type() != kind:
		return &RestartStoreError{path, fmt.Sprintf("it is %v, want %v", m, kind|0o600)}
	case m.Perm()&0o077 != 0:
		return &RestartStoreError{path, fmt.Sprintf("mode %#o lets others in", m.Perm())}
	case !isOwn(info):
		return &RestartStoreError{path, "it is somebody else's"}
	}
	return nil
}

// storeDir is what a FileRestartStore does with its folder. What a method has done may be undone by
// a crash until sync has returned.
type storeDir interface {
	// create makes a file that does not exist, and returns when its content outlives a crash.
	create(name string, content []byte) error
	read(name string) ([]byte, error)
	rename(from, to string) error
	remove(name string) error
	// sync returns when the names of files outlive a crash.
	sync() error
}

// partPrefix begins the names of files that are not, or no more, records.
const partPrefix = ".part-"

// partName draws such a name.
func partName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return partPrefix + hex.EncodeToString(b[:])
}

// checkRestartName says why a name is none of a RestartStore.
func checkRestartName(name string) error {
	for _, c := range []byte(name) {
		isLetter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !isLetter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return &RestartStoreError{name, "not a name of a record"}
		}
	}
	if name == "" || name[0] == '.' || len(name) > 200 {
		return &RestartStoreError{name, "not a name of a record"}
	}
	return nil
}

// Put implements RestartStore.
func (s *FileRestartStore) Put(name string, record []byte) error {
	if err := checkRestartName(name); err != nil {
		return err
	}
	part := partName()
	err := s.dir.create(part, record)
	if err == nil {
		err = s.dir.rename(part, name)
	}
	if err != nil {
		_ = s.dir.remove(part)
		return err
	}
	return s.dir.sync()
}

// Take implements RestartStore. By the new name the file is this call's alone.
func (s *FileRestartStore) Take(name string) (record []byte, err error) {
	if err := checkRestartName(name); err != nil {
		return nil, err
	}
	part := partName()
	if err := s.dir.rename(name, part); err != nil {
		return nil, err
	}
	record, readErr := s.dir.read(part)
	if err := errors.Join(readErr, s.dir.remove(part), s.dir.sync()); err != nil {
		return nil, err
	}
	return record, nil
}

// osDir is a folder of this host.
type osDir string

func (d osDir) path(name string) string { return filepath.Join(string(d), name) }

func (d osDir) create(name string, content []byte) error {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d osDir) read(name string) ([]byte, error) {
	if err := checkPrivate(d.path(name), 0); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, keymgmt.MaxRestartRecord+1))
	if err == nil && len(b) > keymgmt.MaxRestartRecord {
		err = &RestartStoreError{f.Name(), "longer than a record"}
	}
	return b, err
}

func (d osDir) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d osDir) remove(name string) error     { return os.Remove(d.path(name)) }

func (d osDir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
