package portregistry

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
	claimTries    = 5
	retryPause    = time.Millisecond // between them: a name is bound a moment before it listens
	peerTimeout   = time.Second      // for answers of a program of the same user
	maxListOctets = 64 << 10         // octets of a list
	greeting      = "rddp\n"         // what a list begins with; an empty line ends it
	admitReply    = "yes\n"
	refuseReply   = "no\n"
)

// socketAddrOf is the name of a port.
func socketAddrOf(number uint16) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@rddp/port/%d", number)}
}

// nameSocket is a listening socket with the name of a port.
type nameSocket struct {
	listener       *net.UnixListener
	successionLock *os.File // decides which holder of the socket becomes the owner; nil while there is one holder
}

func (n *nameSocket) close() {
	n.listener.Close()
	if n.successionLock != nil {
		n.successionLock.Close()
	}
}

// becomeOwner makes this process the owner of the name of a port. Called with registryMu held.
func becomeOwner(k portKey, l *net.UnixListener, lock *os.File) *portEntry {
	p := &portEntry{portKey: k, socket: nameSocket{l, lock}}
	portEntries[k] = p
	go p.serveList(l)
	return p
}

// portKeyOf is the key of a port in the network namespace of the calling thread.
func portKeyOf(number uint16) portKey {
	var st unix.Stat_t
	_ = unix.Stat("/proc/thread-self/ns/net", &st) // without /proc there is only one
	return portKey{st.Ino, number}
}

// errOwnerGone says that the owner of a name has released it.
var errOwnerGone = errors.New("claim: the owner of the name has gone")

// ClaimPort claims an SCTP port of the calling thread's network namespace at a place, until release
// is called. It fails with rawio.ErrPortInUse. If a user without the privilege has the name of a
// port that needs one, ClaimPort does without the name, and logs that.
func ClaimPort(number uint16, at Place) (release func(), err error) {
	k := portKeyOf(number)
	for try := range claimTries {
		if try > 0 {
			time.Sleep(retryPause)
		}
		registryMu.Lock()
		if p := portEntries[k]; p != nil {
			defer registryMu.Unlock()
			return p.addOwnMember(at)
		}
		l, err := net.ListenUnix("unix", socketAddrOf(number))
		if err == nil {
			defer registryMu.Unlock()
			return becomeOwner(k, l, nil).addOwnMember(at)
		}
		registryMu.Unlock()
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
		if release, err = joinOwner(k, at); !errors.Is(err, errOwnerGone) {
			return release, err
		}
	}
	return claimWithoutName(number, "a socket that does not listen")
}

// claimWithoutName ends a ClaimPort when another program has the name.
func claimWithoutName(number uint16, whose string) (release func(), err error) {
	first, err := firstUnprivilegedPort()
	if err != nil {
		return nil, err
	}
	if number >= first {
		return nil, portInUseError(number, ", whose name has "+whose)
	}
	slog.Warn("sctp: a port that needs a privilege has its name taken by a program that has none: other "+
		"programs of this host do not find it by that",
		"port", number, "by", whose)
	return func() {}, nil
}

// connectOwner connects to the owner of a port, and does not wait for it. It fails with
// errOwnerGone where there is none.
func connectOwner(number uint16) (c *net.UnixConn, uid uint32, err error) {
	c, err = net.DialUnix("unix", nil, socketAddrOf(number))
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, 0, errOwnerGone
	case errors.Is(err, unix.EAGAIN): // as many wait as may
		return nil, 0, fmt.Errorf("the program that has SCTP port %d accepts nobody: %w", number, syscall.ETIMEDOUT)
	case err != nil:
		return nil, 0, err
	}
	if uid, err = peerUser(c); err != nil {
		c.Close()
	}
	return c, uid, err
}

// serveList answers programs that ask where the port is served.
func (p *portEntry) serveList(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err == nil {
			p.sendList(c)
		} else if errors.Is(err, net.ErrClosed) {
			return
		} else {
			time.Sleep(retryPause) // no descriptor is left, perhaps
		}
	}
}

// sendList sends the list, which fits the socket's buffer. Programs of the same user may then claim
// the port at another address.
func (p *portEntry) sendList(c *net.UnixConn) {
	var b bytes.Buffer
	b.WriteString(greeting)
	registryMu.Lock()
	for _, at := range p.listPlaces() {
		fmt.Fprintf(&b, "%s %d\n", addrText(at.Addr), at.Encap)
	}
	registryMu.Unlock()
	b.WriteString("\n")
	_ = c.SetDeadline(time.Now().Add(peerTimeout))
	_, err := c.Write(b.Bytes())
	if uid, e := peerUser(c); err != nil || e != nil || !isOwnUser(uid) {
		c.Close()
		return
	}
	go p.serveJoin(c)
}

// addrText is an address in the list.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return "*"
	}
	return a.String()
}

// peerUser returns the user of the program at the other end.
func peerUser(c *net.UnixConn) (uid uint32, err error) {
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

// serveJoin serves a program of the same user that may want to have the port too.
func (p *portEntry) serveJoin(c *net.UnixConn) {
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return // it only asked
	}
	m := member{coHolder: &coHolder{conn: c}}
	var at string
	if _, err = fmt.Sscanf(line, "join %d %s %d", &m.programID, &at, &m.Encap); err != nil {
		return
	}
	if m.Place, err = parsePlace(at, m.Encap); err != nil {
		return
	}
	registryMu.Lock()
	if portEntries[p.portKey] != p {
		err = errOwnerGone
	} else if err = p.addMember(m); err == nil {
		if err = p.handOverSocket(c); err != nil {
			p.removeMember(m)
		}
	} else {
		_, _ = c.Write([]byte(refuseReply))
	}
	registryMu.Unlock()
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, c) // until it ends
	registryMu.Lock()
	defer registryMu.Unlock()
	p.removeMember(m)
}

// handOverSocket hands the socket over, and the lock. Called with registryMu held.
func (p *portEntry) handOverSocket(c *net.UnixConn) error {
	if p.socket.successionLock == nil {
		fd, err := unix.MemfdCreate("rddp", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "rddp")
		if !tryFileLock(f) {
			f.Close()
			return unix.EDEADLK
		}
		p.socket.successionLock = f
	}
	r, err := p.socket.listener.SyscallConn()
	if err != nil {
		return err
	}
	e := r.Control(func(fd uintptr) {
		_, _, err = c.WriteMsgUnix([]byte(admitReply), unix.UnixRights(int(fd), int(p.socket.successionLock.Fd())), nil)
	})
	return errors.Join(err, e)
}

// tryFileLock takes the lock for this program if no other has it. It lasts as long as the file is
// open.
func tryFileLock(f *os.File) bool {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) == nil
}

// parsePlace reads a place of the list.
func parsePlace(at string, encap uint16) (Place, error) {
	if at == "*" {
		return Place{Encap: encap}, nil
	}
	a, err := netip.ParseAddr(at)
	return PlaceAt(a, encap), err
}

// readList reads the list.
func readList(c *net.UnixConn, had []byte) (all []Place, rest []byte, err error) {
	b := make([]byte, 4096)
	for !bytes.HasSuffix(had, []byte("\n\n")) {
		n, err := c.Read(b)
		if had = append(had, b[:n]...); err != nil || len(had) > maxListOctets {
			return nil, had, errors.Join(err, errOwnerGone)
		}
	}
	s, ok := strings.CutPrefix(string(had), greeting)
	for line := range strings.Lines(s) {
		var at string
		var encap uint16
		if n, _ := fmt.Sscanf(line, "%s %d", &at, &encap); n == 2 {
			p, err := parsePlace(at, encap)
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

// coHolder is a place in the list of another program. On that program's side only conn is set.
type coHolder struct {
	portKey
	Place
	conn           *net.UnixConn
	socket         *os.File // the listening one
	successionLock *os.File
	releaseOwned   func() // guarded by registryMu: of the port whose name this process has by now
	isReleased     bool   // guarded by registryMu: it was released
}

func (g *coHolder) close() { g.conn.Close() }

// joinOwner asks the owner of a port, if it is of the same user, to add a place to its list. It
// fails with errOwnerGone if the name may be free by now.
func joinOwner(k portKey, at Place) (release func(), err error) {
	c, uid, err := connectOwner(k.number)
	if err != nil {
		return nil, err
	}
	if !isOwnUser(uid) {
		c.Close()
		if may, err := mayHavePort(uid, k.number); err != nil || may {
			return nil, errors.Join(err, portInUseError(k.number, fmt.Sprintf(", which user %d has", uid)))
		}
		return claimWithoutName(k.number, fmt.Sprintf("user %d", uid))
	}
	g := &coHolder{portKey: k, Place: at}
	if err := g.requestJoin(c); err != nil {
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, portInUseError(k.number, ", of a program that does not answer")
		}
		return nil, err
	}
	go g.awaitSuccession()
	return func() {
		registryMu.Lock()
		was, led := g.isReleased, g.releaseOwned
		if g.isReleased = true; !was && led == nil {
			g.conn.Close()
			g.closeHeldFiles()
		}
		registryMu.Unlock()
		if !was && led != nil {
			led()
		}
	}, nil
}

// closeHeldFiles closes what the co-holder holds for later. Called with registryMu held.
func (g *coHolder) closeHeldFiles() {
	g.socket.Close()
	g.successionLock.Close()
}

// requestJoin asks for the place, and receives the socket and the lock.
func (g *coHolder) requestJoin(c *net.UnixConn) error {
	_ = c.SetDeadline(time.Now().Add(peerTimeout))
	if _, _, err := readList(c, nil); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "join %d %s %d\n", programID, addrText(g.Addr), g.Encap); err != nil {
		return errOwnerGone
	}
	b, oob := make([]byte, len(admitReply)), make([]byte, unix.CmsgSpace(2*4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil || n == 0:
		return errOwnerGone
	case string(b[:n]) != admitReply:
		return portInUseError(g.number, "")
	}
	fds, err := parseRights(oob[:oobn])
	if err != nil {
		return err
	}
	socket, passed := os.NewFile(uintptr(fds[0]), "name"), os.NewFile(uintptr(fds[1]), "lock")
	defer passed.Close() // while it is open the lock is the owner's
	own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fds[1]), os.O_RDWR, 0)
	if err != nil {
		socket.Close()
		return err
	}
	_ = c.SetDeadline(time.Time{})
	g.conn, g.socket, g.successionLock = c, socket, own
	return nil
}

// parseRights takes two descriptors out of a control message.
func parseRights(oob []byte) (fds []int, err error) {
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

// awaitSuccession waits for the end of the program that has the name. Then this process becomes the
// owner, or joins the one that does.
func (g *coHolder) awaitSuccession() {
	for {
		_, _ = io.Copy(io.Discard, g.conn)
		g.conn.Close()
		if g.trySucceed() {
			return
		}
		c, _, err := connectOwner(g.number)
		if err == nil {
			n := &coHolder{portKey: g.portKey, Place: g.Place}
			if err = n.requestJoin(c); err != nil {
				c.Close()
			} else {
				registryMu.Lock()
				if g.isReleased {
					n.closeHeldFiles()
					c.Close()
				} else {
					g.closeHeldFiles()
					g.conn, g.socket, g.successionLock = n.conn, n.socket, n.successionLock
				}
				registryMu.Unlock()
				continue
			}
		}
		time.Sleep(retryPause)
	}
}

// trySucceed makes this process the owner of the name if it may. It returns whether there is
// nothing more to wait for.
func (g *coHolder) trySucceed() bool {
	registryMu.Lock()
	defer registryMu.Unlock()
	if g.isReleased {
		return true
	}
	p := portEntries[g.portKey]
	if p == nil {
		if !tryFileLock(g.successionLock) {
			return false // another was first
		}
		l, err := net.FileListener(g.socket)
		if err != nil {
			return false
		}
		p = becomeOwner(g.portKey, l.(*net.UnixListener), g.successionLock)
		g.socket.Close()
	} else {
		g.closeHeldFiles()
	}
	release, err := p.addOwnMember(g.Place)
	if err != nil {
		release = func() {} // a member of before met it by then: it is the other's
	}
	g.releaseOwned = release
	return true
}

// OwnerQuery is a query to the owner of a port.
type OwnerQuery struct {
	number uint16
	isOwn  bool // by this process
	uid    uint32

	conn *net.UnixConn // nil: the answer is there

	mu           sync.Mutex
	diag         sockDiag // guarded by mu
	isClosed     bool     // guarded by mu: it was closed
	receivedText []byte   // guarded by mu
	list         []Place  // guarded by mu
	hasAnswer    bool     // guarded by mu
	err          error    // guarded by mu
}

// AskOwner returns the query where an SCTP port is served, nil if no program that may have it does.
// It does not wait.
func AskOwner(number uint16) (*OwnerQuery, error) {
	registryMu.Lock()
	if p := portEntries[portKeyOf(number)]; p != nil {
		defer registryMu.Unlock()
		return &OwnerQuery{isOwn: true, list: p.listPlaces(), hasAnswer: true}, nil
	}
	registryMu.Unlock()
	c, uid, err := connectOwner(number)
	if errors.Is(err, errOwnerGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if may, err := mayHavePort(uid, number); err != nil || !may {
		c.Close()
		return nil, err
	}
	d, err := openSockDiag()
	if err != nil {
		c.Close()
		return nil, err
	}
	return &OwnerQuery{number: number, uid: uid, conn: c, diag: d}, nil
}

// AwaitAnswer waits for the answer until then. It may be called again if it has not come.
func (q *OwnerQuery) AwaitAnswer(until time.Time) ([]Place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasAnswer {
		return q.list, q.err
	}
	_ = q.conn.SetDeadline(until)
	q.list, q.receivedText, q.err = readList(q.conn, q.receivedText)
	if errors.Is(q.err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("the program that has SCTP port %d, of user %d, does not say where it is served: %w",
			q.number, q.uid, os.ErrDeadlineExceeded)
	}
	if q.hasAnswer = true; q.err != nil {
		q.err = fmt.Errorf("the program that has SCTP port %d, of user %d, says nothing: %w", q.number, q.uid,
			syscall.ECONNREFUSED)
	}
	return q.list, q.err
}

// CheckPlace says whether the UDP port of a place, at an address that it serves, is of the same
// user as the SCTP port.
func (q *OwnerQuery) CheckPlace(at Place, addr netip.Addr) error {
	if q.isOwn || at.Encap == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed {
		return net.ErrClosed
	}
	uid, ok, err := q.diag.udpOwner(netip.AddrPortFrom(addr.Unmap().WithZone(""), at.Encap))
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("UDP port %d, by which SCTP port %d is said to be served, is nobody's: %w", at.Encap,
			q.number, syscall.ECONNREFUSED)
	case uid != q.uid:
		return fmt.Errorf("UDP port %d, by which user %d is said to serve SCTP port %d, is of user %d: %w", at.Encap,
			q.uid, q.number, uid, syscall.EACCES)
	}
	return nil
}

// Close ends the query, and all waits for its answer.
func (q *OwnerQuery) Close() {
	if q.isOwn {
		return
	}
	q.conn.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed = true
		q.diag.close()
	}
}
