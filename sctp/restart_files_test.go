package sctp

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
)

func TestFileRestartStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	s := must.Get(NewFileRestartStore(dir))(t)
	must.OK(t, s.Put("7-8-192.0.2.1", []byte("first")))
	must.OK(t, s.Put("7-8-192.0.2.1", []byte("second")))
	must.OK(t, s.Put("7-8-fe80__1-eth0", []byte("other")))
	info := must.Get(os.Lstat(dir))(t)
	check.Equal(t, "mode of the folder", info.Mode(), fs.ModeDir|0o700)
	list := must.Get(os.ReadDir(dir))(t)
	check.Equal(t, "files", len(list), 2)
	for _, e := range list {
		check.Equal(t, "mode of a file", must.Get(e.Info())(t).Mode(), fs.FileMode(0o600))
	}
	s = must.Get(NewFileRestartStore(dir))(t)
	check.Equal(t, "record", string(must.Get(s.Take("7-8-192.0.2.1"))(t)), "second")
	_, err := s.Take("7-8-192.0.2.1")
	check.Error(t, "the same again", err, fs.ErrNotExist)
	check.Equal(t, "files", len(must.Get(os.ReadDir(dir))(t)), 1)
}

// A folder or a file that is not for this user alone is refused, and says why.
func TestFileRestartStoreRefusals(t *testing.T) {
	// req dtlschunk-10.4-1
	for _, c := range []struct {
		name  string
		spoil func(dir, file string) error
		want  string
	}{
		{"a folder that others may list", func(dir, _ string) error { return os.Chmod(dir, 0o750) }, "mode 0750 lets others in"},
		{"one that others may enter", func(dir, _ string) error { return os.Chmod(dir, 0o701) }, "mode 0701 lets others in"},
		{"a file that others may read", func(_, file string) error { return os.Chmod(file, 0o644) }, "mode 0644 lets others in"},
		{"one that the group may write", func(_, file string) error { return os.Chmod(file, 0o620) }, "mode 0620 lets others in"},
		{"a link to a file", func(_, file string) error {
			return errors.Join(os.Rename(file, file+"x"), os.Symlink(file+"x", file))
		}, "want -rw-------"},
		{"a folder in the place of a file", func(_, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }, "want -rw-------"},
		{"a link to a folder", func(dir, _ string) error { return errors.Join(os.Rename(dir, dir+"x"), os.Symlink(dir+"x", dir)) }, "want drw-------"},
		{"a file in the place of the folder", func(dir, _ string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, "want drw-------"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keys")
			s := must.Get(NewFileRestartStore(dir))(t)
			must.OK(t, s.Put("name", []byte("record")))
			must.OK(t, c.spoil(dir, filepath.Join(dir, "name")))
			_, err := NewFileRestartStore(dir)
			var e *RestartStoreError
			check.That(t, errors.As(err, &e) && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), e.Path), "%v", err)
			if strings.Contains(c.name, "file") || c.name == "one that the group may write" {
				record, err := s.Take("name")
				check.That(t, record == nil && err != nil, "%q, %v", record, err)
			}
		})
	}
	_, err := NewFileRestartStore(filepath.Join(t.TempDir(), "none", "keys"))
	check.Error(t, "a folder in none", err, fs.ErrNotExist)
	s := must.Get(NewFileRestartStore(t.TempDir() + "/keys"))(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".part-1", "a b", "a\x00", strings.Repeat("a", 201)} {
		var e *RestartStoreError
		check.That(t, errors.As(s.Put(name, nil), &e), "Put takes %q", name)
		_, err := s.Take(name)
		check.That(t, errors.As(err, &e), "Take takes %q", name)
	}
	must.OK(t, s.Put("long", make([]byte, keymgmt.MaxRestartRecord+1)))
	_, err = s.Take("long")
	check.That(t, err != nil, "a record without end is read")
}

// What a crash has left, and what is of no use any more, goes when the store is opened.
func TestFileRestartStoreCleansUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	s := must.Get(NewFileRestartStore(dir))(t)
	for _, name := range []string{"new", "old"} {
		must.OK(t, s.Put(name, []byte(name)))
	}
	at := time.Now().Add(-maxRestartAge - time.Minute)
	must.OK(t, os.Chtimes(filepath.Join(dir, "old"), at, at))
	must.OK(t, os.WriteFile(filepath.Join(dir, partName()), []byte("half"), 0o600))
	s = must.Get(NewFileRestartStore(dir))(t)
	check.Equal(t, "files", len(must.Get(os.ReadDir(dir))(t)), 1)
	check.Equal(t, "record", string(must.Get(s.Take("new"))(t)), "new")
}

// disk is a folder as a crash finds it: what was not synced may be there or not, each by itself.
type disk struct {
	names, durable map[string]string // contents, as they are, and as the disk has them for sure
	changes        []func(map[string]string)
	stepsLeft      int
}

var errCrash = errors.New("crash")

// step is one thing that a store does. The crash comes before it.
func (d *disk) step() error {
	if d.stepsLeft == 0 {
		return errCrash
	}
	d.stepsLeft--
	return nil
}

func (d *disk) change(f func(map[string]string)) error {
	if err := d.step(); err != nil {
		return err
	}
	f(d.names)
	d.changes = append(d.changes, f)
	return nil
}

func (d *disk) create(name string, content []byte) error {
	if err := d.change(func(m map[string]string) { m[name] = "" }); err != nil { // its name, with nothing in it
		return err
	}
	return d.change(func(m map[string]string) {
		if _, ok := m[name]; ok {
			m[name] = string(content)
		}
	})
}

func (d *disk) read(name string) ([]byte, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	return []byte(d.names[name]), nil
}

func (d *disk) rename(from, to string) error {
	content, ok := d.names[from]
	if !ok {
		return fs.ErrNotExist
	}
	return d.change(func(m map[string]string) {
		delete(m, from)
		m[to] = content
	})
}

func (d *disk) remove(name string) error {
	return d.change(func(m map[string]string) { delete(m, name) })
}

func (d *disk) sync() error {
	if err := d.step(); err != nil {
		return err
	}
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

// afterCrash returns what may be found: each set of the changes that were not synced.
func (d *disk) afterCrash() (list []map[string]string) {
	for set := range 1 << len(d.changes) {
		m := maps.Clone(d.durable)
		for i, f := range d.changes {
			if set>>i&1 != 0 {
				f(m)
			}
		}
		list = append(list, m)
	}
	return list
}

// The program crashes at each step of the store. A record that Put has stored is there afterwards,
// whole. One that Take has returned never comes again: no key seals a number twice. A part of a
// record is never found.
func TestCrashAtEachStepOfTheStore(t *testing.T) {
	// req dtlschunk-5.4-8
	// req dtlskeys-6.3.1-2
	const first, second = "the first record", "the second record"
	for _, c := range []struct {
		name string
		has  string // before
		do   func(s *FileRestartStore) (taken string, err error)
		// what may be found if it has returned, and if it has not
		done, undone []string
	}{
		{"Put", "", func(s *FileRestartStore) (string, error) { return "", s.Put("name", []byte(first)) },
			[]string{first}, []string{"", first}},
		{"Put in the place of another", first, func(s *FileRestartStore) (string, error) { return "", s.Put("name", []byte(second)) },
			[]string{second}, []string{first, second}},
		{"Take", first, func(s *FileRestartStore) (string, error) {
			b, err := s.Take("name")
			return string(b), err
		}, []string{""}, []string{"", first}},
		{"Take of nothing", "", func(s *FileRestartStore) (string, error) {
			_, err := s.Take("name")
			return "", err
		}, []string{""}, []string{""}},
		{"Put, Take", "", func(s *FileRestartStore) (string, error) {
			if err := s.Put("name", []byte(first)); err != nil {
				return "", err
			}
			b, err := s.Take("name")
			return string(b), err
		}, []string{""}, []string{"", first}},
		{"Take, Put", first, func(s *FileRestartStore) (string, error) {
			b, err := s.Take("name")
			if err != nil {
				return "", err
			}
			return string(b), s.Put("name", []byte(second))
		}, []string{second}, []string{"", first, second}},
	} {
		steps := 0
		for returned := false; !returned; steps++ {
			d := &disk{names: map[string]string{}, stepsLeft: steps}
			if c.has != "" {
				d.names["name"] = c.has
			}
			d.durable = maps.Clone(d.names)
			taken, err := c.do(&FileRestartStore{d})
			returned = !errors.Is(err, errCrash)
			want := c.undone
			if returned {
				want = c.done
			}
			for _, m := range d.afterCrash() {
				found, there := m["name"]
				check.That(t, slices.Contains(want, found), "%s, crash at step %d: found %q, want one of %q", c.name, steps, found, want)
				check.That(t, taken == "" || found != taken, "%s, crash at step %d: %q was taken, and is found again", c.name, steps, taken)
				check.That(t, !there || found != "", "%s, crash at step %d: a record without content", c.name, steps)
			}
		}
		check.That(t, steps > 1 || c.name == "Take of nothing", "%s has %d steps", c.name, steps)
	}
}
