package claim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tries      = 5
	pause      = time.Millisecond // between them: a name is bound a moment before it listens
	patience   = time.Second      // for what a program of the same user says
	longest    = 64 << 10         // octets of a list
	greeting   = "rddp\n"         // what a list begins with; an empty line ends it
	admitted   = "yes\n"
	notAllowed = "no\n"
)

// nameOf is the name of a port.
func nameOf(number uint16) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@rddp/port/%d", number)}
}

// name is a socket that has one, and listens.
type name struct {
	l    *net.UnixListener
	lock *os.File // which of the programs that hold the socket goes on with it; nil as long as it is one
}

func (n *name) close() {
	n.l.Close()
	if n.lock != nil {
		n.lock.Close()
	}
}

// lead has this process have the name of a port. Called with mu held.
func lead(k key, l *net.UnixListener, lock *os.File) *port {
	p := &port{key: k, name: name{l, lock}}
	ports[k] = p
	go p.serve(l)
	return p
}

// keyOf is the key of a port in the network namespace of the calling thread.
func keyOf(number uint16) key {
	var st unix.Stat_t
	_ = unix.Stat("/proc/thread-self/ns/net", &st) // without /proc there is one
	return key{st.Ino, number}
}

// errGone says that who had a name has it no more.
var errGone = errors.New("claim: the owner of the name has gone")

// Take claims an SCTP port of the calling thread's network namespace at a place, until release is called. It fails with rawio.ErrPortInUse. Where a user has the
// name of a port that needs a privilege, and may not have it, Take does without, and the log says so.
func Take(number uint16, at Place) (release func(), err error) {
	k := keyOf(number)
	for try := range tries {
		if try > 0 {
			time.Sleep(pause)
		}
		mu.Lock()
		if p := ports[k]; p != nil {
			defer mu.Unlock()
			return p.enterOwn(at)
		}
		l, err := net.ListenUnix("unix", nameOf(number))
		if err == nil {
			defer mu.Unlock()
			return lead(k, l, nil).enterOwn(at)
		}
		mu.Unlock()
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
		if release, err = join(k, at); !errors.Is(err, errGone) {
			return release, err
		}
	}
	return without(number, "a socket that does not listen")
}

// without is the end of Take where the name is somebody else's.
func without(number uint16, whose string) (release func(), err error) {
	first, err := firstFree()
	if err != nil {
		return nil, err
	}
	if number >= first {
		return nil, inUse(number, ", whose name has "+whose)
	}
	slog.Warn("sctp: a port that needs a privilege has its name taken by a program that has none: other programs of this host do not find it by that",
		"port", number, "by", whose)
	return func() {}, nil
}

// ask connects to the owner of a port, and does not wait for it. It fails with errGone where there is none.
func ask(number uint16) (c *net.UnixConn, uid uint32, err error) {
	c, err = net.DialUnix("unix", nil, nameOf(number))
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, 0, errGone
	case errors.Is(err, unix.EAGAIN): // as many wait as may
		return nil, 0, fmt.Errorf("the program that has SCTP port %d accepts nobody: %w", number, syscall.ETIMEDOUT)
	case err != nil:
		return nil, 0, err
	}
	if uid, err = userOf(c); err != nil {
		c.Close()
	}
	return c, uid, err
}

// serve tells those who ask where the port is served.
func (p *port) serve(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err == nil {
			p.answer(c)
		} else if errors.Is(err, net.ErrClosed) {
			return
		} else {
			time.Sleep(pause) // no descriptor is left, perhaps
		}
	}
}

// answer sends the list, which the socket's buffer has room for. Programs of the same user may then have the port at another address.
func (p *port) answer(c *net.UnixConn) {
	var b bytes.Buffer
	b.WriteString(greeting)
	mu.Lock()
	for _, at := range p.places() {
		fmt.Fprintf(&b, "%s %d\n", word(at.Addr), at.Encap)
	}
	mu.Unlock()
	b.WriteString("\n")
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err := c.Write(b.Bytes())
	if uid, e := userOf(c); err != nil || e != nil || !own(uid) {
		c.Close()
		return
	}
	go p.host(c)
}

// word is an address in the list.
func word(a netip.Addr) string {
	if !a.IsValid() {
		return "*"
	}
	return a.String()
}

// userOf returns the user of the program at the other end.
func userOf(c *net.UnixConn) (uid uint32, err error) {
	r, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	e := r.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = cred.Uid
		}
	})
	return uid, errors.Join(err, e)
}

// host serves a program of the same user that perhaps wants to have the port too.
func (p *port) host(c *net.UnixConn) {
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return // it only asked
	}
	m := member{guest: &guest{conn: c}}
	var at string
	if _, err = fmt.Sscanf(line, "join %d %s %d", &m.program, &at, &m.Encap); err != nil {
		return
	}
	if m.Place, err = place(at, m.Encap); err != nil {
		return
	}
	mu.Lock()
	if ports[p.key] != p {
		err = errGone
	} else if err = p.enter(m); err == nil {
		if err = p.admit(c); err != nil {
			p.leave(m)
		}
	} else {
		_, _ = c.Write([]byte(notAllowed))
	}
	mu.Unlock()
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, c) // until it ends
	mu.Lock()
	defer mu.Unlock()
	p.leave(m)
}

// admit hands the socket over, and the lock. Called with mu held.
func (p *port) admit(c *net.UnixConn) error {
	if p.name.lock == nil {
		fd, err := unix.MemfdCreate("rddp", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "rddp")
		if !lock(f) {
			f.Close()
			return unix.EDEADLK
		}
		p.name.lock = f
	}
	r, err := p.name.l.SyscallConn()
	if err != nil {
		return err
	}
	e := r.Control(func(fd uintptr) {
		_, _, err = c.WriteMsgUnix([]byte(admitted), unix.UnixRights(int(fd), int(p.name.lock.Fd())), nil)
	})
	return errors.Join(err, e)
}

// lock takes the lock for this program, as long as it has the file open, if no other has it.
func lock(f *os.File) bool {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) == nil
}

// place reads one of the list.
func place(at string, encap uint16) (Place, error) {
	if at == "*" {
		return Place{Encap: encap}, nil
	}
	a, err := netip.ParseAddr(at)
	return At(a, encap), err
}

// list reads the list.
func list(c *net.UnixConn, had []byte) (all []Place, rest []byte, err error) {
	b := make([]byte, 4096)
	for !bytes.HasSuffix(had, []byte("\n\n")) {
		n, err := c.Read(b)
		if had = append(had, b[:n]...); err != nil || len(had) > longest {
			return nil, had, errors.Join(err, errGone)
		}
	}
	s, ok := strings.CutPrefix(string(had), greeting)
	for line := range strings.Lines(s) {
		var at string
		var encap uint16
		if n, _ := fmt.Sscanf(line, "%s %d", &at, &encap); n == 2 {
			p, err := place(at, encap)
			if err != nil {
				return nil, had, err
			}
			all = append(all, p)
		} else if line != "\n" {
			ok = false
		}
	}
	if !ok {
		return nil, had, syscall.EBADMSG
	}
	return all, had, nil
}

// guest is a place in the list of another program. On that program's side it has conn alone.
type guest struct {
	key
	Place
	conn    *net.UnixConn
	socket  *os.File // the listening one
	lock    *os.File
	release func() // guarded by mu: of the port that this process has the name of by now
	over    bool   // guarded by mu: it was released
}

func (g *guest) close() { g.conn.Close() }

// join has the owner of a port, if it is of the same user, put a place into its list. It fails with errGone where the name may be free by now.
func join(k key, at Place) (release func(), err error) {
	c, uid, err := ask(k.number)
	if err != nil {
		return nil, err
	}
	if !own(uid) {
		c.Close()
		if may, err := mayHave(uid, k.number); err != nil || may {
			return nil, errors.Join(err, inUse(k.number, fmt.Sprintf(", which user %d has", uid)))
		}
		return without(k.number, fmt.Sprintf("user %d", uid))
	}
	g := &guest{key: k, Place: at}
	if err := g.join(c); err != nil {
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, inUse(k.number, ", of a program that does not answer")
		}
		return nil, err
	}
	go g.stay()
	return func() {
		mu.Lock()
		was, led := g.over, g.release
		if g.over = true; !was && led == nil {
			g.conn.Close()
			g.drop()
		}
		mu.Unlock()
		if !was && led != nil {
			led()
		}
	}, nil
}

// drop closes what the guest holds for later. Called with mu held.
func (g *guest) drop() {
	g.socket.Close()
	g.lock.Close()
}

// join asks for the place, and takes what it is given.
func (g *guest) join(c *net.UnixConn) error {
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, _, err := list(c, nil); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "join %d %s %d\n", program, word(g.Addr), g.Encap); err != nil {
		return errGone
	}
	b, oob := make([]byte, len(admitted)), make([]byte, unix.CmsgSpace(2*4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil || n == 0:
		return errGone
	case string(b[:n]) != admitted:
		return inUse(g.number, "")
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return err
	}
	socket, passed := os.NewFile(uintptr(fds[0]), "name"), os.NewFile(uintptr(fds[1]), "lock")
	defer passed.Close() // as long as it is open the lock is the owner's
	own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fds[1]), os.O_RDWR, 0)
	if err != nil {
		socket.Close()
		return err
	}
	_ = c.SetDeadline(time.Time{})
	g.conn, g.socket, g.lock = c, socket, own
	return nil
}

// rights takes two descriptors out of a control message.
func rights(oob []byte) (fds []int, err error) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err == nil && len(list) == 1 {
		fds, err = unix.ParseUnixRights(&list[0])
	}
	if err == nil && len(fds) != 2 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		err = syscall.EBADMSG
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, err
}

// stay waits for the end of the program that has the name, and then goes on with it, or with another that does.
func (g *guest) stay() {
	for {
		_, _ = io.Copy(io.Discard, g.conn)
		g.conn.Close()
		if g.succeed() {
			return
		}
		c, _, err := ask(g.number)
		if err == nil {
			n := &guest{key: g.key, Place: g.Place}
			if err = n.join(c); err != nil {
				c.Close()
			} else {
				mu.Lock()
				if g.over {
					n.drop()
					c.Close()
				} else {
					g.drop()
					g.conn, g.socket, g.lock = n.conn, n.socket, n.lock
				}
				mu.Unlock()
				continue
			}
		}
		time.Sleep(pause)
	}
}

// succeed has this process have the name if it may, and says whether there is nothing more to wait for.
func (g *guest) succeed() bool {
	mu.Lock()
	defer mu.Unlock()
	if g.over {
		return true
	}
	p := ports[g.key]
	if p == nil {
		if !lock(g.lock) {
			return false // another was first
		}
		l, err := net.FileListener(g.socket)
		if err != nil {
			return false
		}
		p = lead(g.key, l.(*net.UnixListener), g.lock)
		g.socket.Close()
	} else {
		g.drop()
	}
	release, err := p.enterOwn(g.Place)
	if err != nil {
		release = func() {} // a member of before met it by then: it is the other's
	}
	g.release = release
	return true
}

// Question is asked of the owner of a port.
type Question struct {
	number uint16
	own    bool // by this process
	uid    uint32

	conn *net.UnixConn // nil: the answer is there

	mu   sync.Mutex
	diag diag    // guarded by mu
	over bool    // guarded by mu: it was closed
	had  []byte  // guarded by mu
	list []Place // guarded by mu
	done bool    // guarded by mu
	err  error   // guarded by mu
}

// Ask returns the question where an SCTP port is served, nil where nobody has it who may. It does not wait.
func Ask(number uint16) (*Question, error) {
	mu.Lock()
	if p := ports[keyOf(number)]; p != nil {
		defer mu.Unlock()
		return &Question{own: true, list: p.places(), done: true}, nil
	}
	mu.Unlock()
	c, uid, err := ask(number)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if may, err := mayHave(uid, number); err != nil || !may {
		c.Close()
		return nil, err
	}
	d, err := openDiag()
	if err != nil {
		c.Close()
		return nil, err
	}
	return &Question{number: number, uid: uid, conn: c, diag: d}, nil
}

// Answer waits for the answer until then. It may be called again if it has not come.
func (q *Question) Answer(until time.Time) ([]Place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done {
		return q.list, q.err
	}
	_ = q.conn.SetDeadline(until)
	q.list, q.had, q.err = list(q.conn, q.had)
	if errors.Is(q.err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("the program that has SCTP port %d, of user %d, does not say where it is served: %w", q.number, q.uid, os.ErrDeadlineExceeded)
	}
	if q.done = true; q.err != nil {
		q.err = fmt.Errorf("the program that has SCTP port %d, of user %d, says nothing: %w", q.number, q.uid, syscall.ECONNREFUSED)
	}
	return q.list, q.err
}

// Check says whether the UDP port of a place, at an address that it serves, is of the same user as the SCTP port.
func (q *Question) Check(at Place, addr netip.Addr) error {
	if q.own || at.Encap == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return net.ErrClosed
	}
	uid, ok, err := q.diag.owner(netip.AddrPortFrom(addr.Unmap().WithZone(""), at.Encap))
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("UDP port %d, by which SCTP port %d is said to be served, is nobody's: %w", at.Encap, q.number, syscall.ECONNREFUSED)
	case uid != q.uid:
		return fmt.Errorf("UDP port %d, by which user %d is said to serve SCTP port %d, is of user %d: %w", at.Encap, q.uid, q.number, uid, syscall.EACCES)
	}
	return nil
}

// Close ends the question, and whoever waits for the answer.
func (q *Question) Close() {
	if q.own {
		return
	}
	q.conn.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		q.diag.close()
	}
}
