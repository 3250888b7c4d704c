package assoc_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What this host does not let go ends a setup by its own name when it has happened three times in a
// row, and at once where there is no way at all; where it passes before, the setup goes on.
func TestSetupThatThisHostRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		errs []error // of each INIT, nil: it leaves
		ends error
		at   time.Duration
	}{
		{"the firewall", []error{syscall.EPERM, syscall.EPERM, syscall.EPERM}, syscall.EPERM, 3 * time.Second},
		{"a prohibited route", []error{syscall.EACCES, syscall.EACCES, syscall.EACCES}, syscall.EACCES, 3 * time.Second},
		{"an interface that is down", []error{syscall.ENETDOWN, syscall.ENETDOWN, syscall.ENETDOWN}, syscall.ENETDOWN, 3 * time.Second},
		{"an own address that is gone", []error{syscall.EADDRNOTAVAIL, syscall.EADDRNOTAVAIL, syscall.EADDRNOTAVAIL}, syscall.EADDRNOTAVAIL, 3 * time.Second},
		{"an own address that is no more", []error{syscall.EINVAL, syscall.EINVAL, syscall.EINVAL}, syscall.EINVAL, 3 * time.Second},
		{"one after the other", []error{syscall.EPERM, syscall.ENETDOWN, syscall.EACCES}, syscall.EACCES, 3 * time.Second},
		{"no way", []error{syscall.ENETUNREACH}, syscall.ENETUNREACH, 0},
		{"a full table that empties", []error{syscall.EPERM, syscall.EPERM, nil}, nil, 0},
		{"in between one leaves, and is lost", []error{syscall.EPERM, syscall.EPERM, nil, syscall.EPERM, syscall.EPERM, nil, nil}, nil, 0},
	} {
		l := sctptest.Active(t, nil)
		begun := l.Now
		for i, err := range row.errs {
			if err != nil {
				check.That(t, !l.A.HandleUnroutable(l.Now, &rawio.Packet{Remote: l.Peer}, err), "%s: again at once",
					row.name)
			}
			if i < len(row.errs)-1 {
				must.Equal(t, row.name+": a refusal is told", errors.Is(l.A.Refusal(), err), true)
				l.Wait(l.A.NextTimeout().Sub(l.Now))
			}
		}
		l.Flush()
		err, ended := l.Host.DownErr()
		must.That(t, ended == (row.ends != nil), "%s: ended %v", row.name, err)
		if !ended {
			check.That(t, l.A.State() == assoc.CookieWait && l.A.Refusal() == nil, "%s: in %v, refused %v", row.name,
				l.A.State(), l.A.Refusal())
			continue
		}
		var refused *assoc.RefusedError
		check.That(t, errors.Is(err, row.ends) && errors.As(err, &refused) == (row.ends != syscall.ENETUNREACH) &&
			l.Now.Sub(begun) == row.at, "%s: %v after %v", row.name, err, l.Now.Sub(begun))
	}
}

// The INIT goes to the next address at once, and only when all are refused again and again that is
// the end.
func TestEveryAddressIsRefused(t *testing.T) {
	for _, row := range []struct {
		name  string
		errs  [2]error // of each address
		state assoc.State
		inits int // in the first instant
	}{
		{"both", [2]error{syscall.EPERM, syscall.EPERM}, assoc.Closed, 2},
		{"one, and the other has no route", [2]error{syscall.EPERM, syscall.ENETUNREACH}, assoc.Closed, 2},
		{"one alone", [2]error{syscall.EPERM, nil}, assoc.Established, 2},
		{"the other alone", [2]error{nil, syscall.EPERM}, assoc.Established, 1},
	} {
		w := sctptest.NewMulti(t, 2)
		w.Hosts[0].Refuses = map[netip.Addr]error{}
		for i, err := range row.errs {
			if err != nil {
				w.Hosts[0].Refuses[w.Addrs[1][i]] = err
			}
		}
		w.Listen(&assoc.Config{LocalAddrs: w.Addrs[1]})
		a := w.Connect(&assoc.Config{LocalAddrs: w.Addrs[0]}, w.Addrs[1]...)
		w.Flush()
		check.Equal(t, row.name+": INITs at once", w.Hosts[0].Refused+len(w.Sent), row.inits)
		w.Run(4 * time.Second)
		check.Equal(t, row.name, a.State(), row.state)
		if row.state == assoc.Closed {
			err, _ := w.Hosts[0].DownErr()
			check.That(t, errors.Is(err, syscall.EPERM) && errors.As(err, new(*assoc.RefusedError)), "%s: %v",
				row.name, err)
		}
	}
}

// An association that is set up outlives refusals that pass. Those that do not name its end, and a
// silent peer is none.
func TestEndThatThisHostHasBroughtAbout(t *testing.T) {
	for _, row := range []struct {
		name  string
		err   error
		lasts time.Duration
		want  func(error) bool
	}{
		{"the firewall, for ever", syscall.EPERM, time.Hour, func(err error) bool { return errors.As(err, new(*assoc.RefusedError)) && errors.Is(err, syscall.EPERM) }},
		{"no route, for ever", syscall.ENETUNREACH, time.Hour, func(err error) bool { return errors.As(err, new(*assoc.NoRouteError)) }},
		{"the firewall, for a while", syscall.EPERM, 5 * time.Second, func(err error) bool { return err == nil }},
		{"the firewall for a while, then the peer is silent", syscall.EPERM, -5 * time.Second, func(err error) bool { return err == assoc.ErrTimeout }},
	} {
		w := sctptest.NewMulti(t, 1)
		a, _ := w.Associate(assoc.Config{}, assoc.Config{})
		w.Hosts[0].Refuses = map[netip.Addr]error{w.Addrs[1][0]: row.err}
		w.World.Send(a, 0, make([]byte, 100))
		w.Run(max(row.lasts, -row.lasts))
		w.Hosts[0].Refuses = nil
		if row.lasts < 0 {
			w.Cut(0)
			w.Run(time.Hour)
		}
		w.Run(time.Minute)
		err, _ := w.Hosts[0].DownErr()
		check.That(t, row.want(err), "%s: ended by %v", row.name, err)
	}
}
